/**
 * Whether the storage takes writes. Reads may go on without them: where a disk is full, or a database is read-only.
 *
 * Port. A storage that nobody has reported on takes them, so that is what there is if none is provided.
 */
import { Context, Effect } from "effect"

export interface WritingShape {
  /** Why nothing can be written, in a sentence; undefined as long as the last write was not refused. */
  readonly refusal: () => string | undefined
  /** Tries a write that is taken back, if the last write was refused, and answers with the same as `refusal`. */
  readonly probe: Effect.Effect<string | undefined>
}

export const Writing = Context.Reference<WritingShape>("till/engine/Writing", {
  defaultValue: () => ({ refusal: () => undefined, probe: Effect.succeed(undefined) })
})

/** Logs a consequence of a failed write, unless the storage refuses all: that is logged once a minute, by itself. */
export const unlessRefused = (log: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.flatMap(Writing, ({ refusal }) => (refusal() === undefined ? log : Effect.void))
