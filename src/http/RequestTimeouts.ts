/**
 * Limits the wait of every request for the service. A storage that hangs neither answers nor fails; a request that
 * waits for it gets a 503 after the limit, as if the storage had failed.
 *
 * A time-out interrupts the wait, as if the client had left. A command that has begun is not interrupted: it ends with
 * the journal, which has its own limit in `postgres/StatementLimit.ts`. The arrival of a body is the client's time and
 * does not count; Node has its own limits for that.
 *
 * One periodic sweep checks all waiting requests, so a request costs only its place in a list.
 */
import type { Fiber } from "effect"

/**
 * The default limit, in milliseconds. Longer than a repetition waits for the first request with its key, which has its
 * own answer (semantics idempotency.in_use).
 */
export const REQUEST_MILLIS_MAX = 30_000

/** Sweeps per limit: a wait may exceed the limit by a tenth. */
const SWEEPS = 10

/** A request's wait for the service. */
export class Wait {
  /** Start of the wait, by `performance.now()`; Infinity while the client sends. */
  since: number = performance.now()
  isOver = false
  /** Index in the list of waits. */
  place = 0
  /** The waiting fiber; undefined before it waits. */
  fiber: Fiber.Fiber<unknown, unknown> | undefined

  /** Called while the client sends. */
  pause(): void {
    this.since = Infinity
  }

  /** Called when the client has sent its part. */
  resume(): void {
    this.since = performance.now()
  }
}

export class RequestTimeouts {
  readonly #limitMillis: number
  readonly #waits: Array<Wait> = []
  #timer: NodeJS.Timeout | undefined

  constructor(limitMillis: number) {
    this.#limitMillis = limitMillis
  }

  /** Interrupts the fiber after the limit, unless the wait has ended. */
  watch(wait: Wait, fiber: Fiber.Fiber<unknown, unknown>): void {
    wait.fiber = fiber
    wait.place = this.#waits.push(wait) - 1
    if (this.#timer === undefined) this.#arm()
  }

  /** Removes a wait; to be called once for each. The last wait of the list takes its place. */
  end(wait: Wait): void {
    const last = this.#waits.pop()!
    if (last === wait) return
    last.place = wait.place
    this.#waits[wait.place] = last
  }

  /** Starts the timer, which does not keep the process alive: running requests do. */
  #arm(): void {
    this.#timer = setTimeout(() => this.#sweep(), this.#limitMillis / SWEEPS).unref()
  }

  #sweep(): void {
    this.#timer = undefined
    if (this.#waits.length === 0) return
    this.#arm()
    const latest = performance.now() - this.#limitMillis
    // An interruption may end its wait synchronously, which moves others in the list.
    for (const wait of this.#waits.filter(({ isOver, since }) => !isOver && since <= latest)) {
      wait.isOver = true
      wait.fiber!.interruptUnsafe()
    }
  }
}
