/**
 * A snapshot: all reads of the journal and the views within it show the same moment, however long they take and
 * whatever other processes write. Nothing is written within it.
 *
 * Port. The default runs the reads without a snapshot, which is enough for a storage without other writers.
 */
import { Context, type Effect } from "effect"
import type { StorageFailure } from "./Journal.ts"

export interface SnapshotShape {
  readonly within: <A, E, R>(reading: Effect.Effect<A, E, R>) => Effect.Effect<A, E | StorageFailure, R>
}

export const Snapshot = Context.Reference<SnapshotShape>("till/engine/Snapshot", {
  defaultValue: () => ({ within: (reading) => reading })
})
