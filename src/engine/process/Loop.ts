/**
 * Work that never ends: flushes, projections, timers, webhooks.
 *
 * Each loop handles its expected failures itself. Anything else is a bug in Till and ends the process: if only the loop
 * ended, requests would wait for ever, and no log line would say why. Acknowledged commands are in the journal.
 */
import { Cause, Effect } from "effect"
import { Condition } from "./Condition.ts"

/** Repeats a step until it is interrupted. `name` appears in the error that ends the process if a step dies. */
export const forever = <R>(name: string, step: Effect.Effect<unknown, never, R>): Effect.Effect<never, never, R> =>
  vital(name, Effect.forever(step))

/** Runs work that must not fail, like `forever` for work that is more than one repeated step. */
export const vital = <A, R>(name: string, work: Effect.Effect<A, never, R>): Effect.Effect<A, never, R> =>
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

/** Counts the work that a loop has taken over. Other fibers can wait until the work taken so far is done. */
export class Backlog {
  // Counts in the order of the work: under a continuous load the backlog is never empty.
  #taken = 0
  #done = 0
  readonly #progress = new Condition()

  take(): void {
    this.#taken++
  }

  /** Notes that the `count` oldest pieces of work are done. */
  done(count: number): void {
    this.#done += count
    this.#progress.signal()
  }

  /** Waits until all work taken before the call is done. */
  readonly drained: Effect.Effect<void> = Effect.suspend(() => {
    const target = this.#taken
    return this.#done >= target ? Effect.void : this.#progress.waitFor(() => this.#done >= target || undefined)
  })
}
