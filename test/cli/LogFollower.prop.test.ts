/** The follower neither misses nor repeats a request, though requests enter the log late and out of order. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Schema } from "effect"
import { TestClock } from "effect/testing"
import { LogFollower } from "../../src/cli/LogFollower.ts"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
/** A request: milliseconds since the previous one, and milliseconds until it is in the log. */
const arrivals = Schema.Array(
  Schema.Struct({ gap: between(0, 3000), takes: between(0, 8000), isFollowed: Schema.Boolean })
).check(Schema.isMaxLength(60))
const before = between(0, 5)

describe("a follower of a log", () => {
  it.effect.prop(
    "shows each matching request once, and none of before its start",
    { arrivals, before },
    ({ arrivals, before }) =>
      Effect.gen(function* () {
        let at = 0
        const all = arrivals.map(({ gap, isFollowed, takes }, i) => {
          at += gap
          return { id: String(i).padStart(4, "0"), isFollowed, loggedAt: i < before ? 0 : at + takes }
        })
        let now = 0
        let asked = 0
        const logged = () => all.filter(({ loggedAt }) => loggedAt <= now)
        const follower = new LogFollower({
          newest: Effect.sync(() => logged().at(-1)?.id),
          after: (id) =>
            Stream.unwrap(
              Effect.suspend(() => {
                // Sometimes the service is unavailable, also in the middle of a page.
                const items = logged().filter((request) => request.isFollowed && (id === undefined || request.id > id))
                const isAway = ++asked % 5 === 0
                const some = Stream.fromIterable(isAway ? items.slice(0, items.length / 2) : items)
                return Effect.succeed(isAway ? Stream.concat(some, Stream.fail("away")) : some)
              })
            )
        })
        follower.begin(logged().at(-1)?.id, [])
        const beginning = new Set(logged().map(({ id }) => id))
        const shown: Array<string> = []
        for (; now < at + 12_000; now += 1000) {
          yield* TestClock.adjust(1000)
          yield* Effect.ignore(follower.poll(({ id }) => Effect.sync(() => shown.push(id))))
        }
        const expected = all.filter(({ id, isFollowed }) => isFollowed && !beginning.has(id)).map(({ id }) => id)
        // Requests that entered the log after a newer one that existed at the start are not expected.
        const newest = [...beginning].at(-1) ?? ""
        assert.deepStrictEqual(
          shown.toSorted(),
          expected.filter((id) => id > newest)
        )
      })
  )
})
