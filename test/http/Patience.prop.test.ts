/** Whoever waits when the limit is over is interrupted, and nobody else, in whatever order others came and went. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { Patience } from "../../src/http/Patience.ts"
import { Randomness, Seed } from "../engine/Randomness.ts"

const LIMIT_MILLIS = 20

describe("patience", () => {
  it.live.prop(
    "interrupts exactly those whose wait has not ended",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Randomness(seed)
        const patience = new Patience(LIMIT_MILLIS)
        const begin = Effect.map(Effect.forkChild(Effect.never), (fiber) => ({ fiber, wait: patience.begin(fiber) }))
        const waiting: Array<Effect.Success<typeof begin>> = []
        const ended: typeof waiting = []
        for (let i = 0; i < 60; i++) {
          if (waiting.length === 0 || random.chance(0.6)) waiting.push(yield* begin)
          else {
            const [begun] = waiting.splice(random.below(waiting.length), 1)
            patience.end(begun!.wait)
            ended.push(begun!)
          }
        }
        for (const { fiber, wait } of waiting) {
          assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
          assert.isTrue(wait.isOver)
        }
        for (const { fiber, wait } of ended) {
          assert.isUndefined(fiber.pollUnsafe())
          assert.isFalse(wait.isOver)
        }
      }),
    { arbitrary: { runs: 30 } }
  )
})
