/** A run has measured this. The JSON report is exactly this. */
import type { ContenderName } from "./Contender.ts"
import type { LoadResult } from "./load/LoadPlan.ts"
import type { Latency, TailLatency } from "./load/Percentiles.ts"
import { median, percentile } from "./load/Percentiles.ts"
import type { Machine } from "./Machine.ts"
import type { Spent } from "./SpentTime.ts"

/** One load on one server. CPU times are per request and include the work that the server does after its answers. */
export interface Round extends Omit<LoadResult, "latencies">, Latency, Spent {}

export interface SubjectResult {
  readonly title: string
  readonly contender: ContenderName
  /** Of the requests of all rounds together. */
  readonly latency: Latency
  /** In order; the rounds of all subjects took turns, so equal positions are close in time. */
  readonly rounds: ReadonlyArray<Round>
}

export interface ScenarioResult {
  readonly name: string
  readonly title: string
  readonly connections: number
  /** The first one is what the others are compared with. */
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
  /** Servers that were not to be had, and why. */
  readonly leftOut: ReadonlyArray<string>
  /** What could not be measured, and why. */
  readonly failures: ReadonlyArray<string>
}

/** Above this share for others, a machine is not quiet enough to judge by. */
const OTHERS_SHARE_MAX = 0.1

/** The share of the machine that others had at least in the noisiest quarter of the measurements, if it is too much. */
export const noiseIn = (shares: ReadonlyArray<number | undefined>): number | undefined => {
  const known = shares.filter((share) => share !== undefined).toSorted((a, b) => a - b)
  const share = known.length === 0 ? 0 : percentile(known, 75)
  return share > OTHERS_SHARE_MAX ? share : undefined
}

/** Says how much of the machine others had in the scenario's noisiest rounds, if it is too much. */
export const noiseOf = ({ subjects }: ScenarioResult): number | undefined =>
  noiseIn(subjects.flatMap(({ rounds }) => rounds.map(({ othersShare }) => othersShare)))

/** From so many times the CPU time for the same work on, the machine is not steady enough to judge by. */
const SPEED_RATIO_MAX = 1.25

/** CPU time of a request in the quickest and in the slowest quarter of some rounds, in microseconds. */
export interface Speeds {
  readonly quickMicros: number
  readonly slowMicros: number
}

/**
 * Says how fast the machine was in the scenario's rounds, if that differed too much. The echo tells: it always does the
 * same, and nothing for others. With one connection it is the system's waking up that is measured, so that tells
 * nothing.
 */
export const unsteadinessOf = ({ connections, subjects }: ScenarioResult): Speeds | undefined => {
  const echo = subjects.find(({ contender }) => contender === "echo")
  const micros = (echo?.rounds ?? []).flatMap(({ serverMicros }) => serverMicros ?? []).toSorted((a, b) => a - b)
  if (micros.length === 0 || connections === 1) return undefined
  const speeds = { quickMicros: percentile(micros, 25), slowMicros: percentile(micros, 75) }
  return speeds.slowMicros > speeds.quickMicros * SPEED_RATIO_MAX ? speeds : undefined
}

/** The median round by each measure on its own. */
export const medianOf = (subject: SubjectResult, measure: keyof Round): number | undefined => {
  const values = subject.rounds.map((round) => round[measure]).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : median(values)
}

/**
 * Throughput of `subject` in units of `other`'s: the median of the ratios round by round, which noise of the machine
 * that lasts longer than a round does not touch.
 */
export const throughputRatio = (subject: SubjectResult, other: SubjectResult): number =>
  median(subject.rounds.map((round, i) => round.requestsPerSecond / other.rounds[i]!.requestsPerSecond))
