/**
 * Work that never ends: flushes, projections, timers, webhooks.
 *
 * What can go wrong is handled by whoever does the work. Anything else is a mistake of Till's, and ends the process: a
 * loop that ended alone would leave requests waiting for nothing, and nobody would hear of it. What was acknowledged is
 * in the journal.
 */
import { Cause, Effect } from "effect"

/** Takes step after step until it is interrupted. `name` is what the process says if a step dies. */
export const forever = <R>(name: string, step: Effect.Effect<unknown, never, R>): Effect.Effect<never, never, R> =>
  vital(name, Effect.forever(step))

/** The same for work that begins with something else. */
export const vital = <R>(name: string, work: Effect.Effect<never, never, R>): Effect.Effect<never, never, R> =>
  Effect.tapCause(work, (cause) =>
    Cause.hasInterruptsOnly(cause)
      ? Effect.void
      : Effect.sync(() => {
          // Outside of the fiber, where nothing catches it.
          setImmediate(() => {
            throw new Error(`The ${name} has come to an end`, { cause: Cause.squash(cause) })
          })
        })
  )
