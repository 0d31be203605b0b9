/**
 * Interruption of a command's work by a signal. Work that was interrupted is not done, and a script must not go on as
 * after a success: the command fails and asks for another run. (A signal that ends `till serve` in order is a success.)
 */
import { Effect } from "effect"

/** Fails the command if its work is interrupted. */
export const failing = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onInterrupt(work, () =>
    Effect.sync(() => {
      process.stderr.write("till: Interrupted before the end. Run the command again.\n")
      process.exitCode = 1
    })
  )
