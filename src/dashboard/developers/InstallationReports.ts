/** What the dashboard asks about the installation that serves it. The composition root says who answers. */
import { Context, Effect } from "effect"
import { Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"

/** How an account stands in the storage. */
export interface StorageStanding {
  /** Of the database server. */
  readonly version: string
  /** Of all accounts together. */
  readonly database_bytes: number
  readonly records: number
  /** About. */
  readonly record_bytes: number
  readonly lag_records: number
  readonly pending: number
  readonly due: number
  /** Milliseconds; null if nothing is due. */
  readonly due_since: number | null
}

/** A process that serves the installation beside others. */
export interface RunnerSeen {
  readonly url: string
  readonly version: string
  /** Milliseconds. */
  readonly since: number
  readonly healthy: boolean
  readonly leaving: boolean
  readonly partitions: ReadonlyArray<number>
  readonly clock_ahead_millis: number
}

export interface InstallationReportsShape {
  /** Of Till. */
  readonly version: string
  readonly standing: (account: AccountId) => Effect.Effect<StorageStanding, Unavailable>
  /** None where one process has the installation to itself. */
  readonly runners: Effect.Effect<ReadonlyArray<RunnerSeen>, Unavailable>
}

const unknown = Effect.fail(new Unavailable({ reason: "Nobody tells how the installation does." }))

/** Nobody answers unless somebody provides for it: an engine in memory has no storage. */
export const InstallationReports: Context.Reference<InstallationReportsShape> = Context.Reference(
  "till/dashboard/InstallationReports",
  { defaultValue: (): InstallationReportsShape => ({ version: "", standing: () => unknown, runners: unknown }) }
)
