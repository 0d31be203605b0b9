/** Where the in-memory journal and views fail or dawdle: nowhere, unless a test says so. */
import { Context, Effect } from "effect"
import type { StorageFailure } from "./Journal.ts"

export type FaultPoint = "append.before" | "append.after" | "apply.before" | "apply.after" | "read"

export interface FaultsShape {
  /** Runs at the point: may fail (a failure after the write leaves its outcome unknown), wait, or do nothing. */
  readonly at: (point: FaultPoint) => Effect.Effect<void, StorageFailure>
}

export const Faults: Context.Reference<FaultsShape> = Context.Reference("till/engine/Faults", {
  defaultValue: (): FaultsShape => ({ at: () => Effect.void })
})
