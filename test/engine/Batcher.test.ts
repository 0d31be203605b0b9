import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import * as Batcher from "../../src/engine/Batcher.ts"

describe("batched look-ups", () => {
  it.effect("that cannot even be asked fail, and those after them are answered", () =>
    Effect.gen(function* () {
      const ask = yield* Batcher.make((numbers: ReadonlyArray<number>) => {
        if (numbers.includes(0)) throw new RangeError("no zero")
        return Effect.succeed(numbers.map((n) => 1 / n))
      })
      const refused = yield* Effect.exit(ask(0))
      assert.isTrue(Exit.isFailure(refused) && Cause.squash(refused.cause) instanceof RangeError)
      assert.strictEqual(yield* ask(2), 0.5)
    })
  )
})
