/** Properties of the pace at which attempts begin. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Pace, PER_TURN_MAX, PER_TURN_MIN, SPARE_MIN } from "../../src/webhooks/Pace.ts"

const share = (minimum: number, maximum: number) => Schema.Number.check(Schema.isBetween({ minimum, maximum }))
const busy = share(0, SPARE_MIN / 2)
const idle = share(2 * SPARE_MIN, 1)
const turns = Schema.Array(Schema.Union([busy, idle])).check(Schema.isMaxLength(60))
const millis = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
/** More turns than from the highest limit to the lowest, or back. */
const MANY = 60

const after = (shares: ReadonlyArray<number>): Pace => {
  const pace = new Pace()
  for (const spare of shares) pace.turned(spare)
  return pace
}

describe("the pace of webhooks", () => {
  it.prop("allows some attempts in any turn, and never too many", [turns, millis(0, 20_000)], ([shares, behind]) => {
    const pace = after(shares)
    for (const now of [1000, 1000 + behind]) {
      const allowed = pace.allowed(now, behind % 2 === 0)
      assert.isTrue(Number.isInteger(allowed) && allowed >= PER_TURN_MIN && allowed <= PER_TURN_MAX)
    }
  })

  it.prop(
    "falls to the lowest limit while the event loop is busy, and rises to the highest while it is idle",
    [turns, busy, idle],
    ([shares, b, i]) => {
      const pace = after([...shares, ...Array.from({ length: MANY }, () => b)])
      assert.strictEqual(pace.allowed(0, true), PER_TURN_MIN)
      for (let turn = 0; turn < MANY; turn++) pace.turned(i)
      assert.strictEqual(pace.allowed(0, true), PER_TURN_MAX)
    }
  )

  it.prop(
    "holds back no new deliveries after two seconds behind, and none at all after eight",
    [turns, millis(0, 6000)],
    ([shares, more]) => {
      for (const [hasNew, longest] of [
        [true, 2000],
        [false, 8000]
      ] as const) {
        const pace = after(shares)
        pace.allowed(0, hasNew)
        assert.strictEqual(pace.allowed(longest + more, hasNew), PER_TURN_MAX)
      }
    }
  )

  it.prop("holds retries back for longer than new deliveries", [busy, millis(500, 7999)], ([spare, behind]) => {
    const pace = after(Array.from({ length: MANY }, () => spare))
    pace.allowed(0, false)
    assert.isBelow(pace.allowed(behind, false), pace.allowed(behind, true))
  })

  it.prop(
    "starts again at the lowest limit once webhooks have caught up",
    [busy, millis(2000, 99_999)],
    ([spare, behind]) => {
      const pace = after(Array.from({ length: MANY }, () => spare))
      pace.allowed(0, false)
      assert.isAbove(pace.allowed(behind, false), PER_TURN_MIN)
      pace.caughtUp()
      assert.strictEqual(pace.allowed(behind, false), PER_TURN_MIN)
    }
  )
})
