/** The measurements of a run, which are also the JSON report. */
import type { ContenderName } from "./Contender.ts"
import type { LoadResult } from "./load/LoadPlan.ts"
import { type Latency, median, percentile, type TailLatency } from "./load/Percentiles.ts"
import type { Machine } from "./Machine.ts"
import type { Spent } from "./SpentTime.ts"

/** One load on one server. CPU times are per request and include the server's work after its answers. */
export interface Round extends Omit<LoadResult, "latencies">, Latency, Spent {}

export interface SubjectResult {
  readonly title: string
  readonly contender: ContenderName
  /** Latency over the requests of all rounds. */
  readonly latency: Latency
  /** The rounds in order; rounds at equal positions ran close in time, because subjects take turns. */
  readonly rounds: ReadonlyArray<Round>
}

export interface ScenarioResult {
  readonly name: string
  readonly title: string
  readonly connections: number
  /** The first subject is the reference for the others. */
  readonly subjects: ReadonlyArray<SubjectResult>
}

/** An open loop at a share of the maximum that was measured just before. */
export interface PacedRound extends TailLatency {
  readonly maximumPerSecond: number
  readonly offeredPerSecond: number
  readonly requests: number
}

export interface PacedResult {
  readonly title: string
  readonly contender: ContenderName
  readonly rounds: ReadonlyArray<PacedRound>
}

export interface Results {
  readonly at: string
  readonly machine: Machine
  readonly secondsPerRound: number
  readonly scenarios: ReadonlyArray<ScenarioResult>
  readonly paced: ReadonlyArray<PacedResult>
  /** Servers that could not be fetched, with the reasons. */
  readonly leftOut: ReadonlyArray<string>
  /** Failed measurements, with the reasons. */
  readonly failures: ReadonlyArray<string>
}

/** Share of other processes above which a machine is too busy for a verdict. */
const OTHERS_SHARE_MAX = 0.1

/** Returns the least share of other processes in the noisiest quarter of the measurements, if it is above the limit. */
export const noiseIn = (shares: ReadonlyArray<number | undefined>): number | undefined => {
  const known = shares.filter((share) => share !== undefined).toSorted((a, b) => a - b)
  const share = known.length === 0 ? 0 : percentile(known, 75)
  return share > OTHERS_SHARE_MAX ? share : undefined
}

/** Returns the share of other processes in the scenario's noisiest rounds, if it is above the limit. */
export const noiseOf = ({ subjects }: ScenarioResult): number | undefined =>
  noiseIn(subjects.flatMap(({ rounds }) => rounds.map(({ othersShare }) => othersShare)))

/** Ratio of CPU times for equal work above which the machine is too unsteady for a verdict. */
const SPEED_RATIO_MAX = 1.25

/** CPU time of a request in the quickest and the slowest quarter of the rounds, in microseconds. */
export interface Speeds {
  readonly quickMicros: number
  readonly slowMicros: number
}

/**
 * Returns the machine's speeds in the scenario's rounds if they differ too much. The echo is the measure, because its
 * work is always the same. With one connection the wake-ups of the system dominate, so such scenarios have none.
 */
export const unsteadinessOf = ({ connections, subjects }: ScenarioResult): Speeds | undefined => {
  const echo = subjects.find(({ contender }) => contender === "echo")
  const micros = (echo?.rounds ?? []).flatMap(({ serverMicros }) => serverMicros ?? []).toSorted((a, b) => a - b)
  if (micros.length === 0 || connections === 1) return undefined
  const speeds = { quickMicros: percentile(micros, 25), slowMicros: percentile(micros, 75) }
  return speeds.slowMicros > speeds.quickMicros * SPEED_RATIO_MAX ? speeds : undefined
}

/** Returns the median over the rounds of one measure. */
export const medianOf = (subject: SubjectResult, measure: keyof Round): number | undefined => {
  const values = subject.rounds.map((round) => round[measure]).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : median(values)
}

/**
 * Returns the throughput of `subject` ÷ that of `other`: the median of the ratios round by round, which noise that
 * outlasts a round does not move.
 */
export const throughputRatio = (subject: SubjectResult, other: SubjectResult): number =>
  median(subject.rounds.map((round, i) => round.requestsPerSecond / other.rounds[i]!.requestsPerSecond))
