/** Bounds the number of commands and reads that wait for an account. */
import { type Clock, Effect } from "effect"

/** The queue of the account is full. A plain class, because it is made most often when the load is highest. */
export class MailboxFull {
  readonly _tag = "MailboxFull"
}

/** Once this many reads wait, and the oldest has waited this long, further reads are refused. */
const READS_ENOUGH = 64
const READ_NANOS_ENOUGH = 500_000_000n

/** Effect's `Semaphore` counts too, but only around effects; commands enter and leave in plain code. */
export class BoundedQueue {
  readonly #capacity: number
  readonly #clock: Pick<Clock.Clock, "monotonicTimeNanosUnsafe">
  #waiting = 0
  /** Arrivals of waiting reads, oldest first. */
  readonly #arrivals = new Set<{ readonly at: bigint }>()

  constructor(capacity: number, clock: Pick<Clock.Clock, "monotonicTimeNanosUnsafe">) {
    this.#capacity = capacity
    this.#clock = clock
  }

  get isEmpty(): boolean {
    return this.#waiting === 0
  }

  get size(): number {
    return this.#waiting
  }

  /** Takes a place; false if there is none. Each `enter` that returned true needs a `leave`. */
  enter(): boolean {
    if (this.#waiting >= this.#capacity) return false
    this.#waiting++
    return true
  }

  leave(): void {
    this.#waiting--
  }

  /** Runs an effect that counts as waiting. Fails without running it if there is no place. */
  during<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | MailboxFull> {
    return Effect.acquireUseRelease(
      Effect.suspend(() => {
        const arrival = { at: this.#clock.monotonicTimeNanosUnsafe() }
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

  #isSlow(now: bigint): boolean {
    if (this.#arrivals.size < READS_ENOUGH) return false
    const [first] = this.#arrivals
    return now - first!.at > READ_NANOS_ENOUGH
  }
}
