/** Batches: what is asked for while a query is under way goes into the next, as much as it may take. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import * as Batcher from "../../../src/engine/process/Batcher.ts"

/** Takes numbers to their doubles, and remembers what it was asked for. */
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
  it.effect("hold so many questions at most, and each gets its own answer", () =>
    Effect.gen(function* () {
      const { queries, query } = doubles()
      const ask = yield* Batcher.make(query, 10)
      const numbers = Array.from({ length: 25 }, (_, i) => i)
      const answers = yield* Effect.forEach(numbers, ask, { concurrency: "unbounded" })
      assert.deepStrictEqual(
        answers,
        numbers.map((n) => 2 * n)
      )
      assert.isAtMost(Math.max(...queries.map(({ length }) => length)), 10)
      assert.isBelow(queries.length, 5)
    })
  )

  it.effect("hold so many lists at most; one of nothing costs no query", () =>
    Effect.gen(function* () {
      const { queries, query } = doubles()
      const ask = yield* Batcher.makeForLists(query, 2)
      assert.deepStrictEqual(yield* ask([]), [])
      assert.deepStrictEqual(queries, [])
      const lists = [[1, 2, 3], [], [4], [5, 6], [7]]
      const answers = yield* Effect.forEach(lists, ask, { concurrency: "unbounded" })
      assert.deepStrictEqual(answers, [[2, 4, 6], [], [8], [10, 12], [14]])
      assert.isAtMost(Math.max(...queries.map(({ length }) => length)), 4)
    })
  )

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
