/** A port to measurements of the installation. The composition root provides the implementation. */
import { Context, Effect } from "effect"
import { Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"

export interface StorageStanding {
  readonly version: string
  /** Size of the whole database, all accounts. */
  readonly database_bytes: number
  readonly records: number
  /** An estimate. */
  readonly record_bytes: number
  readonly lag_records: number
  readonly pending: number
  readonly due: number
  /** Due time of the oldest delivery in milliseconds; null if none is due. */
  readonly due_since: number | null
}

export interface RunnerSeen {
  readonly url: string
  readonly version: string
  /** Start time in milliseconds. */
  readonly since: number
  readonly healthy: boolean
  readonly leaving: boolean
  readonly partitions: ReadonlyArray<number>
  readonly clock_ahead_millis: number
}

export interface InstallationReportsShape {
  readonly version: string
  readonly standing: (account: AccountId) => Effect.Effect<StorageStanding, Unavailable>
  /** Empty if the installation has a single process. */
  readonly runners: Effect.Effect<ReadonlyArray<RunnerSeen>, Unavailable>
}

const unknown = Effect.fail(new Unavailable({ reason: "This installation has no reports." }))

/** Fails unless an implementation is provided: an in-memory engine has no storage. */
export const InstallationReports: Context.Reference<InstallationReportsShape> = Context.Reference(
  "till/dashboard/InstallationReports",
  { defaultValue: (): InstallationReportsShape => ({ version: "", standing: () => unknown, runners: unknown }) }
)
