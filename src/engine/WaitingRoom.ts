/** A bound on how many wait for an account, whatever it is that they wait for. */
import { Effect } from "effect"

/**
 * More wait for the account than may. This is a plain class, because it is made when there is most to do and least
 * time.
 */
export class MailboxFull {
  readonly _tag = "MailboxFull"
}

/** Effect's `Semaphore` counts as well, but only with effects; a command comes and goes without one. */
export class WaitingRoom {
  readonly #capacity: number
  #waiting = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get isEmpty(): boolean {
    return this.#waiting === 0
  }

  /** Says whether there is room; whoever entered must leave. */
  enter(): boolean {
    if (this.#waiting >= this.#capacity) return false
    this.#waiting++
    return true
  }

  leave(): void {
    this.#waiting--
  }

  /** An effect that counts as waiting while it runs. */
  during<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | MailboxFull> {
    return Effect.acquireUseRelease(
      Effect.suspend(() => (this.enter() ? Effect.void : Effect.fail(new MailboxFull()))),
      () => effect,
      () => Effect.sync(() => this.leave())
    )
  }
}
