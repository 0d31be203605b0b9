/** The sweeps interrupt every request that waits for longer than the limit, and no other; the end interrupts all. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { RequestTimeouts, Wait } from "../../src/http/RequestTimeouts.ts"
import { Random, Seed } from "../support/Random.ts"

const LIMIT_MILLIS = 100

/** A request that hangs. An interruption ends its wait synchronously, as with real requests. */
class Hanging {
  readonly wait = new Wait()
  fiber!: Fiber.Fiber<never>
  /** Start of the wait, or of the time since the client has sent its part; null while the client sends. */
  since: number | null
  interruptedAt: number | undefined

  constructor(now: number) {
    this.since = now
  }
}

const hang = Effect.fnUntraced(function* (timeouts: RequestTimeouts) {
  const clock = yield* Clock.Clock
  const request = new Hanging(clock.currentTimeMillisUnsafe())
  const interrupted = Effect.sync(() => {
    request.interruptedAt = clock.currentTimeMillisUnsafe()
    timeouts.end(request.wait)
  })
  request.fiber = yield* Effect.forkChild(
    Effect.onInterrupt(Effect.never, () => interrupted),
    {
      startImmediately: true
    }
  )
  timeouts.watch(request.wait, request.fiber)
  return request
})

describe("the time limit of requests", () => {
  it.effect.prop(
    "interrupts those that wait for longer, and no other, in any order of starts, pauses and ends",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Random(seed)
        const scope = yield* Scope.make()
        const timeouts = yield* Scope.provide(RequestTimeouts.make(LIMIT_MILLIS), scope)
        const all: Array<Hanging> = []
        let waiting: Array<Hanging> = []
        for (let i = 0; i < 200; i++) {
          yield* TestClock.adjust(random.below(10))
          const now = yield* Clock.currentTimeMillis
          waiting = waiting.filter(({ interruptedAt }) => interruptedAt === undefined)
          for (const { since } of waiting) if (since !== null) assert.isAtMost(now - since, 1.1 * LIMIT_MILLIS)
          const request = random.pick([undefined, ...waiting])
          if (request === undefined || random.chance(0.5)) {
            const request = yield* hang(timeouts)
            all.push(request)
            waiting.push(request)
          } else if (random.chance(0.3)) {
            timeouts.end(request.wait)
            waiting = waiting.filter((other) => other !== request)
          } else if (request.since === null) {
            request.wait.resume()
            request.since = now
          } else {
            request.wait.pause()
            request.since = null
          }
        }
        yield* TestClock.adjust(1.1 * LIMIT_MILLIS)
        for (const request of all) {
          const { fiber, interruptedAt, since, wait } = request
          if (interruptedAt === undefined) {
            assert.isTrue(since === null || !waiting.includes(request))
            assert.isUndefined(fiber.pollUnsafe())
            assert.isFalse(wait.isOver)
          } else {
            assert.isAtLeast(interruptedAt - since!, LIMIT_MILLIS)
            assert.isTrue(wait.isOver)
          }
        }
        assert.isTrue(all.some(({ interruptedAt }) => interruptedAt !== undefined))
        const waitingStill = waiting.filter(({ interruptedAt }) => interruptedAt === undefined)
        yield* Scope.close(scope, Exit.void)
        for (const request of [...waitingStill, yield* hang(timeouts)]) {
          assert.isDefined(request.interruptedAt)
          assert.isFalse(request.wait.isOver)
        }
      }),
    { arbitrary: { runs: 30 } }
  )
})
