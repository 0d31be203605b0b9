/** Figures from the rounds of the bench of several runners. Pure. */
import { median } from "../load/Percentiles.ts"
import type { ClusterResults, ClusterRound, SubjectName } from "./ClusterResults.ts"

type Measure = (round: ClusterRound) => number | undefined

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

/** CPU time of all runners per create, in microseconds. */
export const runnersMicros: Measure = ({ runnerMicros }) => runnerMicros && sum(runnerMicros)

/** CPU time of all runners and Postgres per create, in microseconds. */
export const allMicros: Measure = (round) => {
  const runners = runnersMicros(round)
  return runners === undefined || round.postgresMicros === undefined ? undefined : runners + round.postgresMicros
}

const medianIfAny = (values: ReadonlyArray<number | undefined>): number | undefined => {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : median(known)
}

export const roundsOf = ({ starts }: ClusterResults, name: SubjectName): ReadonlyArray<ClusterRound> =>
  starts.flatMap((start) => start[name])

/** The median over all rounds of a subject. */
export const medianOf = (results: ClusterResults, name: SubjectName, measure: Measure): number | undefined =>
  medianIfAny(roundsOf(results, name).map(measure))

/** Combines a measure of two subjects round by round; one list per start. */
const pairwise = (
  { starts }: ClusterResults,
  [name, other]: readonly [SubjectName, SubjectName],
  measure: Measure,
  combine: (value: number, other: number) => number
): ReadonlyArray<ReadonlyArray<number>> =>
  starts.map((start) =>
    start[name].flatMap((round, i) => {
      const [value, beside] = [measure(round), measure(start[other][i]!)]
      return value === undefined || beside === undefined ? [] : [combine(value, beside)]
    })
  )

/** Returns a subject's measure ÷ another's, by start: the median of the ratios round by round. */
export const ratiosByStart = (
  results: ClusterResults,
  names: readonly [SubjectName, SubjectName],
  measure: Measure
): ReadonlyArray<number> =>
  pairwise(results, names, measure, (value, other) => value / other).flatMap((ratios) => medianIfAny(ratios) ?? [])

/** Returns the geometric mean of the ratios by start: compiled code differs from start to start. */
export const ratioOf = (
  results: ClusterResults,
  names: readonly [SubjectName, SubjectName],
  measure: Measure
): number | undefined => {
  const ratios = ratiosByStart(results, names, measure)
  return ratios.length === 0 ? undefined : Math.exp(sum(ratios.map(Math.log)) / ratios.length)
}

/** Returns the CPU time that forwarding adds to a create, in microseconds: the mean over the starts. */
export const forwardingMicros = (results: ClusterResults, measure: Measure): number | undefined => {
  const names = ["forwarded", "local"] as const
  const byStart = pairwise(results, names, measure, (value, other) => value - other)
  const medians = byStart.flatMap((differences) => medianIfAny(differences) ?? [])
  return medians.length === 0 ? undefined : sum(medians) / medians.length
}

/** CPU microseconds per create. */
export interface Costs {
  /** CPU time of the runner that serves the account. */
  readonly owner: number
  /** Additional CPU time of both runners for a forwarded create. */
  readonly forwarding: number
  readonly postgres: number
  readonly logBytes: number
}

/** Returns undefined where the system does not report CPU times. */
export const costsOf = (results: ClusterResults): Costs | undefined => {
  const owner = medianOf(results, "one", runnersMicros)
  const forwarding = forwardingMicros(results, runnersMicros)
  const postgres = medianOf(results, "one", ({ postgresMicros }) => postgresMicros)
  const logBytes = medianOf(results, "one", (round) => round.logBytes) ?? 0
  return owner === undefined || forwarding === undefined || postgres === undefined
    ? undefined
    : { owner, forwarding: Math.max(0, forwarding), postgres, logBytes }
}

/** Estimated throughput of a number of cores. */
export interface Capacity {
  readonly cores: number
  readonly runners: number
  readonly forwardedShare: number
  readonly createsPerSecond: number
  /** The cores among them that Postgres uses. */
  readonly postgresCores: number
  readonly logBytesPerSecond: number
}

/** The number of partitions, which limits the runners. */
const RUNNERS_MAX = 64

const capacityWith = (runners: number, cores: number, { forwarding, logBytes, owner, postgres }: Costs): Capacity => {
  const forwardedShare = (runners - 1) / runners
  const ofRunners = owner + forwardedShare * forwarding
  // A runner is mostly one thread.
  const perSecond = Math.min(cores / (ofRunners + postgres), runners / ofRunners) * 1_000_000
  return {
    cores,
    runners,
    forwardedShare,
    createsPerSecond: perSecond,
    postgresCores: (perSecond * postgres) / 1_000_000,
    logBytesPerSecond: perSecond * logBytes
  }
}

/** Returns the capacity with the best number of runners; Postgres uses the other cores. */
export const capacityOf = (cores: number, costs: Costs): Capacity =>
  Array.from({ length: Math.min(cores, RUNNERS_MAX) }, (_, i) => capacityWith(i + 1, cores, costs)).reduce(
    (best, one) => (one.createsPerSecond > best.createsPerSecond ? one : best)
  )
