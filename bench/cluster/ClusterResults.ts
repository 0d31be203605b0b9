/** The bench of several runners has measured this. `results/cluster.json` is exactly this, and the goals. */
import type { Latency } from "../load/Percentiles.ts"
import type { Machine } from "../Machine.ts"

/** One load on one installation. CPU times are per create and include what is done behind the answers. */
export interface ClusterRound extends Latency {
  readonly acknowledged: number
  readonly requestsPerSecond: number
  /** Of each runner, in the order of their start. Undefined, as Postgres', where the system does not tell. */
  readonly runnerMicros?: ReadonlyArray<number>
  readonly postgresMicros?: number
  readonly othersShare?: number
  /** Share of the creates, from 0 to 1, that came to another runner than the one that serves their account. */
  readonly forwardedShare: number
  /** Bytes of Postgres' write-ahead log per create. */
  readonly logBytes: number
}

/**
 * `sole` is one process without cluster, on its embedded Postgres. `local` and `forwarded` are one and the same load on
 * two runners, sent to the runner that serves all of its accounts, or to the other one.
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
  /** Each time, all processes are started anew, on new databases. */
  readonly starts: ReadonlyArray<ClusterStart>
}
