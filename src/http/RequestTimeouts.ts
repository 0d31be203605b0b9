/**
 * No read waits without a limit. A storage that hangs neither answers nor fails; a request that waits for it gets a 503
 * once the limit is over, as if the storage had failed.
 *
 * The interruption ends the wait, as if the client had gone away. A command that has begun takes no interruption: it
 * ends when the journal says so, whose own limit is in `postgres/StatementLimit.ts`. The time in which a body arrives
 * is the client's and not counted; Node's own limits are for that.
 *
 * One sweep looks at all requests that wait, so a request pays for nothing but its place in a list.
 */
import type { Fiber } from "effect"

/** Longer than a repetition waits for the first request with its key, which has an answer of its own (I8). */
export const REQUEST_MILLIS_MAX = 30_000

/** Sweeps per limit: a request waits for up to a tenth more. */
const SWEEPS = 10

/** One wait for the service. */
export class Wait {
  /** By `performance.now()`; Infinity while it is the client's turn. */
  since: number = performance.now()
  isOver = false
  /** Its place in the list of those who wait. */
  place = 0
  /** Waits; not known before it has to. */
  fiber: Fiber.Fiber<unknown, unknown> | undefined

  /** The client has to go on. */
  pause(): void {
    this.since = Infinity
  }

  /** The client has done its part. */
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

  /** Interrupts the fiber when the limit is over, unless the wait has ended. */
  watch(wait: Wait, fiber: Fiber.Fiber<unknown, unknown>): void {
    wait.fiber = fiber
    wait.place = this.#waits.push(wait) - 1
    if (this.#timer === undefined) this.#arm()
  }

  /** To be called once for each that is watched. The last one in the list takes the place. */
  end(wait: Wait): void {
    const last = this.#waits.pop()!
    if (last === wait) return
    last.place = wait.place
    this.#waits[wait.place] = last
  }

  /** The timer does not keep the process alive: requests under way do. */
  #arm(): void {
    this.#timer = setTimeout(() => this.#sweep(), this.#limitMillis / SWEEPS).unref()
  }

  #sweep(): void {
    this.#timer = undefined
    if (this.#waits.length === 0) return
    this.#arm()
    const latest = performance.now() - this.#limitMillis
    // An interruption may end its wait at once, which moves others in the list.
    for (const wait of this.#waits.filter(({ isOver, since }) => !isOver && since <= latest)) {
      wait.isOver = true
      wait.fiber!.interruptUnsafe()
    }
  }
}
