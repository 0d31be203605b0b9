/** The measurements of the bench of several runners, which `results/cluster.json` holds with the goals. */
import type { Latency } from "../load/Percentiles.ts"
import type { Machine } from "../Machine.ts"

/** One load on one installation. CPU times are per create and include work behind the answers. */
export interface ClusterRound extends Latency {
  readonly acknowledged: number
  readonly requestsPerSecond: number
  /** CPU time of each runner, in the order of their start; undefined where the system does not report it. */
  readonly runnerMicros?: ReadonlyArray<number>
  readonly postgresMicros?: number
  readonly othersShare?: number
  /** Share of the creates, from 0 to 1, that arrive at a runner that does not serve their account. */
  readonly forwardedShare: number
  /** Bytes of Postgres' write-ahead log per create. */
  readonly logBytes: number
}

/**
 * `sole` is one process without a cluster, on its embedded Postgres. `local` and `forwarded` are the same load on two
 * runners, sent to the runner that serves all of its accounts, or to the other one.
 */
export const SUBJECTS = ["sole", "one", "two", "four", "local", "forwarded"] as const
export type SubjectName = (typeof SUBJECTS)[number]

/** The rounds of each subject; equal positions are close in time. */
export type ClusterStart = Readonly<Record<SubjectName, ReadonlyArray<ClusterRound>>>

export interface ClusterResults {
  readonly at: string
  readonly machine: Machine
  readonly accounts: number
  readonly connections: number
  /** The starts; each starts all processes on new databases. */
  readonly starts: ReadonlyArray<ClusterStart>
}
