/**
 * Wall times of all time zones (semantics dashboard.time_zone), also on the days on which clocks change.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { readDay } from "../../../src/dashboard/frame/Form.ts"
import {
  dayOf,
  instantOf,
  inZone,
  isTimeZone,
  timeZones,
  wallOf,
  wallText,
  zoneOf
} from "../../../src/dashboard/frame/TimeZones.ts"
import { time } from "../../../src/dashboard/frame/Values.ts"
import { html } from "../../../src/html/Html.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const at = (text: string): number => Date.parse(`${text}Z`)
const iso = (millis: number): string => new Date(millis).toISOString().slice(0, 16)

describe("wall times", () => {
  it.effect.prop(
    "of any zone lead back to the first instant at which clocks show them",
    {
      zone: Schema.Literals(timeZones() as ReadonlyArray<string>),
      seconds: Schema.Int.check(Schema.isBetween({ minimum: 1_000_000_000, maximum: 2_000_000_000 }))
    },
    ({ seconds, zone }) =>
      Effect.sync(() => {
        const millis = seconds * 1000
        const found = instantOf(zone, wallOf(zone, millis))
        assert.strictEqual(wallOf(zone, found), wallOf(zone, millis))
        // An earlier instant only where clocks were set back in between, by three hours at most.
        assert.isAtMost(found, millis)
        assert.isAtMost(millis - found, 3 * HOUR)
        const day = instantOf(zone, dayOf(zone, millis))
        assert.isAtMost(day, millis)
        assert.strictEqual(dayOf(zone, day), dayOf(zone, millis))
        assert.notStrictEqual(dayOf(zone, day - MINUTE), dayOf(zone, millis))
      }),
    { arbitrary: { runs: 2000 } }
  )

  it.each([
    // Clocks are set ahead at 01:00 UTC, in Lisbon from 01:00 to 02:00.
    ["Europe/Lisbon", "2026-03-29T00:59", "2026-03-29T00:59"],
    ["Europe/Lisbon", "2026-03-29T01:30", "2026-03-29T01:30"],
    ["Europe/Lisbon", "2026-03-29T02:00", "2026-03-29T01:00"],
    // And back, from 02:00 to 01:00: the first of two.
    ["Europe/Lisbon", "2026-10-25T01:30", "2026-10-25T00:30"],
    ["Europe/Lisbon", "2026-10-25T02:30", "2026-10-25T02:30"],
    // Half an hour.
    ["Australia/Lord_Howe", "2026-10-04T02:30", "2026-10-03T15:30"],
    ["Asia/Kathmandu", "2026-01-01T00:00", "2025-12-31T18:15"],
    ["Pacific/Kiritimati", "2026-01-01T00:00", "2025-12-31T10:00"],
    // Midnight is skipped: the day begins at 01:00.
    ["America/Havana", "2026-03-08T00:00", "2026-03-08T05:00"]
  ])("of %s, %s, are the instant %s", (zone, wall, instant) => {
    assert.strictEqual(iso(instantOf(zone, at(wall))), instant)
  })

  it.each([
    ["UTC", "2026-03-29", 24],
    ["Europe/Lisbon", "2026-03-28", 24],
    ["Europe/Lisbon", "2026-03-29", 23],
    ["Europe/Lisbon", "2026-10-25", 25],
    ["America/New_York", "2026-03-08", 23],
    ["America/New_York", "2026-11-01", 25],
    ["America/Havana", "2026-03-08", 23],
    ["America/Havana", "2026-11-01", 25],
    ["Australia/Lord_Howe", "2026-10-04", 23.5],
    ["Australia/Lord_Howe", "2026-04-05", 24.5]
  ])("make the day of a filter in %s, %s, %f hours long", (zone, text, hours) => {
    const { from, until } = readDay(text, zone)!
    assert.strictEqual((until - from) / 3600, hours)
    assert.strictEqual(wallText(zone, from).slice(0, 10), text)
    assert.notStrictEqual(wallText(zone, from - 1).slice(0, 10), text)
    assert.notStrictEqual(wallText(zone, until).slice(0, 10), text)
    assert.strictEqual(wallText(zone, until - 1).slice(0, 10), text)
  })

  it("are written as Excel reads them", () => {
    const seconds = at("2026-11-27T04:53:45") / 1000
    assert.strictEqual(wallText("UTC", seconds), "2026-11-27 04:53:45")
    assert.strictEqual(wallText("Asia/Kolkata", seconds), "2026-11-27 10:23:45")
    assert.strictEqual(wallText("America/New_York", seconds), "2026-11-26 23:53:45")
  })
})

describe("a person's time zone", () => {
  it("is one of all that exist, by the names of today", () => {
    const names = timeZones()
    assert.strictEqual(new Set(names).size, names.length)
    assert.isAbove(names.length, 400)
    for (const name of names) assert.isNumber(wallOf(name, 0), name)
    assert.includeMembers(
      [...names],
      ["UTC", "Asia/Kolkata", "Europe/Kyiv", "America/Argentina/Buenos_Aires", "America/Nuuk", "Europe/Lisbon"]
    )
    const replaced = ["Asia/Calcutta", "Europe/Kiev", "America/Godthab", "Asia/Saigon"]
    assert.deepStrictEqual(
      names.filter((name) => replaced.includes(name)),
      []
    )
  })

  it("is UTC until it is set, and where a process does not know it", () => {
    assert.strictEqual(zoneOf({}), "UTC")
    assert.strictEqual(zoneOf({ time_zone: "Asia/Tokyo" }), "Asia/Tokyo")
    assert.strictEqual(zoneOf({ time_zone: "Mars/Olympus" }), "UTC")
    assert.isTrue(isTimeZone("UTC"))
    assert.isFalse(isTimeZone("toString"))
  })

  it("is that of the times of a page, but of no text in it", () => {
    const text = '<time datetime="2026-11-27T04:53:45.000Z" title="2026-11-27T04:53:45.000Z">x</time>'
    const page = html`<p title="${text}">${text} ${time(at("2026-11-27T04:53:45") / 1000)}</p>`
    const shown = inZone(page, "Asia/Tokyo").text
    assert.strictEqual(shown.match(/2026-11-27 13:53:45/g)?.length, 1)
    assert.strictEqual(shown.replace("2026-11-27 13:53:45", "2026-11-27 04:53:45"), page.text)
    assert.strictEqual(inZone(page, "UTC"), page)
  })
})
