/** The sweep interrupts every request that still waits at its limit, and no other, in any order of starts and ends. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { RequestTimeouts, Wait } from "../../src/http/RequestTimeouts.ts"
import { Random, Seed } from "../support/Random.ts"

/** Long enough that no wait reaches it by itself; sweeps come ten times as often. */
const LIMIT_MILLIS = 100

interface Begun {
  readonly fiber: Fiber.Fiber<never>
  readonly wait: Wait
}

/** A request that hangs. An interruption ends its wait synchronously, as with real requests. */
const hang = (timeouts: RequestTimeouts): Effect.Effect<Begun> =>
  Effect.gen(function* () {
    const begun: { wait?: Wait } = {}
    const fiber = yield* Effect.forkChild(
      Effect.onInterrupt(Effect.never, () => Effect.sync(() => timeouts.end(begun.wait!))),
      { startImmediately: true }
    )
    const wait = (begun.wait = new Wait())
    timeouts.watch(wait, fiber)
    return { fiber, wait }
  })

describe("the time limit of requests", () => {
  it.live.prop(
    "interrupts exactly those whose wait has not ended, together",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Random(seed)
        const timeouts = new RequestTimeouts(LIMIT_MILLIS)
        const waiting: Array<Begun> = []
        const ended: Array<Begun> = []
        for (let i = 0; i < 60; i++) {
          if (waiting.length === 0 || random.chance(0.6)) waiting.push(yield* hang(timeouts))
          else {
            const [begun] = waiting.splice(random.below(waiting.length), 1)
            timeouts.end(begun!.wait)
            ended.push(begun!)
          }
        }
        const over = waiting.filter(() => random.chance(0.7))
        const inTime = waiting.filter((begun) => !over.includes(begun))
        for (const { wait } of over) wait.since = -Infinity
        for (const { wait } of [...inTime, ...ended]) wait.pause()
        if (over.length > 0) yield* Effect.raceAllFirst(over.map(({ fiber }) => Fiber.await(fiber)))
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        for (const { fiber } of over) assert.isTrue(Exit.hasInterrupts(fiber.pollUnsafe()!))
        for (const { fiber, wait } of [...inTime, ...ended]) {
          assert.isUndefined(fiber.pollUnsafe())
          assert.isFalse(wait.isOver)
        }
      }),
    { arbitrary: { runs: 30 } }
  )
})
