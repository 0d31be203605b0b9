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

/** Counts the work that a loop has taken over, and lets others wait until what there is of it now is done. */
export class Backlog {
  // These are counts in the order of the work, because under a load that never pauses there is always something left.
  #taken = 0
  #done = 0
  #waiters: ReadonlyArray<{ readonly target: number; readonly resume: () => void }> = []

  take(): void {
    this.#taken++
  }

  /** Notes that so much of what was taken first is done. */
  done(count: number): void {
    this.#done += count
    if (this.#waiters.length === 0) return
    const reached = this.#waiters.filter(({ target }) => target <= this.#done)
    this.#waiters = this.#waiters.filter(({ target }) => target > this.#done)
    for (const { resume } of reached) resume()
  }

  /** Waits until everything that was taken before is done. */
  readonly drained: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#done === this.#taken) return resume(Effect.void)
    const waiter = { target: this.#taken, resume: () => resume(Effect.void) }
    this.#waiters = [...this.#waiters, waiter]
    return Effect.sync(() => {
      this.#waiters = this.#waiters.filter((other) => other !== waiter)
    })
  })
}
