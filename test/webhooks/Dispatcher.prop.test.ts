/**
 * The dispatcher, by the test clock: for any behaviour of receivers and any crash, every event is delivered to every
 * subscribed endpoint or exhausted, exactly by the schedule, and never attempted twice at one time.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { DeliveryRow } from "../../src/engine/Deliveries.ts"
import { PER_TURN_MIN } from "../../src/webhooks/Pace.ts"
import * as Harness from "../engine/Harness.ts"
import { Random, Seed } from "../support/Random.ts"
import { answers, DispatcherHarness, hangs, type Receiver } from "./DispatcherHarness.ts"

/** Seconds before attempts 2 to 8 (spec: Events, Delivery). */
const SCHEDULE = [60, 300, 1800, 7200, 28_800, 86_400, 259_200]
/** More than the time to write an outcome, to begin an attempt, and of one step of the clock. */
const TOLERANCE_MILLIS = 6000

const named = (count: number, name: string) => Array.from({ length: count }, (_, i) => `${name}_${i}`)

/** A running dispatcher, with endpoints that are subscribed to every event. */
const started = Effect.fnUntraced(function* (receiver: Receiver, destinations: ReadonlyArray<string>) {
  yield* Harness.startClock
  const run = new DispatcherHarness(yield* Harness.storageInMemory, receiver)
  yield* run.start()
  yield* run.subscribe(destinations)
  return run
})

/** Ends the run, and checks that the views agree with the journal. */
const ended = (run: DispatcherHarness) => Effect.andThen(run.stop, Harness.verified(run.storage))

/** Lets time pass from attempt to attempt until nothing is pending. The account's clock skips long waits. */
const untilOver = Effect.fnUntraced(function* (
  run: DispatcherHarness,
  destinations: ReadonlyArray<string>,
  between: Effect.Effect<void> = Effect.void
) {
  for (let turn = 0; turn < 500; turn++) {
    yield* between
    yield* Harness.pass(400, 100)
    while (run.underWay.size > 0) yield* Harness.pass(500, 250)
    yield* Harness.pass(100, 50)
    const pending: Array<DeliveryRow> = []
    for (const destination of destinations) {
      pending.push(...(yield* run.deliveries(destination)).filter(({ state }) => state === "pending"))
    }
    if (pending.length === 0) return
    const next = Math.min(...pending.map(({ dueAt }) => dueAt!))
    const wait = next - (yield* Harness.now)
    if (wait > 60_000) yield* run.transact((transaction) => transaction.advanceClock(wait))
    else if (wait > 0) yield* Harness.pass(wait, 5000)
  }
  assert.fail("some deliveries never end")
})

/** A delivery's stored attempts follow the schedule, and its end follows from the last answer. */
const keepsSchedule = ({ attempts, state }: DeliveryRow) => {
  assert.deepStrictEqual(
    attempts.map(({ attempt }) => attempt),
    attempts.map((_, i) => i + 1)
  )
  for (const [i, { durationMillis, startedAt }] of attempts.slice(0, -1).entries()) {
    const due = startedAt + durationMillis + SCHEDULE[i]! * 1000
    assert.isAtLeast(attempts[i + 1]!.startedAt, due, "too early")
    assert.isAtMost(attempts[i + 1]!.startedAt, due + TOLERANCE_MILLIS, "too late")
  }
  const delivered = attempts.map(({ status }) => status !== null && status >= 200 && status < 300)
  assert.strictEqual(delivered.indexOf(true), state === "delivered" ? attempts.length - 1 : -1)
  if (state === "exhausted") assert.strictEqual(attempts.length, 8)
}

