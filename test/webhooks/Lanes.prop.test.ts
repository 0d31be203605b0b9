/**
 * Lanes decide which delivery is attempted next, by turns, widths and bounds.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { setImmediate } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { DueDelivery } from "../../src/engine/Deliveries.ts"
import type { StoredEvent } from "../../src/engine/log/Events.ts"
import { type Attempt, Lanes } from "../../src/webhooks/Lanes.ts"
import { Random, Seed } from "../support/Random.ts"

const due = (destination: string, n: number, account: string = "mer_1:test"): DueDelivery => ({
  account,
  id: `whd_${destination}_${n}`,
  destination,
  event: `evt_${n}`,
  eventVersion: n,
  attempt: 1
})

const event: StoredEvent = {
  id: "evt_1",
  type: "counter.created",
  at: 0,
  request: null,
  object: "{}",
  format: 1,
  apiVersion: "1",
  previous: null,
  version: 1,
  deliveries: 1
}

const filled = (destinations: ReadonlyArray<string>, each: number): Lanes => {
  const lanes = new Lanes()
  for (let n = 0; n < each; n++) for (const one of destinations) lanes.add(due(one, n), null)
  return lanes
}

/** Starts all attempts that may start now. */
const startAll = (lanes: Lanes, now: number): Array<Attempt> => {
  const started: Array<Attempt> = []
  for (let one = lanes.next(now); one !== undefined; one = lanes.next(now)) started.push(one)
  return started
}

const names = (attempts: ReadonlyArray<Attempt>) => attempts.map(({ delivery }) => delivery.id.slice("whd_".length))

