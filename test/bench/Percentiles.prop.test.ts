import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { median, percentile, Samples } from "../../bench/load/Percentiles.ts"

/** The sum of two such values is finite. */
const Value = Schema.Finite.check(Schema.isBetween({ minimum: -1e300, maximum: 1e300 }))
const Values = Schema.Array(Value).check(Schema.isMinLength(1))
const Percent = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))

describe("percentile", () => {
  it.effect.prop(
    "is a value that enough others do not exceed, and no smaller value is",
    [Values, Percent],
    ([values, percent]) =>
      Effect.sync(() => {
        const found = percentile(Float64Array.from(values).toSorted(), percent)
        const share = (limit: (value: number) => boolean) => (values.filter(limit).length / values.length) * 100
        assert.include(values, found)
        assert.isAtLeast(share((value) => value <= found) + 1e-9, percent)
        assert.isBelow(
          share((value) => value < found),
          percent + 1e-9
        )
      })
  )

  it("follows the nearest rank", () => {
    const hundred = Array.from({ length: 100 }, (_, i) => i + 1)
    assert.deepStrictEqual(
      [50, 99, 100].map((percent) => percentile(hundred, percent)),
      [50, 99, 100]
    )
    assert.strictEqual(percentile([15, 20, 35, 40, 50], 40), 20)
    assert.strictEqual(percentile([7], 99), 7)
    assert.throws(() => percentile([], 50), "No values")
  })
})

describe("median", () => {
  it.effect.prop("has as many values below as above, whatever their order", [Values], ([values]) =>
    Effect.sync(() => {
      const middle = median(values)
      const below = values.filter((value) => value < middle).length
      const above = values.filter((value) => value > middle).length
      assert.isAtMost(Math.max(below, above), values.length / 2)
      assert.strictEqual(median(values.toReversed()), middle)
    })
  )

  it("is the mean of the two in the middle", () => assert.strictEqual(median([10, 1, 4, 2]), 3))
})

describe("Samples", () => {
  it("keeps every value while it grows", () => {
    const samples = new Samples()
    for (let value = 200_000; value > 0; value--) samples.add(value)
    const ascending = samples.ascending()
    assert.strictEqual(ascending.length, 200_000)
    assert.isTrue(ascending.every((value, i) => value === i + 1))
  })
})
