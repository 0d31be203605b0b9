/** Batches: inputs that arrive during a query go into the next one, up to its limit. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import * as Batcher from "../../../src/engine/process/Batcher.ts"

/** Doubles numbers, and records its inputs. */
const doubles = () => {
  const queries: Array<ReadonlyArray<number>> = []
  const query = (numbers: ReadonlyArray<number>) =>
    Effect.andThen(
      Effect.yieldNow,
      Effect.sync(() => {
        queries.push(numbers)
        return numbers.map((n) => 2 * n)
      })
    )
  return { queries, query }
}

describe("batches", () => {
  it.effect("hold a limited number of inputs, and each gets its own answer", () =>
    Effect.gen(function* () {
      const { queries, query } = doubles()
      const lookUp = yield* Batcher.make(query, 10)
      const numbers = Array.from({ length: 25 }, (_, i) => i)
      const answers = yield* Effect.forEach(numbers, lookUp, { concurrency: "unbounded" })
      assert.deepStrictEqual(
        answers,
        numbers.map((n) => 2 * n)
      )
      assert.isAtMost(Math.max(...queries.map(({ length }) => length)), 10)
      assert.isBelow(queries.length, 5)
    })
  )

  it.effect("hold a limited number of lists; an empty list costs no query", () =>
    Effect.gen(function* () {
      const { queries, query } = doubles()
      const lookUp = yield* Batcher.makeForLists(query, 2)
      assert.deepStrictEqual(yield* lookUp([]), [])
      assert.deepStrictEqual(queries, [])
      const lists = [[1, 2, 3], [], [4], [5, 6], [7]]
      const answers = yield* Effect.forEach(lists, lookUp, { concurrency: "unbounded" })
      assert.deepStrictEqual(answers, [[2, 4, 6], [], [8], [10, 12], [14]])
      assert.isAtMost(Math.max(...queries.map(({ length }) => length)), 4)
    })
  )

  it.effect("whose query throws fail, and later ones are answered", () =>
    Effect.gen(function* () {
      const lookUp = yield* Batcher.make((numbers: ReadonlyArray<number>) => {
        if (numbers.includes(0)) throw new RangeError("no zero")
        return Effect.succeed(numbers.map((n) => 1 / n))
      })
      const refused = yield* Effect.exit(lookUp(0))
      assert.isTrue(Exit.isFailure(refused) && Cause.squash(refused.cause) instanceof RangeError)
      assert.strictEqual(yield* lookUp(2), 0.5)
    })
  )
})
