/**
 * Timers: each fires exactly once, not before its time, in due order, after any downtime.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Latch, Logger, Schema } from "effect"
import { runOnce } from "../../../src/engine/Accounts.ts"
import { TestClock } from "effect/testing"
import type { Kind } from "../../../src/engine/log/Document.ts"
import { Journal } from "../../../src/engine/log/Journal.ts"
import type { KeyRow } from "../../../src/engine/views/Projection.ts"
import { type DueTimer, Postponed } from "../../../src/engine/actor/Timers.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import type { FaultPoint, Faults } from "../storage/Faults.ts"
import type { EngineOptions, RunningEngine } from "../Harness.ts"
import * as Harness from "../Harness.ts"
import { Random, Seed } from "../../support/Random.ts"
import * as Toy from "../Toy.ts"

const ACCOUNTS = ["mer_1:test", "mer_2:test", "mer_3:live"]

/** Written when a timer fires, so that the journal has the time of each firing. */
interface Firing {
  readonly id: string
  readonly timer: string
  readonly name: string
  readonly at: number
}
const FIRING: Kind<Firing> = { name: "firing" }

const fired = Effect.fnUntraced(function* ({ id, name }: DueTimer) {
  const transaction = yield* Transaction
  const firing = { id: transaction.newId("fir"), timer: id, name, at: transaction.now }
  transaction.put(FIRING, firing)
})

const set = (engine: RunningEngine, account: string, id: string, dueAt: number, name: string = "plain") =>
  engine.accounts.run(
    account,
    Effect.map(Transaction, (transaction) => transaction.setTimer({ id, name, dueAt }))
  )

const clear = (engine: RunningEngine, account: string, id: string) =>
  engine.accounts.run(
    account,
    Effect.map(Transaction, (transaction) => transaction.clearTimer(id))
  )

const advance = (engine: RunningEngine, account: string, millis: number) =>
  engine.accounts.run(
    account,
    Effect.map(Transaction, (transaction) => transaction.advanceClock(millis))
  )

/** All firings, in the order of the journal. */
const firingsOf = Effect.fnUntraced(function* (storage: Harness.Storage, account: string) {
  const firings: Array<Firing> = []
  for (const { changes } of yield* Harness.recordsOf(storage, account)) {
    for (const { document, kind } of changes) {
      if (kind === FIRING.name && document !== null) firings.push(JSON.parse(document))
    }
  }
  return firings
})

const start = Effect.fnUntraced(function* (options: EngineOptions = {}, storage?: Harness.Storage) {
  if (storage === undefined) yield* Harness.startClock
  const place = storage ?? (yield* Harness.storageInMemory)
  const engine = yield* Harness.startEngine(place, { handler: fired, ...options })
  yield* Effect.addFinalizer(() => engine.kill)
  return { engine, storage: place }
})

/** Step of the clock, and so the longest delay of a timer while the process runs. */
const STEP_MILLIS = 1000

const SetOrClear = Schema.Struct({
  account: Schema.Literals(ACCOUNTS),
  timer: Schema.Literals(["t1", "t2", "t3", "t4", "t5"]),
  /** Due time in milliseconds from now; null clears the timer. */
  delay: Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: -1000, maximum: 120_000 }))),
  /** Milliseconds by which the account's clock is moved ahead afterwards. */
  advance: Schema.Literals([0, 0, 0, 5, 30_000]),
  /** Milliseconds until the next step. */
  pause: Schema.Literals([0, 0, 7, 900, 40_000])
})

