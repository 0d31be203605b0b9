/** A bound on how many wait for an account, whatever it is that they wait for. */
import { Effect } from "effect"

/**
 * More wait for the account than may. This is a plain class, because it is made when there is most to do and least
 * time.
 */
export class MailboxFull {
  readonly _tag = "MailboxFull"
}

/** Reads that wait for the storage: more than so many do not begin while the first of them waits for so long. */
const READS_ENOUGH = 64
const READ_MILLIS_ENOUGH = 500

/** Effect's `Semaphore` counts as well, but only with effects; a command comes and goes without one. */
export class BoundedQueue {
  readonly #capacity: number
  readonly #now: () => number
  #waiting = 0
  /** When those came who wait with an effect, the first one first. */
  readonly #arrivals = new Set<{ readonly at: number }>()

  constructor(capacity: number, now: () => number = () => performance.now()) {
    this.#capacity = capacity
    this.#now = now
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

  /** An effect that counts as waiting while it runs. Where others wait for long already, it does not begin. */
  during<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | MailboxFull> {
    return Effect.acquireUseRelease(
      Effect.suspend(() => {
        const arrival = { at: this.#now() }
        if (this.#isSlow(arrival.at) || !this.enter()) return Effect.fail(new MailboxFull())
        this.#arrivals.add(arrival)
        return Effect.succeed(arrival)
      }),
      () => effect,
      (arrival) =>
        Effect.sync(() => {
          this.#arrivals.delete(arrival)
          this.leave()
        })
    )
  }

  #isSlow(now: number): boolean {
    if (this.#arrivals.size < READS_ENOUGH) return false
    const [first] = this.#arrivals
    return now - first!.at > READ_MILLIS_ENOUGH
  }
}
