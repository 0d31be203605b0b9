/** The filter of used idempotency keys: may be wrong about a new key, must never be wrong about a used one. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { KeyFilter, RETENTION_MILLIS } from "../../src/engine/KeyFilter.ts"

const Key = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(255))

describe("the filter of used keys", () => {
  it.effect.prop(
    "knows every key within its retention, whenever it was added",
    {
      keys: Schema.Array(
        Schema.Struct({ key: Key, age: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })) })
      )
    },
    ({ keys }) =>
      Effect.sync(() => {
        const filter = new KeyFilter(0)
        filter.complete()
        // Two and a half retentions, so that generations turn while keys are added.
        const end = 2.5 * RETENTION_MILLIS
        const timed = keys.map(({ age, key }) => ({ key, at: Math.floor(age * end) })).toSorted((a, b) => a.at - b.at)
        for (const { at, key } of timed) filter.add(key, at)
        for (const { at, key } of timed) {
          if (end - at < RETENTION_MILLIS) assert.isTrue(filter.mayHave(key, end), `${JSON.stringify(key)} of ${at}`)
        }
      })
  )

  it("takes few new keys for used ones, however many there are", () => {
    const filter = new KeyFilter(0)
    filter.complete()
    const count = 50_000
    for (let i = 0; i < count; i++) filter.add(`used-${i}`, 0)
    let mistaken = 0
    for (let i = 0; i < count; i++) if (filter.mayHave(`new-${i}`, 0)) mistaken++
    assert.isBelow(mistaken / count, 0.02)
  })

  it("takes every key for used until it has seen them all, or a retention has passed", () => {
    const filter = new KeyFilter(1000)
    assert.isTrue(filter.mayHave("new", 1000))
    assert.isTrue(filter.mayHave("new", 1000 + RETENTION_MILLIS - 1))
    assert.isFalse(filter.mayHave("new", 1000 + RETENTION_MILLIS))
    const told = new KeyFilter(1000)
    told.complete()
    assert.isFalse(told.mayHave("new", 1000))
  })

  it("forgets keys two retentions after they were used", () => {
    const filter = new KeyFilter(0)
    filter.complete()
    filter.add("old", 0)
    assert.isTrue(filter.mayHave("old", RETENTION_MILLIS))
    filter.add("other", RETENTION_MILLIS)
    filter.add("another", 2 * RETENTION_MILLIS)
    assert.isFalse(filter.mayHave("old", 2 * RETENTION_MILLIS))
  })
})