describe("timers", () => {
  it.effect.prop(
    "fire exactly once, not before their time, and soon after it, for any moves of them and of the clock",
    { seed: Seed, steps: Schema.Array(SetOrClear).check(Schema.isMaxLength(25)) },
    Effect.fnUntraced(function* ({ seed, steps }) {
      const random = new Random(seed)
      const { engine, storage } = yield* start({ faults: () => random.jitter(3) })
      // Expected firings: each timer at its last due time; not if it is cleared or moved before that.
      const pending = new Map<string, { readonly account: string; readonly dueAt: number; readonly late: number }>()
      const expected: Array<{ readonly place: string; readonly dueAt: number; readonly late: number }> = []
      const offsets = new Map<string, number>()
      const pass = (wallClock: number) => {
        for (const [place, { account, dueAt, late }] of pending) {
          if (dueAt > wallClock + (offsets.get(account) ?? 0)) continue
          pending.delete(place)
          expected.push({ place, dueAt, late })
        }
      }
      for (const { account, advance: millis, delay, pause, timer } of steps) {
        const now = (yield* Harness.now) + (offsets.get(account) ?? 0)
        const place = `${account} ${timer}`
        if (delay === null) {
          pending.delete(place)
          yield* clear(engine, account, timer)
        } else {
          pending.set(place, { account, dueAt: Math.max(now + delay, now), late: STEP_MILLIS })
          yield* set(engine, account, timer, now + delay)
        }
        if (millis > 0) {
          yield* advance(engine, account, millis)
          offsets.set(account, (offsets.get(account) ?? 0) + millis)
          // Timers that the clock jumps over fire late by the length of the jump.
          for (const [other, one] of pending) {
            if (one.account === account) pending.set(other, { ...one, late: one.late + millis })
          }
        }
        // Due timers fire before the next step reads them.
        yield* Harness.pass(pause, STEP_MILLIS)
        yield* Harness.pass(STEP_MILLIS)
        pass(yield* Harness.now)
      }
      yield* Harness.pass(125_000, STEP_MILLIS)
      pass(Infinity)
      const actual: Array<{ readonly place: string; readonly at: number }> = []
      for (const account of ACCOUNTS) {
        for (const { at, timer } of yield* firingsOf(storage, account))
          actual.push({ place: `${account} ${timer}`, at })
      }
      assert.strictEqual(actual.length, expected.length, "each fires exactly once")
      for (const [place, firings] of Map.groupBy(actual, (one) => one.place)) {
        const due = expected.filter((one) => one.place === place)
        for (const [i, { at }] of firings.entries()) {
          assert.isAtLeast(at, due[i]?.dueAt ?? NaN, `${place} fired before its time`)
          assert.isAtMost(at, due[i]!.dueAt + due[i]!.late, `${place} fired late`)
        }
      }
      yield* engine.projector.drained
      assert.deepStrictEqual(yield* Harness.viewsOf(storage).nextTimers(10, [], null), [])
      yield* Harness.verified(storage)
    }),
    { arbitrary: { runs: 50, size: 25 } }
  )

  it.effect.prop(
    "that became due while the process was down fire at once after its restart, in due order",
    {
      seed: Seed,
      delays: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1000, maximum: 100_000 }))).check(
        Schema.isMaxLength(300)
      ),
      downMillis: Schema.Literals([101_000, 86_400_000 * 3])
    },
    Effect.fnUntraced(function* ({ delays, downMillis, seed }) {
      const random = new Random(seed)
      const { engine, storage } = yield* start()
      const place = delays.map((_, i) => ({ account: random.pick(ACCOUNTS), id: `t${i}` }))
      for (const [i, { account, id }] of place.entries()) yield* set(engine, account, id, Harness.START + delays[i]!)
      // Some records were projected, some were not.
      if (random.chance(0.5)) yield* engine.projector.drained
      yield* engine.kill
      yield* TestClock.setTime(Harness.START + downMillis)
      yield* start({ faults: () => random.jitter(2) }, storage)
      yield* Harness.pass(100)
      for (const account of ACCOUNTS) {
        const firings = yield* firingsOf(storage, account)
        const dueOf = (id: string) => delays[Number(id.slice(1))]!
        const expected = place
          .filter((one) => one.account === account)
          .toSorted((a, b) => dueOf(a.id) - dueOf(b.id) || (a.id < b.id ? -1 : 1))
        assert.deepStrictEqual(
          firings.map(({ timer }) => timer),
          expected.map(({ id }) => id)
        )
      }
    }),
    { arbitrary: { runs: 25, size: 60 } }
  )

  it.effect("fire under a continuous load", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* start({
        // Each projection takes longer than the time until the next record.
        faults: (point) => (point === "apply.before" ? Effect.sleep(50) : Effect.void)
      })
      yield* engine.accounts.run("mer_9:test", Toy.create("a", "plain"))
      const load = Effect.andThen(
        engine.accounts.run("mer_9:test", Toy.command({ op: "increment", slot: "a", by: 1 })),
        Effect.sleep(5)
      )
      yield* Effect.forkChild(Effect.forever(load))
      yield* Effect.forkChild(set(engine, ACCOUNTS[0]!, "t1", Harness.START + 1000))
      for (let i = 0; i < 600; i++) yield* TestClock.adjust(5)
      assert.strictEqual((yield* firingsOf(storage, ACCOUNTS[0]!)).length, 1)
    })
  )

  it.effect("wait for no account whose records come faster than their projection", () =>
    Effect.gen(function* () {
      const account = "mer_9:test"
      const increment = Toy.command({ op: "increment", slot: "a", by: 1 })
      let isBusy = false
      const { engine } = yield* start({
        // After each projection there is already one record more.
        faults: (point): Effect.Effect<void> =>
          point === "apply.before" && isBusy
            ? Effect.andThen(Effect.sleep(50), Effect.ignore(engine.accounts.run(account, increment)))
            : Effect.void
      })
      yield* engine.accounts.run(account, Toy.create("a", "plain"))
      isBusy = true
      yield* engine.accounts.run(account, increment)
      const endless = yield* Effect.forkChild(engine.projector.catchUp(account))
      const enough = yield* Effect.forkChild(engine.projector.catchUp(account, 2))
      for (let i = 0; i < 600; i++) yield* TestClock.adjust(5)
      assert.isUndefined(endless.pollUnsafe())
      assert.isAtLeast((yield* Fiber.join(enough)).projected, 2)
    })
  )

  it.effect("are not held back by any number of handlers that die, whose timers are not lost either", () =>
    Effect.gen(function* () {
      let broken = true
      const handler = (timer: DueTimer) =>
        Effect.suspend(() => (broken && timer.name === "broken" ? Effect.die(new Toy.Bug("a bug")) : fired(timer)))
      const { engine, storage } = yield* start({ handler })
      const [account, other] = ACCOUNTS as [string, string]
      for (let i = 0; i < 300; i++) yield* set(engine, account, `broken${i}`, Harness.START, "broken")
      yield* set(engine, account, "t1", Harness.START + 100)
      yield* set(engine, other, "t2", Harness.START + 200)
      for (let i = 0; i < 10; i++) yield* Harness.pass(500)
      assert.deepStrictEqual(
        (yield* firingsOf(storage, account)).map(({ timer }) => timer),
        ["t1"]
      )
      assert.deepStrictEqual(
        (yield* firingsOf(storage, other)).map(({ timer }) => timer),
        ["t2"]
      )
      broken = false
      for (let i = 0; i < 20; i++) yield* Harness.pass(500)
      assert.strictEqual((yield* firingsOf(storage, account)).length, 301)
    })
  )

  it.effect("that cannot fire are retried with backoff, and delay no other timer", () =>
    Effect.gen(function* () {
      let tried = 0
      const late: Array<number> = []
      const handler = ({ id, name }: DueTimer) =>
        Effect.gen(function* () {
          if (name === "broken") {
            tried++
            return yield* Effect.die(new Toy.Bug("a bug"))
          }
          late.push((yield* Harness.now) - Harness.START - Number(id))
        })
      const { engine } = yield* start({ handler })
      const [account] = ACCOUNTS as [string]
      yield* set(engine, account, "broken", Harness.START, "broken")
      for (let at = 1250; at < 600_000; at += 1250) yield* set(engine, account, String(at), Harness.START + at)
      yield* Harness.pass(600_000, 50)
      // After 1, 2, 4 seconds and so on up to a minute.
      assert.strictEqual(tried, 1 + 6 + 8)
      assert.isAtLeast(late.length, 479)
      assert.isBelow(Math.max(...late), 100)
    })
  )

  it.effect("that are postponed stay set and are retried with backoff, without a log line", () => {
    const logged: Array<unknown> = []
    const quiet = Logger.layer([Logger.make(({ message }) => logged.push(message))])
    return Effect.gen(function* () {
      let tried = 0
      let isPostponed = true
      const handler = (timer: DueTimer) =>
        Effect.suspend((): Effect.Effect<void, Postponed, Transaction> => {
          if (timer.name !== "later" || !isPostponed) return fired(timer)
          tried++
          return Effect.andThen(fired(timer), new Postponed())
        })
      const { engine, storage } = yield* start({ handler })
      const [account] = ACCOUNTS as [string]
      yield* set(engine, account, "later", Harness.START, "later")
      yield* set(engine, account, "other", Harness.START)
      yield* Harness.pass(600_000, 250)
      assert.strictEqual(tried, 1 + 6 + 8)
      assert.deepStrictEqual(
        (yield* firingsOf(storage, account)).map(({ timer }) => timer),
        ["other"]
      )
      isPostponed = false
      yield* Harness.pass(60_000, 250)
      assert.deepStrictEqual(
        (yield* firingsOf(storage, account)).map(({ timer }) => timer),
        ["other", "later"]
      )
      assert.deepStrictEqual(logged, [])
    }).pipe(Effect.provide(quiet))
  })

  it.effect("fire soon after the storage is back, which is retried with pauses until then", () =>
    Effect.gen(function* () {
      const [account] = ACCOUNTS as [string]
      const first = yield* start({ faults: (point) => (point === "apply.before" ? Effect.never : Effect.void) })
      yield* set(first.engine, account, "t1", Harness.START)
      yield* first.engine.kill
      let down: FaultPoint | null = "read"
      let reads = 0
      const faults: Faults = (point) => {
        if (point !== down) return Effect.void
        reads++
        return Effect.fail(Harness.outage("down"))
      }
      const { engine, storage } = yield* start({ faults }, first.storage)
      const backAfter = Effect.fnUntraced(function* (millis: number, count: number) {
        reads = 0
        yield* Harness.pass(millis, 100)
        assert.isAtMost(reads, (4 * millis) / 1000)
        down = null
        yield* Harness.pass(2500, 100)
        assert.strictEqual((yield* firingsOf(storage, account)).length, count)
      })
      // During its start, its search for timers, and its firing of them.
      yield* backAfter(20_000, 1)
      yield* set(engine, account, "t2", (yield* Harness.now) + 1000)
      yield* engine.projector.drained
      down = "read"
      yield* backAfter(20_000, 2)
      yield* set(engine, account, "t3", (yield* Harness.now) + 1000)
      yield* engine.projector.drained
      down = "append.before"
      yield* backAfter(20_000, 3)
    })
  )

  it.effect("that could not fire are not delayed by a clock that is set back", () =>
    Effect.gen(function* () {
      let isBroken = true
      const { engine, storage } = yield* start({
        handler: (timer) => (isBroken ? Effect.die(new Toy.Bug("a bug")) : fired(timer))
      })
      const [account] = ACCOUNTS as [string]
      yield* set(engine, account, "t1", Harness.START)
      yield* Harness.pass(3_600_000, 60_000)
      isBroken = false
      yield* TestClock.setTime(Harness.START + 600_000)
      // The test clock has put its sleepers off as well.
      yield* set(engine, account, "t2", yield* Harness.now)
      yield* Harness.pass(31_000, 1000)
      assert.strictEqual((yield* firingsOf(storage, account)).length, 2)
    })
  )

  it.effect("are not held back by an account whose journal is corrupt", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* start({
        faults: (point) => (point === "apply.before" ? Effect.never : Effect.void)
      })
      const [account, other] = ACCOUNTS as [string, string]
      yield* set(engine, account, "t1", Harness.START + 5000)
      yield* set(engine, other, "t2", Harness.START + 5000)
      yield* engine.kill
      const journal = Harness.journalOf(storage)
      const corrupt = Context.add(
        storage,
        Journal,
        Journal.of({
          ...journal,
          read: (of, after, limit) =>
            Effect.map(journal.read(of, after, limit), (rows) =>
              of === account ? rows.map((row) => ({ ...row, bytes: row.bytes.with(0, 0) })) : rows
            )
        })
      )
      yield* start({}, corrupt)
      yield* Harness.pass(10_000)
      assert.deepStrictEqual(
        (yield* firingsOf(storage, other)).map(({ timer }) => timer),
        ["t2"]
      )
    })
  )

  it.effect("moved by another process do not keep this one busy", () =>
    Effect.gen(function* () {
      let reads = 0
      const { engine: one, storage } = yield* start({
        faults: (point) => Effect.sync(() => void (point === "read" && reads++))
      })
      const [account] = ACCOUNTS as [string]
      yield* set(one, account, "t1", Harness.START + 3_600_000)
      yield* one.projector.drained
      const { engine: two } = yield* start({}, storage)
      yield* set(two, account, "t1", Harness.START + 1000)
      yield* two.projector.drained
      yield* two.kill
      reads = 0
      const passing = yield* Effect.forkChild(TestClock.adjust(40_000))
      for (let i = 0; i < 20_000 && passing.pollUnsafe() === undefined; i++) yield* Effect.yieldNow
      assert.isBelow(reads, 200, "reads of the storage in 40 seconds")
      yield* Fiber.interrupt(passing)
    })
  )

  it.effect(
    "cost, while none is set, a read every 30 seconds, and a write of the time and a search for old keys a minute",
    () =>
      Effect.gen(function* () {
        let reads = 0
        const { engine } = yield* start({ faults: (point) => Effect.sync(() => void (point === "read" && reads++)) })
        yield* set(engine, ACCOUNTS[0]!, "t1", Harness.START + 86_400_000)
        // During this time the account is in memory, and the log is read for records of other processes.
        yield* Harness.pass(600_000)
        assert.isAtMost(reads, 10 + 2 * (600 / 30) + 2 * (600 / 60))
        reads = 0
        yield* Harness.pass(3_600_000)
        assert.isAtMost(reads, 3600 / 30 + 2 * (3600 / 60))
        assert.isAtLeast(reads, 1)
      })
  )

  it.effect("fire in their state at their turn, not in their state when they became due", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* start()
      const [account] = ACCOUNTS as [string]
      for (const id of ["moved", "cleared"]) yield* set(engine, account, id, Harness.START + 1000)
      const gate = Latch.makeUnsafe(false)
      const command = Effect.gen(function* () {
        const transaction = yield* Transaction
        yield* gate.await
        transaction.setTimer({ id: "moved", name: "plain", dueAt: Harness.START + 60_000 })
        transaction.clearTimer("cleared")
      })
      yield* Effect.forkChild(engine.accounts.run(account, command))
      yield* Harness.pass(1000)
      gate.openUnsafe()
      yield* Harness.pass(58_999, 1000)
      assert.deepStrictEqual(yield* firingsOf(storage, account), [])
      yield* Harness.pass(1)
      assert.deepStrictEqual(
        (yield* firingsOf(storage, account)).map(({ timer }) => timer),
        ["moved"]
      )
    })
  )

  it.effect("that are nearer than the one the scheduler sleeps for wake it", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* start()
      const [account] = ACCOUNTS as [string]
      yield* set(engine, account, "far", Harness.START + 25_000)
      yield* Harness.pass(5000)
      yield* set(engine, account, "near", Harness.START + 6000)
      yield* Harness.pass(1000)
      assert.deepStrictEqual(
        (yield* firingsOf(storage, account)).map(({ timer }) => timer),
        ["near"]
      )
      yield* Harness.pass(19_000)
      assert.deepStrictEqual(
        (yield* firingsOf(storage, account)).map(({ timer }) => timer),
        ["near", "far"]
      )
    })
  )
})

