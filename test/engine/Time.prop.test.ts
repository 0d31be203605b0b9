/**
 * Time comes before commands: an account fires its due timers before each command and read, so that no request sees
 * overdue state, whatever the scheduler does (semantics time.due).
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { Kind } from "../../src/engine/log/Document.ts"
import { type DueTimer, type Timer, Timers } from "../../src/engine/actor/Timers.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import type { EngineOptions, RunningEngine } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import { Random, Seed } from "../support/Random.ts"

const ACCOUNTS = ["mer_1:test", "mer_2:test"] as const
const [ACCOUNT] = ACCOUNTS

/** An object that a timer closes, like a session that expires. */
interface Door {
  readonly id: string
  readonly open: boolean
  readonly closesAt: number
  /** Time of its closing by the account's clock. */
  readonly closedAt: number | null
}
const DOOR: Kind<Door> = { name: "door" }

const timerOf = (id: string, dueAt: number) => ({ id: `close:${id}`, name: "close", dueAt })

/** Opens a door, or opens it again, for a number of milliseconds. */
const open = Effect.fnUntraced(function* (id: string, millis: number) {
  const transaction = yield* Transaction
  const closesAt = transaction.now + millis
  transaction.put(DOOR, { id, open: true, closesAt, closedAt: null })
  transaction.setTimer(timerOf(id, closesAt))
  return { now: transaction.now }
})

/** Reads the doors in a command. */
const readDoor = Effect.fnUntraced(function* (id: string) {
  const transaction = yield* Transaction
  return { now: transaction.now, door: (yield* transaction.get(DOOR, id))?.value }
})

const advance = (millis: number) => Effect.map(Transaction, (transaction) => transaction.advanceClock(millis))

const wipe = Effect.map(Transaction, (transaction) => transaction.wipe())

/** Closes the door. */
const close = Effect.fnUntraced(function* ({ id }: DueTimer) {
  const transaction = yield* Transaction
  const door = (yield* transaction.get(DOOR, id.slice("close:".length)))!.value
  transaction.put(DOOR, { ...door, open: false, closedAt: transaction.now })
  transaction.emit("door.closed", door.id)
})

const start = Effect.fnUntraced(function* (options: EngineOptions = {}, storage?: Harness.Storage) {
  const place = storage ?? (yield* Harness.storageInMemory)
  const engine = yield* Harness.startEngine(place, { handler: close, ...options })
  yield* Effect.addFinalizer(() => engine.kill)
  return { engine, storage: place }
})

const run = <A>(engine: RunningEngine, account: string, command: Effect.Effect<A, never, Transaction>) =>
  engine.accounts.run(account, command)

const DOORS = ["dor_a", "dor_b", "dor_c"] as const

const Step = Schema.Struct({
  account: Schema.Literals(ACCOUNTS),
  door: Schema.Literals(DOORS),
  does: Schema.Literals(["open", "open", "look", "read", "list", "events", "advance", "wipe"]),
  millis: Schema.Literals([0, 1, 50, 700, 40_000]),
  pause: Schema.Literals([0, 0, 30, 900, 60_000])
})

/** The answer of one request, without ids of events, which are random in each run. */
const answerOf = (engine: RunningEngine, { account, does, door, millis }: typeof Step.Type) => {
  switch (does) {
    case "open":
      return run(engine, account, open(door, millis))
    case "look":
      return run(engine, account, readDoor(door))
    case "read":
      return Effect.map(engine.accounts.read(account, door), (found) => (found?.deleted === false ? found.json : null))
    case "list":
      return Effect.map(engine.accounts.list(account, { kind: DOOR.name, limit: 10 }), ({ documents }) =>
        documents.map(({ json }) => json)
      )
    case "events":
      return Effect.map(engine.accounts.events(account, { limit: 10 }), ({ events }) =>
        events.map(({ at, object, type }) => ({ at, object, type }))
      )
    case "advance":
      return run(engine, account, advance(millis))
    case "wipe":
      return run(engine, account, wipe)
  }
}

/** All answers of a program, and the time and changes of every record. */
const outcome = Effect.fnUntraced(function* (
  steps: ReadonlyArray<typeof Step.Type>,
  options: EngineOptions & { readonly wakes?: Random; readonly restarts?: Random }
) {
  const { restarts, wakes, ...rest } = options
  yield* TestClock.setTime(Harness.START)
  const storage = yield* Harness.storageInMemory
  let { engine } = yield* start(rest, storage)
  const answers: Array<unknown> = []
  for (const step of steps) {
    if (restarts?.chance(0.3) === true) {
      yield* engine.kill
      engine = (yield* start(rest, storage)).engine
    }
    answers.push(yield* answerOf(engine, step))
    yield* Harness.pass(step.pause, 15_000)
    if (wakes?.chance(0.3) === true) yield* engine.accounts.wake(wakes.pick(ACCOUNTS))
  }
  const records: Array<unknown> = []
  for (const account of ACCOUNTS) {
    // Timers that are still due fire before this read.
    yield* run(engine, account, readDoor("dor_a"))
    for (const { changes, now } of yield* Harness.recordsOf(storage, account)) {
      records.push({ now, documents: changes.map(({ document }) => document) })
    }
  }
  yield* engine.projector.drained
  yield* Harness.verified(storage)
  yield* engine.kill
  return { answers, records }
})

