/** A condition variable: fibers wait for a value that may change at any time. Code that changes it calls `signal`. */
import { Effect } from "effect"

export class Condition {
  readonly #checks = new Set<() => void>()

  /** Waits until `read` returns something other than undefined, and returns that. */
  waitFor<A>(read: () => A | undefined): Effect.Effect<A> {
    return Effect.callback((resume) => {
      const check = () => {
        const value = read()
        if (value === undefined) return
        this.#checks.delete(check)
        resume(Effect.succeed(value))
      }
      this.#checks.add(check)
      check()
      return Effect.sync(() => this.#checks.delete(check))
    })
  }

  signal(): void {
    for (const check of this.#checks) check()
  }
}
