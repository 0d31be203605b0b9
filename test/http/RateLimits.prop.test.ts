/**
 * Fixed windows compared with a list of all events (semantics limits.rate), for random times and keys: also with a
 * clock that is set back.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { FixedWindows, KEYS_MAX, WINDOW_MILLIS } from "../../src/http/RateLimits.ts"
import { addressGroup } from "../../src/domain/Networks.ts"

const START = Date.UTC(2026, 10, 21)

/** Steps of time that mostly stay in a minute, sometimes leave it, and sometimes go back. */
const step = Schema.Struct({
  millis: Schema.Union([
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9000 })),
    Schema.Int.check(Schema.isBetween({ minimum: -90_000, maximum: 300_000 }))
  ]),
  key: Schema.Literals(["a", "b", "c"]),
  isPeek: Schema.Boolean
})

const run = {
  limit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 })),
  steps: Schema.Array(step).check(Schema.isMinLength(1), Schema.isMaxLength(80))
}

/** All events since a minute was last entered. */
class Model {
  readonly #limit: number
  #counted: Array<string> = []
  #minute = ""

  constructor(limit: number) {
    this.#limit = limit
  }

  step(key: string, at: Date, isPeek: boolean) {
    const minute = at.toISOString().slice(0, "2026-11-21T00:00".length)
    if (minute !== this.#minute) this.#counted = []
    this.#minute = minute
    if (!isPeek) this.#counted.push(key)
    const used = this.#counted.filter((counted) => counted === key).length
    const millisIntoMinute = at.getUTCSeconds() * 1000 + at.getUTCMilliseconds()
    return {
      limit: this.#limit,
      remaining: used > this.#limit ? 0 : this.#limit - used,
      isExceeded: used > this.#limit,
      resetSeconds: Math.ceil((60_000 - millisIntoMinute) / 1000)
    }
  }

  get keys(): number {
    return new Set(this.#counted).size
  }
}

describe("fixed windows", () => {
  it.effect.prop("allow as many events as the model, and remember no more keys", run, ({ limit, steps }) =>
    Effect.sync(() => {
      const windows = new FixedWindows(limit)
      const model = new Model(limit)
      let now = START
      for (const { isPeek, key, millis } of steps) {
        now += millis
        const standing = isPeek ? windows.peek(key, now) : windows.count(key, now)
        assert.deepStrictEqual(standing, model.step(key, new Date(now), isPeek))
        assert.strictEqual(windows.size, model.keys)
      }
    })
  )

  it("hold a bounded number of keys, refuse none because of others, and forget a key near its limit last", () => {
    const windows = new FixedWindows(2)
    const count = (key: string) => windows.count(key, START)
    for (const _ of "abc") count("somebody who is refused")
    count("somebody else")
    let refused = 0
    for (let i = 0; i < 3 * KEYS_MAX; i++) if (count(`one of very many ${i}`).isExceeded) refused++
    assert.strictEqual(refused, 0)
    assert.isAtMost(windows.size, KEYS_MAX)
    assert.isTrue(windows.peek("somebody who is refused", START).isExceeded)
    assert.isFalse(count("somebody else").isExceeded)
    assert.isTrue(windows.peek("somebody who is refused", START).isExceeded)
    assert.isFalse(windows.count("somebody who is refused", START + WINDOW_MILLIS).isExceeded)
    assert.strictEqual(windows.size, 1)
  })

  it("take about as long for a new key when they are full", () => {
    const windows = new FixedWindows(50)
    const cpuOf = (name: string) => {
      const before = process.cpuUsage()
      for (let i = 0; i < KEYS_MAX; i++) windows.count(`${name} ${i}`, START)
      const { system, user } = process.cpuUsage(before)
      return system + user
    }
    const [empty, full] = [cpuOf("before"), cpuOf("after")]
    assert.isBelow(full, 15 * empty)
  })
})

describe("senders", () => {
  const group = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff }))
  const groups = Schema.Array(Schema.Union([Schema.Literal(0), group])).check(
    Schema.isMinLength(8),
    Schema.isMaxLength(8)
  )
  const hex = (parts: ReadonlyArray<number>) => parts.map((part) => part.toString(16)).join(":")

  it.effect.prop(
    "with an IPv6 address are grouped by its first 64 bits, in any notation",
    { groups },
    ({ groups: parts }) =>
      Effect.sync(() => {
        // Only this range is treated differently: IPv4 addresses.
        if (parts.slice(0, 5).every((part) => part === 0) && parts[5] === 0xffff) return
        const network = hex(parts.slice(0, 4))
        const shortened = new URL(`http://[${hex(parts)}]`).hostname.slice(1, -1)
        for (const address of [hex(parts), shortened, `${shortened}%eth0`]) {
          assert.strictEqual(addressGroup(address), network, address)
        }
      })
  )

  it("with an IPv4 address are that address, also where IPv6 wraps it", () => {
    assert.strictEqual(addressGroup("203.0.113.7"), "203.0.113.7")
    assert.strictEqual(addressGroup("::ffff:203.0.113.7"), "203.0.113.7")
  })
})