describe("the dispatcher", () => {
  it.effect.prop(
    "follows the schedule for any behaviour of receivers",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        yield* Harness.startClock
        const random = new Random(seed)
        const destinations = named(1 + random.below(3), "we")
        const moods = new Map(destinations.map((destination) => [destination, random.pick([0, 0.3, 0.7, 1])] as const))
        const receiver: Receiver = ({ endpoint }) => {
          const delay = random.pick([0, 0, 3, 800, 4000])
          if (!random.chance(moods.get(endpoint.url)!)) return answers(random.pick([200, 204]), delay)
          return random.pick([answers(500, delay), answers(302), answers(410), hangs])
        }
        const run = new DispatcherHarness(yield* Harness.storageInMemory, receiver)
        yield* run.start()
        yield* run.subscribe(destinations)
        for (const name of named(1 + random.below(4), "slot")) {
          yield* run.happen(name)
          if (random.chance(0.3)) yield* Harness.pass(random.below(40_000), 2000)
        }
        yield* untilOver(run, destinations)
        for (const destination of destinations) {
          for (const delivery of yield* run.deliveries(destination)) {
            keepsSchedule(delivery)
            const made = run.attempts.filter((one) => one.destination === destination && one.event === delivery.event)
            assert.deepStrictEqual(
              made.map(({ attempt }) => attempt),
              delivery.attempts.map(({ attempt }) => attempt)
            )
          }
        }
        yield* run.stop
        yield* Harness.verified(run.storage)
      }),
    { arbitrary: { runs: 20 } }
  )

  it.effect.prop(
    "leaves out no delivery after a crash at any time",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        yield* Harness.startClock
        const random = new Random(seed)
        const destinations = named(3, "we")
        const receiver: Receiver = () => (random.chance(0.6) ? answers(200, random.below(900)) : answers(500, 5))
        const run = new DispatcherHarness(yield* Harness.storageInMemory, receiver)
        yield* run.start()
        yield* run.subscribe(destinations)
        const events = 10 + random.below(30)
        for (const name of named(events, "slot")) {
          yield* run.happen(name)
          if (random.chance(0.4)) yield* Harness.pass(random.below(400), 20)
          if (!random.chance(0.2)) continue
          yield* run.kill
          yield* run.start()
        }
        const dies = Effect.suspend(() => (random.chance(0.2) ? Effect.andThen(run.kill, run.start()) : Effect.void))
        yield* untilOver(run, destinations, dies)
        for (const destination of destinations) {
          const deliveries = yield* run.deliveries(destination)
          assert.strictEqual(deliveries.length, events)
          for (const delivery of deliveries) {
            assert.include(["delivered", "exhausted"], delivery.state)
            // At worst a crash repeats an attempt.
            const made = run.attempts.filter((one) => one.destination === destination && one.event === delivery.event)
            assert.deepStrictEqual(
              [...new Set(made.map(({ attempt }) => attempt))],
              delivery.attempts.map(({ attempt }) => attempt)
            )
          }
        }
        yield* run.stop
        yield* Harness.verified(run.storage)
      }),
    { arbitrary: { runs: 20 } }
  )

  it.effect.prop(
    "makes the next attempt of a hastened delivery at once, and no other, with a crash at any time",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Random(seed)
        const dies = random.chance(0.5) ? 0.3 : 0
        const receiver: Receiver = () => answers(random.chance(0.2) ? 200 : 500, random.pick([0, 5, 700]))
        const destinations = named(2, "we")
        const run = yield* started(receiver, destinations)
        const made = ({ destination, event }: DeliveryRow) =>
          run.attempts.filter((one) => one.destination === destination && one.event === event)
        for (const name of named(6, "slot")) {
          yield* run.happen(name)
          yield* Harness.pass(random.pick([0, 100, 2000, 50_000]), 500)
          const rows = yield* Effect.forEach(destinations, run.deliveries)
          const hastened = rows.flat().filter(({ state }) => state === "pending" && random.chance(0.7))
          yield* run.transact((transaction) => {
            for (const { attempts, destination, id } of hastened) {
              transaction.hasten({ id, destination, attempt: attempts.length + 1 })
            }
          })
          if (random.chance(dies)) yield* Effect.andThen(run.kill, run.start())
          yield* Harness.pass(1000, 50)
          for (const row of hastened) assert.isAbove(made(row).length, row.attempts.length)
        }
        yield* untilOver(run, destinations)
        for (const row of (yield* Effect.forEach(destinations, run.deliveries)).flat()) {
          const attempts = row.attempts.map(({ attempt }) => attempt)
          assert.deepStrictEqual(
            attempts,
            attempts.map((_, i) => i + 1)
          )
          const numbers = made(row).map(({ attempt }) => attempt)
          assert.deepStrictEqual(dies === 0 ? numbers : [...new Set(numbers)], attempts)
          if (row.state === "exhausted") assert.strictEqual(attempts.length, 8)
        }
        yield* ended(run)
      }),
    { arbitrary: { runs: 20 } }
  )

  it.effect("starts first attempts in the order of their events", () =>
    Effect.gen(function* () {
      const run = yield* started(() => answers(200, 100), ["we"])
      for (const name of named(200, "slot")) yield* run.happen(name)
      yield* untilOver(run, ["we"])
      const events = run.attempts.map(({ event }) => event)
      assert.strictEqual(events.length, 200)
      assert.deepStrictEqual(events, events.toSorted())
      yield* run.stop
    })
  )

  for (const hanging of [1, 10, 100, 400]) {
    it.effect(`is not slowed by ${hanging} endpoints that hang`, () =>
      Effect.gen(function* () {
        yield* Harness.startClock
        const receiver: Receiver = ({ endpoint }) => (endpoint.url === "fast" ? answers(200, 10) : hangs)
        const run = new DispatcherHarness(yield* Harness.storageInMemory, receiver)
        yield* run.start()
        yield* run.subscribe([...named(hanging, "hanging"), "fast"])
        for (const name of named(30, "slot")) yield* run.happen(name)
        // Each wave of hanging attempts holds the slots for a second, and then gives them back.
        const waves = Math.ceil((hanging * 8) / 512)
        yield* Harness.pass(1000 + waves * 1500, 50)
        assert.strictEqual(run.attempts.filter(({ destination }) => destination === "fast").length, 30)
        // After that, the endpoint is as fast as if it were the only one.
        for (const name of named(30, "later")) yield* run.happen(name)
        yield* Harness.pass(200, 20)
        assert.strictEqual(run.attempts.filter(({ destination }) => destination === "fast").length, 60)
        yield* run.kill
      })
    )
  }

  it.effect("sends one event to a thousand endpoints, with a bounded number of attempts at a time", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const destinations = named(1000, "we")
      const run = new DispatcherHarness(yield* Harness.storageInMemory, () => answers(200, 100))
      yield* run.start()
      yield* run.subscribe(destinations)
      yield* run.happen("slot")
      yield* Harness.pass(2000, 50)
      assert.strictEqual(run.attempts.length, 1000)
      assert.isAtMost(run.underWayMax, 512)
      assert.strictEqual(run.bodies, 1)
      yield* ended(run)
    })
  )

  it.effect("spreads deliveries that are due at its start", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const storage = yield* Harness.storageInMemory
      const down = new DispatcherHarness(storage, () => answers(503))
      yield* down.start()
      yield* down.subscribe(["we_1", "we_2"])
      for (const name of named(600, "slot")) yield* down.happen(name)
      yield* Harness.pass(5000, 50)
      yield* down.stop
      yield* TestClock.adjust(3_600_000)
      const up = new DispatcherHarness(storage, () => answers(200, 100))
      yield* up.start()
      yield* Harness.pass(50, 10)
      assert.isAtMost(up.taken, 256)
      yield* Harness.pass(30_000, 100)
      assert.strictEqual(up.attempts.length, 1200)
      assert.isTrue(up.attempts.every(({ attempt }) => attempt === 2))
      assert.isAtMost(up.underWayMax, 128)
      // Endpoints with enough waiting deliveries are left out, and included again later: there are few reads.
      assert.isAtMost(up.takes, 20)
      yield* up.stop
      yield* Harness.verified(storage)
    })
  )

  it.effect("leaves turns to other work while the event loop is busy, and still begins all attempts", () =>
    Effect.gen(function* () {
      const destinations = named(60, "we")
      const run = yield* started(() => answers(200, 10), destinations)
      run.spare = 0
      yield* run.happen("slot")
      yield* Harness.pass(1000, 50)
      assert.strictEqual(run.attempts.length, 60)
      const begun = run.begunByTurn
        .map((count, i) => count - (run.begunByTurn[i - 1] ?? 0))
        .filter((count) => count > 0)
      assert.deepStrictEqual(
        begun,
        Array.from({ length: 30 }, () => PER_TURN_MIN)
      )
      yield* ended(run)
    })
  )

  it.effect("begins the next attempts as soon as running ones end", () =>
    Effect.gen(function* () {
      const run = yield* started(() => answers(200, 100), ["we"])
      for (const name of named(200, "slot")) yield* run.happen(name)
      const begun = yield* Harness.now
      yield* Harness.pass(1000, 10)
      // 8 at once, then 64 each time.
      const lasting = run.attempts.map(({ startedAt }) => startedAt - begun)
      assert.strictEqual(lasting.length, 200)
      assert.isAtMost(Math.max(...lasting), 300)
      yield* run.stop
    })
  )

  it.effect("begins no more attempts at a time at an endpoint that only fails", () =>
    Effect.gen(function* () {
      const run = yield* started(() => answers(500, 100), ["we"])
      for (const name of named(100, "slot")) yield* run.happen(name)
      yield* Harness.pass(3000, 10)
      assert.strictEqual(run.attempts.length, 100)
      assert.strictEqual(run.underWayMax, 8)
      for (const { attempts } of yield* run.deliveries("we")) assert.isAtLeast(attempts[0]!.durationMillis, 100)
      yield* ended(run)
    })
  )

  it.effect("makes no attempt at a deleted endpoint, and releases the delivery", () =>
    Effect.gen(function* () {
      const run = yield* started(() => answers(200), ["we"])
      run.gone.add("we")
      yield* run.happen("slot")
      yield* Harness.pass(30_000, 500)
      assert.strictEqual(run.lookUps, 1)
      assert.deepStrictEqual(run.attempts, [])
      assert.deepStrictEqual(
        (yield* run.deliveries("we")).map(({ attempts, state }) => ({ attempts, state })),
        [{ attempts: [], state: "pending" }]
      )
      // The delivery has been released, so the next process that takes it from the table may try it.
      run.gone.clear()
      yield* Harness.pass(150_000, 1000)
      assert.deepStrictEqual(
        run.attempts.map(({ attempt }) => attempt),
        [1]
      )
      yield* ended(run)
    })
  )

  it.effect("waits while the engine is unavailable, and counts that against no endpoint", () =>
    Effect.gen(function* () {
      const run = yield* started(() => answers(200, 100), ["we"])
      run.unavailable.add("endpoint")
      for (const name of named(20, "slot")) yield* run.happen(name)
      yield* Harness.pass(10_000, 100)
      assert.deepStrictEqual(run.attempts, [])
      // The next call is not at once: 8 attempts call the engine, wait for 300 ms, and pause for a second.
      assert.isAtMost(run.lookUps, 80)
      run.unavailable.clear()
      yield* Harness.pass(2000, 50)
      assert.strictEqual(run.attempts.length, 20)
      assert.isTrue(run.attempts.every(({ attempt }) => attempt === 1))
      assert.strictEqual(run.attempts.filter(({ startedAt }) => startedAt === run.attempts[0]!.startedAt).length, 8)
      yield* ended(run)
    })
  )

  it.effect("counts a delivery that can never be prepared as attempted, until it is exhausted", () =>
    Effect.gen(function* () {
      const run = yield* started(() => answers(200), ["we"])
      run.cannotRender = true
      yield* run.happen("slot")
      yield* untilOver(run, ["we"])
      const [delivery] = yield* run.deliveries("we")
      keepsSchedule(delivery!)
      assert.strictEqual(delivery!.state, "exhausted")
      assert.isTrue(delivery!.attempts.every(({ error }) => error === "could not be prepared"))
      yield* ended(run)
    })
  )

  it.effect("repeats no attempt while its outcome cannot be written", () =>
    Effect.gen(function* () {
      const run = yield* started(() => answers(200), ["we_1", "we_2"])
      run.unavailable.add("report")
      yield* run.happen("slot")
      // Longer than a lease.
      yield* Harness.pass(300_000, 1000)
      assert.strictEqual(run.attempts.length, 2)
      run.unavailable.clear()
      yield* Harness.pass(1000, 50)
      const kept = [...(yield* run.deliveries("we_1")), ...(yield* run.deliveries("we_2"))]
      assert.deepStrictEqual(
        kept.map(({ attempts, state }) => [attempts.length, state]),
        [
          [1, "delivered"],
          [1, "delivered"]
        ]
      )
      assert.strictEqual(run.attempts.length, 2)
      yield* ended(run)
    })
  )

  it.effect("attempts at once a delivery that is in the log although its flush has failed", () =>
    Effect.gen(function* () {
      const run = yield* started(() => answers(200), ["we"])
      yield* Harness.pass(1000, 100)
      run.faults = (point) => {
        if (point !== "append.after") return Effect.void
        run.faults = () => Effect.void
        return Effect.fail(Harness.outage("lost"))
      }
      yield* Effect.flip(run.happen("slot"))
      // Far less than the dispatcher's own polling interval.
      yield* Harness.pass(1000, 50)
      assert.strictEqual(run.attempts.length, 1)
      yield* ended(run)
    })
  )

  it.effect("drops waiting deliveries to a deleted endpoint, and of a wiped account", () =>
    Effect.gen(function* () {
      const run = yield* started(() => answers(200, 500), ["gone", "stays"])
      for (const name of named(40, "slot")) yield* run.happen(name)
      yield* Harness.settled
      yield* run.transact((transaction) => transaction.unsubscribe("gone"))
      const begun = run.attempts.filter(({ destination }) => destination === "gone").length
      yield* Harness.pass(10_000, 50)
      assert.strictEqual(run.attempts.filter(({ destination }) => destination === "gone").length, begun)
      assert.strictEqual(run.attempts.filter(({ destination }) => destination === "stays").length, 40)
      const states = (yield* run.deliveries("gone")).map(({ state }) => state)
      assert.deepStrictEqual([...new Set(states)], ["canceled"])

      for (const name of named(200, "wiped")) yield* run.happen(name)
      yield* run.transact((transaction) => transaction.wipe())
      const before = run.attempts.length
      assert.isBelow(before, begun + 240, "some were still waiting")
      yield* Harness.pass(10_000, 50)
      assert.strictEqual(run.attempts.length, before)
      yield* ended(run)
    })
  )

  it.effect("begins no attempt while it closes, and all others after the next start", () =>
    Effect.gen(function* () {
      const run = yield* started(() => answers(200, 100), ["we"])
      for (const name of named(20, "slot")) yield* run.happen(name)
      yield* Harness.settled
      const begun = run.attempts.length
      assert.strictEqual(begun, 8)
      const stopping = yield* Effect.forkChild(run.stop)
      yield* Harness.pass(5000, 50)
      yield* Fiber.join(stopping)
      assert.strictEqual(run.attempts.length, begun)
      yield* run.start()
      yield* Harness.pass(2000, 50)
      assert.strictEqual(run.attempts.length, 20)
      assert.strictEqual(new Set(run.attempts.map(({ event }) => event)).size, 20)
      yield* ended(run)
    })
  )

  it.effect("closes although an outcome cannot be written", () =>
    Effect.gen(function* () {
      const run = yield* started(() => answers(200), ["we"])
      run.unavailable.add("report")
      yield* run.happen("slot")
      yield* Harness.pass(1000, 50)
      const stopping = yield* Effect.forkChild(run.stopDispatcher)
      yield* Harness.pass(5000, 50)
      yield* Fiber.join(stopping)
      assert.strictEqual(run.attempts.length, 1)
      yield* run.kill
    })
  )

  it.effect("writes the outcomes of attempts that were running when it closed", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const run = new DispatcherHarness(yield* Harness.storageInMemory, ({ endpoint }) =>
        endpoint.url === "quick" ? answers(200, 500) : hangs
      )
      const close = Effect.gen(function* () {
        const stopping = yield* Effect.forkChild(run.stopDispatcher)
        yield* Harness.pass(5000, 50)
        yield* Fiber.join(stopping)
      })
      for (const others of [[], ["hanging"]]) {
        yield* run.start()
        yield* run.subscribe(["quick", ...others])
        yield* run.happen(`slot ${others.length}`)
        yield* Harness.settled
        yield* close
        const last = (yield* run.deliveries("quick")).at(-1)!
        assert.strictEqual(last.state, "delivered")
        yield* run.engine.stop
      }
      yield* run.start()
      const [hanging] = yield* run.deliveries("hanging")
      assert.deepStrictEqual([hanging!.state, hanging!.attempts.length], ["pending", 0])
      yield* run.kill
    })
  )
})
