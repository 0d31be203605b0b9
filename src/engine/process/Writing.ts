/**
 * Port: whether the storage accepts writes. With a full disk or a read-only database, reads may still work.
 *
 * Without a provided service, the storage accepts writes.
 */
import { Context, Effect } from "effect"

export interface WritingShape {
  /** The reason why the last write was refused, as a sentence; undefined if it was not. */
  readonly refusal: () => string | undefined
  /** If the last write was refused, tries a write and rolls it back. Returns the same as `refusal`. */
  readonly probe: Effect.Effect<string | undefined>
}

export const Writing = Context.Reference<WritingShape>("till/engine/Writing", {
  defaultValue: () => ({ refusal: () => undefined, probe: Effect.succeed(undefined) })
})