/** Statements take part of the time that passes, and pruning rests after each for up to two seconds. */
const SLOW_PASSES_MILLIS = 200_000

describe("the scheduler", () => {
  it.effect("deletes idempotency keys from the views after their retention, for which downtime does not count", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* start()
      const [account] = ACCOUNTS as [string]
      const command = Effect.succeed(Toy.answer(200, "{}"))
      const use = (key: string) => runOnce(engine.accounts, account, Toy.request(key), () => command)
      const keysLeft = Effect.map(Harness.viewsOf(storage).scan(account, "keys", "", 10), (rows) =>
        rows.map(({ row }) => (row as KeyRow).key)
      )
      yield* use("first")
      yield* Harness.pass(3_600_000)
      yield* use("second")
      yield* engine.projector.drained
      yield* Harness.pass(23 * 3_600_000)
      assert.deepStrictEqual(yield* keysLeft, ["first", "second"])
      yield* Harness.pass(61_000)
      assert.deepStrictEqual(yield* keysLeft, ["second"])
      yield* engine.stop
      yield* TestClock.adjust(48 * 3_600_000)
      yield* start({}, storage)
      yield* Harness.pass(1000)
      assert.deepStrictEqual(yield* keysLeft, ["second"])
      yield* Harness.pass(3_600_000 + SLOW_PASSES_MILLIS)
      assert.deepStrictEqual(yield* keysLeft, [])
    })
  )

  it.effect("deletes them also if the clock is set back by days", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* start()
      const [account] = ACCOUNTS as [string]
      yield* Harness.pass(1000)
      yield* TestClock.setTime(Harness.START - 3 * 86_400_000)
      const command = Effect.succeed(Toy.answer(200, "{}"))
      yield* runOnce(engine.accounts, account, Toy.request("key"), () => command)
      yield* engine.projector.drained
      // The test clock has put its sleepers off as well.
      yield* engine.stop
      yield* start({}, storage)
      yield* Harness.pass(86_400_000 + 61_000 + SLOW_PASSES_MILLIS, 3_600_000)
      assert.deepStrictEqual(yield* Harness.viewsOf(storage).scan(account, "keys", "", 10), [])
    })
  )
})
