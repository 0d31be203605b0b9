/**
 * Limits the wait of every request for the service. A storage that hangs neither answers nor fails; a request that
 * waits for it gets a 503 after the limit, as if the storage had failed.
 *
 * A time-out interrupts the wait, as if the client had left. A command that has begun is not interrupted: it ends with
 * the journal, which has its own limit in `postgres/StatementLimit.ts`. The arrival of a body is the client's time and
 * does not count; Node has its own limits for that.
 *
 * One fiber sweeps all waiting requests, so a request costs only its place in a list.
 */
import { Effect, Fiber, Latch, type Scope } from "effect"
import * as Loop from "../engine/process/Loop.ts"

/**
 * The default limit, in milliseconds. Longer than a repetition waits for the first request with its key, which has its
 * own answer (semantics idempotency.in_use).
 */
export const REQUEST_MILLIS_MAX = 30_000

/** Sweeps per limit: a wait may exceed the limit by a tenth. */
const SWEEPS = 10

/** A request's wait for the service. */
export class Wait {
  /** Sweeps during the wait; -Infinity while the client sends. */
  sweeps = 0
  isOver = false
  /** Index in the list of waits. */
  place = 0
  /** The waiting fiber; undefined before it waits. */
  fiber: Fiber.Fiber<unknown, unknown> | undefined

  /** Called while the client sends. */
  pause(): void {
    this.sweeps = -Infinity
  }

  /** Called when the client has sent its part. */
  resume(): void {
    this.sweeps = 0
  }
}

export class RequestTimeouts {
  readonly #waits: Array<Wait> = []
  readonly #work = Latch.makeUnsafe(false)
  #isClosed = false

  /** Starts the sweeps. At the end of the scope, all waits are interrupted. */
  static readonly make = Effect.fnUntraced(function* (
    limitMillis: number
  ): Effect.fn.Return<RequestTimeouts, never, Scope.Scope> {
    const timeouts = new RequestTimeouts()
    const step = Effect.gen(function* () {
      yield* timeouts.#work.await
      yield* Effect.sleep(limitMillis / SWEEPS)
      timeouts.#sweep()
    })
    yield* Effect.forkScoped(Loop.forever("time limit of requests", step))
    yield* Effect.addFinalizer(() => timeouts.#close)
    return timeouts
  })

  readonly #close = Effect.suspend(() => {
    this.#isClosed = true
    return Fiber.interruptAll(this.#waits.map(({ fiber }) => fiber!))
  })

  /** Interrupts the fiber after the limit, unless the wait has ended. */
  watch(wait: Wait, fiber: Fiber.Fiber<unknown, unknown>): void {
    wait.fiber = fiber
    wait.place = this.#waits.push(wait) - 1
    if (this.#waits.length === 1) this.#work.openUnsafe()
    if (this.#isClosed) fiber.interruptUnsafe()
  }

  /** Removes a wait; to be called once for each. The last wait of the list takes its place. */
  end(wait: Wait): void {
    const last = this.#waits.pop()!
    if (last === wait) return
    last.place = wait.place
    this.#waits[wait.place] = last
  }

  #sweep(): void {
    if (this.#waits.length === 0) return void this.#work.closeUnsafe()
    // An interruption may end its wait synchronously, which moves others in the list.
    for (const wait of this.#waits.filter((wait) => ++wait.sweeps > SWEEPS && !wait.isOver)) {
      wait.isOver = true
      wait.fiber!.interruptUnsafe()
    }
  }
}
