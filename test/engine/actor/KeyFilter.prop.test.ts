/** The filter of used idempotency keys: may be wrong about a new key, must never be wrong about a used one. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { RETENTION_MILLIS } from "../../../src/engine/actor/RunningTime.ts"
import { FilterRoom, KeyFilter } from "../../../src/engine/actor/KeyFilter.ts"

const Key = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(255))
const Part = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

/** Operations on a filter; times in retentions. */
const Step = Schema.Union([
  Schema.Struct({ do: Schema.Literal("use"), key: Key }),
  Schema.Struct({ do: Schema.Literal("ask"), key: Key }),
  Schema.Struct({ do: Schema.Literal("gather") }),
  Schema.Struct({ do: Schema.Literal("pass"), time: Part }),
  // A clock may be set by more than two generations, and back.
  Schema.Struct({
    do: Schema.Literal("set"),
    by: Schema.Finite.check(Schema.isBetween({ minimum: -5, maximum: 5 }))
  }),
  // The filter is made anew, as after a start.
  Schema.Struct({ do: Schema.Literal("start") })
])

const ample = () => new FilterRoom(1_000_000)

const completed = (now: number, room = ample()) => {
  const filter = new KeyFilter(now, room)
  filter.complete()
  return filter
}

const mistakenPart = (filter: KeyFilter, now: number): number => {
  const count = 50_000
  let mistaken = 0
  for (let i = 0; i < count; i++) if (filter.mayHave(`new-${i}`, now)) mistaken++
  return mistaken / count
}

describe("the filter of used keys", () => {
  it.effect.prop(
    "knows every key within its retention, however the clock moves and whenever it was started",
    { steps: Schema.Array(Step).check(Schema.isMaxLength(60)), bytes: Schema.Literals([0, 200, 2000, 1_000_000]) },
    ({ bytes, steps }) =>
      Effect.sync(() => {
        const used = new Map<string, number>()
        const room = new FilterRoom(bytes)
        let now = 10 * RETENTION_MILLIS
        let filter = new KeyFilter(now, room)
        let gathered: Array<readonly [string, number]> = []
        const finish = () => {
          for (const [key, at] of gathered.splice(0)) filter.add(key, at)
          filter.complete()
        }
        for (const step of steps) {
          if (step.do === "use") {
            used.set(step.key, now)
            filter.add(step.key, now)
          }
          if (step.do === "ask") filter.mayHave(step.key, now)
          if (step.do === "pass") now += Math.floor(step.time * RETENTION_MILLIS)
          if (step.do === "set") now = Math.max(0, now + Math.floor(step.by * RETENTION_MILLIS))
          if (step.do === "gather") finish()
          if (step.do === "start") {
            filter.release()
            filter = new KeyFilter(now, room)
            // The views have forgotten what is past its retention, even if the clock is put back.
            for (const [key, at] of used) if (now - at >= RETENTION_MILLIS) used.delete(key)
            gathered = [...used]
          }
          for (const [key, at] of used) {
            if (now - at < RETENTION_MILLIS) assert.isTrue(filter.mayHave(key, now), `${JSON.stringify(key)} of ${at}`)
          }
        }
      }),
    { arbitrary: { runs: 300 } }
  )

  it("takes few new keys for used ones, however many there are", () => {
    const filter = completed(0)
    for (let i = 0; i < 50_000; i++) filter.add(`used-${i}`, i % 2)
    assert.isBelow(mistakenPart(filter, 0), 0.02)
  })

  it("takes every key for used until it was told of all, however long that takes", () => {
    const filter = new KeyFilter(1000, ample())
    assert.isTrue(filter.mayHave("new", 1000))
    assert.isTrue(filter.mayHave("new", 1000 + 3 * RETENTION_MILLIS))
    filter.complete()
    assert.isFalse(filter.mayHave("new", 1000 + 3 * RETENTION_MILLIS))
  })

  it("forgets keys two retentions after they were used, and those of before it was made after one", () => {
    const filter = completed(1)
    filter.add("gathered", 0)
    filter.add("old", 2)
    assert.isTrue(filter.mayHave("gathered", RETENTION_MILLIS))
    assert.isFalse(filter.mayHave("gathered", RETENTION_MILLIS + 1))
    assert.isTrue(filter.mayHave("old", RETENTION_MILLIS + 1))
    assert.isFalse(filter.mayHave("old", 2 * RETENTION_MILLIS + 1))
  })

  it("takes every key for used while the clock stands before the end of what it has dropped", () => {
    const filter = completed(0)
    filter.add("used", RETENTION_MILLIS / 2)
    filter.mayHave("other", 2 * RETENTION_MILLIS)
    filter.mayHave("other", 4 * RETENTION_MILLIS)
    assert.isTrue(filter.mayHave("used", RETENTION_MILLIS))
    assert.isFalse(filter.mayHave("used", 2 * RETENTION_MILLIS))
  })

  it("mistakes more without room, and gives its room back", () => {
    const room = new FilterRoom(50_000)
    const first = completed(0, room)
    for (let i = 0; i < 100_000; i++) first.add(`used-${i}`, 1)
    const crowded = completed(0, room)
    for (let i = 0; i < 20_000; i++) crowded.add(`used-${i}`, 1)
    assert.isAbove(mistakenPart(crowded, 1), 0.5)
    for (let i = 0; i < 20_000; i++) assert.isTrue(crowded.mayHave(`used-${i}`, 1))
    first.release()
    crowded.release()
    const alone = completed(0, room)
    for (let i = 0; i < 2000; i++) alone.add(`used-${i}`, 1)
    assert.isBelow(mistakenPart(alone, 1), 0.02)
    alone.release()
    assert.isTrue(room.take(50_000))
  })
})
