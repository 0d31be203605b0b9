/**
 * A snapshot: what is read within it, of the journal and the views, is as of one moment, however long it takes and
 * whoever writes meanwhile. Nothing is written within it.
 *
 * Port. A storage that nobody else writes to needs none, so that is what there is if none is provided.
 */
import { Context, type Effect } from "effect"
import type { StorageFailure } from "./Journal.ts"

export interface SnapshotShape {
  readonly within: <A, E, R>(reading: Effect.Effect<A, E, R>) => Effect.Effect<A, E | StorageFailure, R>
}

export const Snapshot = Context.Reference<SnapshotShape>("till/engine/Snapshot", {
  defaultValue: () => ({ within: (reading) => reading })
})
