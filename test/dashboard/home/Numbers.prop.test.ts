/**
 * The intervals of the home page in every time zone (semantics dashboard.numbers, dashboard.time_zone).
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { startsOf } from "../../../src/dashboard/home/Numbers.ts"
import { timeZones, wallText } from "../../../src/dashboard/frame/TimeZones.ts"

const HOUR = 3600

describe("the intervals of the home page", () => {
  it.effect.prop(
    "are the newest days of the time zone, each from its first full hour of UTC on",
    {
      zone: Schema.Literals(timeZones() as ReadonlyArray<string>),
      now: Schema.Int.check(Schema.isBetween({ minimum: 1_400_000_000, maximum: 1_900_000_000 })),
      count: Schema.Literals([14, 180])
    },
    ({ count, now, zone }) =>
      Effect.sync(() => {
        const starts = startsOf("7d", count, now, zone)
        assert.strictEqual(starts.length, count)
        assert.isAtMost(starts.at(-1)!, now)
        const days = starts.map((start) => wallText(zone, start).slice(0, 10))
        assert.strictEqual(new Set(days).size, count)
        for (const [i, start] of starts.entries()) {
          assert.strictEqual(start % HOUR, 0)
          // The hour before is of the day before, at least in part.
          assert.isBelow(Date.parse(wallText(zone, start - HOUR).slice(0, 10)), Date.parse(days[i]!))
          const next = starts[i + 1]
          // Antarctica/Casey has moved its clocks by three hours.
          if (next !== undefined) assert.include([21, 22, 23, 24, 25, 26, 27], (next - start) / HOUR)
        }
        // The newest is today, or yesterday until the first full hour of today.
        const today = wallText(zone, now).slice(0, 10)
        if (days.at(-1) !== today) {
          assert.notStrictEqual(wallText(zone, starts.at(-1)!).slice(14, 16), "00")
          assert.include(wallText(zone, now), " 00:")
        }
      }),
    { arbitrary: { runs: 300 } }
  )

  it("are hours of UTC, in any zone", () => {
    const now = Date.parse("2026-11-27T04:53:45Z") / 1000
    for (const zone of ["UTC", "Asia/Kathmandu"]) {
      const starts = startsOf("24h", 24, now, zone)
      assert.deepStrictEqual([starts.length, starts.at(-1)], [24, Date.parse("2026-11-27T04:00Z") / 1000])
      assert.isTrue(starts.every((start, i) => i === 0 || start === starts[i - 1]! + HOUR))
    }
  })
})
