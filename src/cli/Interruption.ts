/**
 * A signal ends `till serve` in order, which is a success. Work that a signal ends has not come to its end, and scripts
 * go on after a success: there it is a failure, which says what to do.
 */
import { Effect } from "effect"

/** Fails the command if its work is interrupted. */
export const failing = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onInterrupt(work, () =>
    Effect.sync(() => {
      process.stderr.write("till: Interrupted before it was done: run it again.\n")
      process.exitCode = 1
    })
  )
