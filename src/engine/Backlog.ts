/** Work that was taken over, and those who wait until what there is of it now is done. */
import { Effect } from "effect"

export class Backlog {
  // Counts, in the order of the work: under a load that never pauses there is always something left.
  #taken = 0
  #done = 0
  #waiters: ReadonlyArray<{ readonly target: number; readonly resume: () => void }> = []

  take(): void {
    this.#taken++
  }

  /** So much of what was taken first is done. */
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
