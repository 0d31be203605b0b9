/**
 * Tallies of documents read back from the text of their rows; those that would not fail the command.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import type { Kind } from "../../../src/engine/log/Document.ts"
import { entriesIn, entriesOf, entriesText, piecesOf, SPANS } from "../../../src/engine/log/Tallies.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import * as Harness from "../Harness.ts"

const number = Schema.Union([Schema.Int, Schema.Literals([-999_999_999_999_999, 0, 1, 999_999_999_999_999])])
const tallies = Schema.Array(
  Schema.Struct({
    at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4_000_000_000 })),
    key: Schema.Union([Schema.String, Schema.Literals(["paid usd", "declined eur lost_card", "ü's", '"', "\\", "\n"])]),
    count: number,
    amount: number
  })
)

const isKept = (entries: () => unknown): boolean => {
  try {
    entries()
    return true
  } catch {
    return false
  }
}

const tooLong = (value: number): boolean => Math.abs(value) > 999_999_999_999_999

describe("the steps of a query", () => {
  it.effect.prop(
    "contain every hour once, in whole days where a day lies within a step",
    { starts: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 200 }))) },
    ({ starts: unsorted }) =>
      Effect.sync(() => {
        const starts = [...new Set(unsorted)].toSorted((one, other) => one - other)
        const pieces = piecesOf({ starts })
        for (let hour = 0; hour < 260; hour++) {
          const containing = pieces.filter(({ from, until }) => hour >= from && hour < until)
          const step = starts.findLastIndex((start) => start <= hour)
          assert.deepStrictEqual(
            containing.map((piece) => piece.step),
            step === -1 ? [] : [step]
          )
          const day = hour - (hour % 24)
          const isWhole = step !== -1 && starts[step]! <= day && (starts[step + 1] ?? Infinity) >= day + 24
          assert.strictEqual(containing.at(0)?.hours ?? null, step === -1 ? null : isWhole ? 24 : 1)
        }
        for (const { from, hours, until } of pieces) {
          assert.include(SPANS, hours)
          if (hours === 24) assert.deepStrictEqual([from % 24, until === 10 ** 9 ? 0 : until % 24], [0, 0])
        }
      }),
    { arbitrary: { runs: 300 } }
  )
})

describe("the tallies of a document", () => {
  it.effect.prop(
    "read back as they were written, with the same sums in each hour, or cannot be written",
    { tallies },
    ({ tallies }) =>
      Effect.sync(() => {
        const sums = new Map<string, [number, number]>()
        for (const { amount, at, count, key } of tallies) {
          const [counted, summed] = sums.get(`${Math.floor(at / 3600)} ${key}`) ?? [0, 0]
          sums.set(`${Math.floor(at / 3600)} ${key}`, [counted + count, summed + amount])
        }
        const some = [...sums].filter(([, [count, amount]]) => count !== 0 || amount !== 0)
        const isAwkward = some.some(([id, sum]) => JSON.stringify(id) !== `"${id}"` || sum.some(tooLong))
        if (!isKept(() => entriesOf(tallies))) return assert.isTrue(isAwkward)
        assert.isFalse(isAwkward)
        const entries = entriesOf(tallies)
        assert.deepStrictEqual(entriesIn(entriesText(entries)), entries)
        const kept = entries.map(({ amount, count, hour, key }): unknown => [`${hour} ${key}`, [count, amount]])
        assert.sameDeepMembers(kept, some)
      }),
    { arbitrary: { runs: 500 } }
  )

  it.effect("fail only the command that writes them, if they cannot be stored", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const storage = yield* Harness.storageInMemory
      const kind: Kind<{ readonly id: string; readonly key: string }> = {
        name: "counted",
        tallies: ({ key }) => [{ at: 0, key, count: 1, amount: 2 }]
      }
      const engine = yield* Harness.startEngine(storage, { kinds: [kind] })
      const create = (key: string) =>
        engine.accounts.run(
          "mer_1:test",
          Effect.map(Transaction, (transaction) => transaction.put(kind, { id: transaction.newId("doc"), key }))
        )
      yield* create("a key")
      assert.isTrue(Exit.isFailure(yield* Effect.exit(create('a "key"'))))
      yield* create("a key")
      assert.deepStrictEqual(yield* engine.accounts.tallies("mer_1:test", { starts: [0, 1] }), [
        { step: 0, key: "a key", count: 2, amount: 4 }
      ])
      yield* engine.stop
      yield* Harness.verified(storage, [kind])
    })
  )
})