describe("lanes", () => {
  it("take turns, each in its own order", () => {
    assert.deepStrictEqual(names(startAll(filled(["a", "b", "c"], 2), 0)), ["a_0", "b_0", "c_0", "a_1", "b_1", "c_1"])
  })

  it("hold a delivery once, until it is released", () => {
    const lanes = new Lanes()
    assert.isTrue(lanes.add(due("a", 1), null))
    assert.isFalse(lanes.add(due("a", 1), null))
    const [attempt] = startAll(lanes, 0)
    assert.isFalse(lanes.add(due("a", 1), null))
    lanes.end(attempt!, true)
    assert.isFalse(lanes.add(due("a", 1), null), "its outcome is not durable yet")
    lanes.release(attempt!.delivery)
    assert.isTrue(lanes.add(due("a", 1), null))
    assert.isTrue(lanes.add(due("a", 1, "mer_2:test"), null), "the same id of another account is another delivery")
  })

  it("start a delivery's next attempt after the present one, if it is due before the present one's outcome is known", () => {
    const lanes = new Lanes()
    const first = due("a", 1)
    lanes.add(first, null)
    const [attempt] = startAll(lanes, 0)
    lanes.end(attempt!, false)
    const again = { ...first, attempt: first.attempt + 1 }
    assert.isFalse(lanes.add(again, null), "it is leased to this process, and no other gets it for minutes")
    assert.isFalse(lanes.add(first, null), "the row is from before")
    assert.deepStrictEqual(startAll(lanes, 0), [])
    lanes.release(first)
    const [next] = startAll(lanes, 0)
    assert.strictEqual(next!.delivery, again)
    // A delivery that is canceled during an attempt has no next one.
    lanes.add({ ...again, attempt: again.attempt + 1 }, null)
    lanes.cancel(again.account, again.destination)
    lanes.end(next!, false)
    lanes.release(again)
    assert.deepStrictEqual(startAll(lanes, 0), [])
  })

  it("widen with deliveries up to 64, and narrow with stalls down to 4", () => {
    const lanes = filled(["a"], 1000)
    const widths: Array<number> = []
    let running = startAll(lanes, 0)
    for (let round = 0; round < 4; round++) {
      widths.push(running.length)
      for (const one of running) lanes.end(one, true)
      running = startAll(lanes, 0)
    }
    assert.deepStrictEqual([...widths, running.length], [8, 64, 64, 64, 64])
    lanes.stall(999)
    assert.strictEqual(running.filter(({ stalled }) => stalled).length, 0, "less than a second is no stall")
    lanes.stall(1000)
    for (const one of running) lanes.end(one, false)
    assert.strictEqual(startAll(lanes, 1000).length, 4)
  })

  it("keep no delivery in memory that is over", async () => {
    const lanes = new Lanes()
    const kept: Array<WeakRef<object>> = []
    const deliver = () => {
      for (let n = 0; n < 300; n++) {
        const content = { ...event }
        kept.push(new WeakRef(content))
        lanes.add(due(`${n % 10}`, n), content)
      }
      for (let some = startAll(lanes, 0); some.length > 0; some = startAll(lanes, 0)) {
        for (const one of some) {
          kept.push(new WeakRef(one.lane))
          lanes.end(one, true)
          lanes.release(one.delivery)
        }
      }
    }
    deliver()
    // A delivery that stalls, and is canceled during that.
    const hang = () => {
      lanes.add(due("hanging", 1), null)
      const [one] = startAll(lanes, 0)
      lanes.stall(1000)
      lanes.cancel("mer_1:test", "hanging")
      lanes.end(one!, false)
      kept.push(new WeakRef(one!.lane))
    }
    hang()
    // Until a turn of the event loop ends, it keeps every object that a WeakRef was made for or read in it.
    await setImmediate()
    setFlagsFromString("--expose-gc")
    runInNewContext("gc")()
    assert.isAbove(kept.length, 600)
    assert.strictEqual(kept.filter((one) => one.deref() !== undefined).length, 0)
    assert.isEmpty(startAll(lanes, 2000))
  })

  it("give back the slot of an attempt that takes longer than a second", () => {
    const hanging = Array.from({ length: 64 }, (_, i) => `hanging ${i}`)
    const lanes = filled(hanging, 8)
    assert.strictEqual(startAll(lanes, 0).length, 512)
    lanes.add(due("fast", 1), null)
    assert.deepStrictEqual(startAll(lanes, 0), [])
    lanes.stall(1000)
    assert.deepStrictEqual(names(startAll(lanes, 1000)), ["fast_1"])
  })

  it("hold back lanes that have stalled while too many attempts are stalled, and no others", () => {
    const hanging = Array.from({ length: 256 }, (_, i) => `hanging ${i}`)
    const lanes = filled(hanging, 5)
    const stalled: Array<Attempt> = []
    for (let second = 0; second < 3; second++) {
      // Attempts of the last second are new, and do not count as stalled.
      if (second === 2) for (let n = 0; n < 160; n++) lanes.add(due(`late ${n % 20}`, n), null)
      stalled.push(...startAll(lanes, second * 1000))
      lanes.stall((second + 1) * 1000)
    }
    assert.strictEqual(stalled.length, 1024 + 160)
    const endLanes = (from: number, to: number) => {
      const wanted = new Set(hanging.slice(from, to))
      for (const one of stalled) if (wanted.has(one.delivery.destination)) lanes.end(one, true)
    }
    // One lane has room again, but its last attempt stalled: a late success does not clear it.
    endLanes(0, 1)
    lanes.add(due("new", 1), null)
    assert.deepStrictEqual(names(startAll(lanes, 3000)), ["new_1"])
    endLanes(1, 42)
    assert.strictEqual(startAll(lanes, 3000).length, 42, "each lane whose attempt has ended starts one more")
  })

  it("let no account wait because of another one's stalls, even if its own endpoint is slow", () => {
    const lanes = filled(
      Array.from({ length: 3000 }, (_, i) => `hanging ${i}`),
      2
    )
    const startSlow = (second: number) => {
      lanes.add(due("slow", second, "mer_2:test"), null)
      return startAll(lanes, second * 1000).filter(({ delivery }) => delivery.account === "mer_2:test")
    }
    for (let second = 0; second < 6; second++) {
      startAll(lanes, second * 1000)
      lanes.stall((second + 1) * 1000)
    }
    for (let second = 6; second < 12; second++) {
      const [attempt, ...others] = startSlow(second)
      assert.isEmpty(others)
      lanes.stall((second + 1) * 1000)
      assert.isTrue(attempt!.stalled)
      lanes.end(attempt!, true)
    }
    assert.strictEqual(lanes.running, 1536)
  })

  it("request more from the table once when a lane is no longer full", () => {
    const lanes = filled(["a"], 256)
    assert.deepStrictEqual(lanes.full, ["a"])
    const asked: Array<boolean> = []
    // All running attempts end before the next begin.
    for (let running = startAll(lanes, 0); running.length > 0; running = startAll(lanes, 0)) {
      for (const one of running) asked.push(lanes.end(one, true))
    }
    assert.strictEqual(asked.filter(Boolean).length, 1)
    assert.strictEqual(asked.length, 256)
  })

  it("put back an attempt that could not begin, before all others", () => {
    const lanes = filled(["a"], 20)
    const [first] = startAll(lanes, 0)
    lanes.putBack(first!)
    assert.strictEqual(lanes.room, 100_000 - 13)
    assert.deepStrictEqual(names(startAll(lanes, 0)), ["a_0"])
  })

  it("request more also if an attempt that was put back is dropped", () => {
    const lanes = filled(["a"], 40)
    assert.deepStrictEqual(lanes.full, ["a"])
    const [first] = startAll(lanes, 0)
    lanes.cancel("mer_1:test", "a")
    lanes.release(first!.delivery)
    assert.isTrue(lanes.putBack(first!))
    assert.deepStrictEqual(startAll(lanes, 0), [])
  })

  it("count no pause of the engine as a stall of an endpoint", () => {
    const lanes = filled(["a"], 20)
    const running = startAll(lanes, 0)
    for (const one of running) one.paused = true
    lanes.stall(5000)
    for (const one of running) lanes.putBack(one)
    assert.strictEqual(startAll(lanes, 5000).length, 8)
  })

  it("drop waiting deliveries to a destination, or of an account, and let running attempts continue", () => {
    const lanes = filled(["a", "b"], 20)
    for (let n = 0; n < 20; n++) lanes.add(due("c", n, "mer_2:test"), null)
    const running = startAll(lanes, 0)
    lanes.cancel("mer_1:test", "a")
    for (const one of running) lanes.end(one, true)
    const later = startAll(lanes, 0)
    assert.deepStrictEqual(new Set(later.map(({ delivery }) => delivery.destination)), new Set(["b", "c"]))
    assert.isTrue(lanes.add(due("a", 19), null), "a dropped delivery is not held")
    lanes.cancel("mer_1:test", null)
    for (const one of later) lanes.end(one, true)
    assert.isTrue(startAll(lanes, 0).every(({ delivery }) => delivery.account === "mer_2:test"))
  })

  it("keep a lane without work if it has stalled, and no other", () => {
    const stalled = filled(["a"], 8)
    const delivered = filled(["a"], 8)
    const slow = startAll(stalled, 0)
    stalled.stall(1000)
    for (const one of slow) stalled.end(one, false)
    for (const one of startAll(delivered, 0)) delivered.end(one, true)
    const starts = [stalled, delivered].map((lanes) => {
      for (let n = 8; n < 200; n++) lanes.add(due("a", n), null)
      return startAll(lanes, 1000).length
    })
    assert.deepStrictEqual(starts, [4, 8])
  })

  it("keep of a dropped destination only its running attempts", () => {
    const lanes = filled(["a"], 20)
    const slow = startAll(lanes, 0)
    lanes.cancel("mer_1:test", "a")
    for (let n = 20; n < 40; n++) lanes.add(due("a", n), null)
    assert.deepStrictEqual(startAll(lanes, 0), [])
    lanes.stall(1000)
    for (const one of slow) lanes.end(one, false)
    lanes.cancel("mer_1:test", "a")
    for (let n = 40; n < 60; n++) lanes.add(due("a", n), null)
    assert.strictEqual(startAll(lanes, 1000).length, 8)
  })

  it("allow 2048 stalled attempts and 512 others, however many accounts have a few stalled", () => {
    const lanes = new Lanes()
    // Each account has fewer stalled attempts than it may have in any case.
    for (let n = 0; n < 6000; n++) lanes.add(due(`we_${n}`, n, `mer_${n % 100}:test`), null)
    for (let second = 0; second < 12; second++) {
      startAll(lanes, second * 1000)
      lanes.stall((second + 1) * 1000)
    }
    assert.strictEqual(lanes.running, 2048 + 512)
  })

  it("keep the events of ten thousand waiting deliveries, and take in a hundred thousand deliveries", () => {
    const lanes = new Lanes()
    let taken = 0
    for (let n = 0; n < 100_001; n++) if (lanes.add(due(`we_${n % 200}`, n), event)) taken++
    assert.strictEqual(taken, 100_000)
    assert.strictEqual(lanes.room, 0)
    assert.strictEqual(lanes.full.length, 200)
    let withEvent = 0
    for (let now = 0; taken > 0; now += 1) {
      for (const one of startAll(lanes, now)) {
        if (one.content !== null) withEvent++
        lanes.end(one, true)
        lanes.release(one.delivery)
        taken--
      }
    }
    assert.strictEqual(withEvent, 10_000)
    assert.strictEqual(lanes.room, 100_000)
    assert.strictEqual(lanes.running, 0)
    lanes.add(due("we_0", 0), event)
    assert.deepStrictEqual(
      startAll(lanes, 0).map(({ content }) => content),
      [event],
      "there is room for events again"
    )
  })

  it.effect.prop(
    "attempt every delivery once and in order, within all bounds, for any order of ends",
    { seed: Seed },
    ({ seed }) =>
      Effect.sync(() => {
        const random = new Random(seed)
        const lanes = new Lanes()
        const destinations = Array.from({ length: 1 + random.below(40) }, (_, i) => `we_${i}`)
        const hangs = new Set(destinations.filter(() => random.chance(0.3)))
        const next = new Map<string, number>()
        const started = new Map<string, number>()
        let running: Array<Attempt> = []
        let now = 0
        const end = (ends: (one: Attempt) => boolean) => {
          const { false: stay = [], true: over = [] } = Object.groupBy(running, (one) => (ends(one) ? "true" : "false"))
          for (const one of over) {
            lanes.end(one, !hangs.has(one.delivery.destination) && random.chance(0.9))
            lanes.release(one.delivery)
          }
          running = stay
        }
        const start = () => {
          for (const one of startAll(lanes, now)) {
            const { destination, eventVersion } = one.delivery
            assert.strictEqual(eventVersion, started.get(destination) ?? 0)
            started.set(destination, eventVersion + 1)
            running.push(one)
          }
          assert.strictEqual(lanes.running, running.length)
          assert.isAtMost(running.filter(({ stalled }) => !stalled).length, 512)
          for (const [, of] of Map.groupBy(running, ({ lane }) => lane)) assert.isAtMost(of.length, 64)
        }
        for (let step = 0; step < 200; step++) {
          for (let added = random.below(60); added > 0; added--) {
            const destination = random.pick(destinations)
            const n = next.get(destination) ?? 0
            assert.isTrue(lanes.add(due(destination, n), random.chance(0.5) ? event : null))
            next.set(destination, n + 1)
          }
          start()
          now += random.pick([1, 100, 2000])
          lanes.stall(now)
          end(({ delivery, startedAt }) =>
            hangs.has(delivery.destination) ? startedAt <= now - 30_000 : random.chance(0.5)
          )
        }
        for (let left = 0; running.length > 0 || left < 2; left = running.length > 0 ? 0 : left + 1) {
          now += 30_000
          lanes.stall(now)
          end(() => true)
          start()
        }
        assert.deepStrictEqual([...started].toSorted(), [...next].toSorted(), "every delivery was attempted")
      }),
    { arbitrary: { runs: 60 } }
  )
})