describe("time", () => {
  it.effect.prop(
    "comes before commands and reads: answers are the same with a late scheduler, none or two",
    { seed: Seed, steps: Schema.Array(Step).check(Schema.isMaxLength(25)) },
    Effect.fnUntraced(function* ({ seed, steps }) {
      const expected = yield* outcome(steps, {})
      assert.deepStrictEqual(yield* outcome(steps, { schedulers: 0 }), expected, "no scheduler")
      assert.deepStrictEqual(yield* outcome(steps, { schedulers: 2 }), expected, "two schedulers")
      const wakes = new Random(seed)
      assert.deepStrictEqual(yield* outcome(steps, { schedulers: 0, wakes }), expected, "a late scheduler")
      const restarts = new Random(seed)
      assert.deepStrictEqual(yield* outcome(steps, { schedulers: 0, restarts }), expected, "after restarts")
    }),
    { arbitrary: { runs: 20, size: 25 } }
  )

  it.effect.prop(
    "shows no command and no read a door that should be closed",
    { steps: Schema.Array(Step).check(Schema.isMaxLength(25)) },
    Effect.fnUntraced(function* ({ steps }) {
      yield* Harness.startClock
      const { engine } = yield* start({ schedulers: 0 })
      const offsets = new Map<string, number>()
      for (const step of steps) {
        const { account, does, door, millis, pause } = step
        yield* answerOf(engine, step)
        if (does === "advance") offsets.set(account, (offsets.get(account) ?? 0) + millis)
        if (does === "wipe") offsets.delete(account)
        yield* TestClock.adjust(pause)
        const now = (yield* Harness.now) + (offsets.get(account) ?? 0)
        const read = yield* engine.accounts.read(account, door)
        const seen = [read?.deleted === false ? (read.value as Door) : undefined]
        seen.push((yield* run(engine, account, readDoor(door))).door)
        for (const found of seen) {
          if (found === undefined) continue
          assert.strictEqual(found.open, found.closesAt > now)
          assert.strictEqual(found.closedAt, found.open ? null : found.closesAt)
        }
      }
    }),
    { arbitrary: { runs: 50, size: 25 } }
  )

  it.effect("goes on in bounded steps if very many timers are due at once, with other requests in between", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const { engine, storage } = yield* start({ schedulers: 0 })
      const count = 6000
      for (let i = 0; i < count; i += 1000) {
        yield* run(
          engine,
          ACCOUNT,
          Effect.forEach(Array.from({ length: 1000 }), (_, j) => open(`dor_${i + j}`, 1000 + i + j), { discard: true })
        )
      }
      yield* run(engine, ACCOUNT, advance(2_592_000_000))
      const settled = yield* Effect.forkChild(engine.accounts.settled(ACCOUNT, 3_600_000))
      const times: Array<number> = []
      for (let before = 0; ;) {
        const { door, now } = yield* run(engine, ACCOUNT, readDoor(`dor_${count - 1}`))
        const fired = (yield* Harness.recordsOf(storage, ACCOUNT)).length
        if (door!.open) assert.isBelow(now, door!.closesAt + 1, "no command runs later than a timer that has not fired")
        if (!door!.open) break
        assert.isAtMost(fired - before, 1100, "too many timers at once")
        before = fired
        times.push(now)
      }
      assert.isAtLeast(times.length, 5)
      assert.deepStrictEqual(
        times,
        times.toSorted((a, b) => a - b)
      )
      yield* Fiber.join(settled)
      const closed = (yield* Harness.recordsOf(storage, ACCOUNT)).filter(({ events }) => events.length > 0)
      assert.strictEqual(closed.length, count, "each has a record of its own")
      assert.deepStrictEqual(
        closed.map(({ now }) => now - Harness.START),
        Array.from({ length: count }, (_, i) => 1000 + i)
      )
    })
  )
})

/** The list of timers against a simple one: the views hold all timers, the list a page of them. */
const ListStep = Schema.Struct({
  does: Schema.Literals(["set", "set", "set", "clear", "pass", "park", "wipe"]),
  id: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 19 })),
  dueIn: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 50 }))
})

describe("the list of an account's timers", () => {
  it.prop(
    "knows the earliest due time and fires in due order, with any number of timers in memory",
    { page: Schema.Literals([1, 2, 3, 8]), steps: Schema.Array(ListStep).check(Schema.isMaxLength(60)) },
    ({ page, steps }) => {
      const all = new Map<string, Timer>()
      const parked = new Set<string>()
      const list = new Timers(page)
      const inOrder = () =>
        [...all.values()].toSorted((a, b) => a.dueAt - b.dueAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
      const standing = () => inOrder().filter(({ id }) => !parked.has(id))
      let now = 0
      for (const { does, dueIn, id } of steps) {
        const timer = { id: `t${id}`, name: "n", dueAt: now + dueIn }
        if (does === "set" || does === "clear") parked.delete(timer.id)
        if (does === "set") {
          all.set(timer.id, timer)
          list.set(timer)
        } else if (does === "clear") {
          all.delete(timer.id)
          list.clear(timer.id)
        } else if (does === "wipe") {
          all.clear()
          parked.clear()
          list.clearAll()
        } else if (does === "pass") {
          now += dueIn
        }
        const earliest = standing()[0]?.dueAt ?? Infinity
        assert.isAtMost(list.nextDueAt, earliest)
        for (;;) {
          if (list.mustFill(now)) list.fill(inOrder().slice(0, list.pageSize))
          const due = list.due(now)
          const expected = standing()[0]
          assert.deepStrictEqual(due, expected !== undefined && expected.dueAt <= now ? expected : undefined)
          if (due === undefined) break
          if (does === "park") {
            parked.add(due.id)
            list.park(due, now)
          } else {
            all.delete(due.id)
            list.clear(due.id)
          }
        }
        assert.isAbove(list.nextDueAt, now)
        assert.deepStrictEqual(
          list.retries(Infinity).map((timer) => timer.id),
          inOrder().flatMap((timer) => (parked.has(timer.id) ? [timer.id] : []))
        )
      }
    },
    // Only long sequences reach the end of the list, and fill it with a part of the rest.
    { arbitrary: { runs: 500, size: 60 } }
  )
})
