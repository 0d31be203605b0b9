/** Access to accounts: bounds, waits for durability, reads of own writes, activation and passivation. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Latch, References, Schema } from "effect"
import { Unavailable, runOnce } from "../../src/engine/Accounts.ts"
import type { Kind } from "../../src/engine/log/Document.ts"
import { Journal, type JournalShape } from "../../src/engine/log/Journal.ts"
import { type JournalRow, RECORD_BYTES_MAX } from "../../src/engine/log/Record.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { Views } from "../../src/engine/views/Views.ts"
import type { FaultPoint } from "./storage/Faults.ts"
import type { EngineOptions, RunningEngine } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import * as Toy from "./Toy.ts"

const ACCOUNT = "mer_1:test"

/** An engine whose storage can be blocked at a point, with a count of its storage operations. */
const start = Effect.fnUntraced(function* (options: EngineOptions = {}, storage?: Harness.Storage) {
  if (storage === undefined) yield* Harness.startClock
  const place = storage ?? (yield* Harness.storageInMemory)
  const held = new Map<FaultPoint, Latch.Latch>()
  const visits = new Map<FaultPoint, number>()
  const engine = yield* Harness.startEngine(place, {
    faults: (point) =>
      Effect.suspend(() => {
        visits.set(point, (visits.get(point) ?? 0) + 1)
        return held.get(point)?.await ?? Effect.void
      }),
    ...options
  })
  yield* Effect.addFinalizer(() => engine.kill)
  return {
    engine,
    storage: place,
    reads: () => visits.get("read") ?? 0,
    projections: () => visits.get("apply.before") ?? 0,
    hold: (point: FaultPoint) => held.set(point, Latch.makeUnsafe(false)),
    release: (point: FaultPoint) => {
      held.get(point)?.openUnsafe()
      held.delete(point)
    }
  }
})

const create = ({ accounts }: RunningEngine, slot: string = "a", account: string = ACCOUNT) =>
  accounts.run(account, Toy.create(slot, "plain"))

/** Slot of the counter whose events are delivered. */
const SUBSCRIBED = "z"

interface ListQuery {
  readonly account: string
  readonly limit: number
}

/** Four counters of one account and one of another, and many lists of them with their expected results. */
const manyLists = Effect.gen(function* () {
  const { engine, storage } = yield* start()
  const other = "mer_2:test"
  const ours = ["a", "b", "c", "d"]
  for (const slot of ours) yield* create(engine, slot)
  yield* engine.accounts.run(
    other,
    Effect.map(Transaction, (transaction) => transaction.subscribe("we_1", ["*"]))
  )
  yield* create(engine, SUBSCRIBED, other)
  yield* engine.projector.drained
  yield* engine.kill
  // This engine has nothing in memory.
  const restarted = yield* start({}, storage)
  for (const account of [ACCOUNT, other]) yield* restarted.engine.accounts.wake(account)
  const queries = Array.from({ length: 60 }, (_, i) => ({ account: i % 3 === 0 ? other : ACCOUNT, limit: 1 + (i % 5) }))
  const slots = queries.map(({ account, limit }) =>
    account === other ? [SUBSCRIBED] : ours.toReversed().slice(0, limit)
  )
  /** Runs all lists at once; returns their results and the number of reads of the storage. */
  const runAll = Effect.fnUntraced(function* <A, E>(f: (list: ListQuery) => Effect.Effect<A, E>) {
    const before = restarted.reads()
    const answers = yield* Effect.forEach(queries, f, { concurrency: "unbounded" })
    return { answers, reads: restarted.reads() - before }
  })
  return { engine: restarted.engine, runAll, slots }
})

const increment = ({ accounts }: RunningEngine, account: string = ACCOUNT) =>
  accounts.run(
    account,
    Effect.gen(function* () {
      const counter = yield* Toy.counterIn("a")
      return (yield* Toy.add(counter!.value, 1)).count
    })
  )

const isUnavailable = (exit: Exit.Exit<unknown, unknown>) =>
  Exit.isFailure(exit) && exit.cause.reasons.some((r) => r._tag === "Fail" && r.error instanceof Unavailable)

describe("a mailbox", () => {
  it.effect("that is full refuses at once, and answers all commands that it has taken when the log is back", () =>
    Effect.gen(function* () {
      const { engine, hold, release, storage } = yield* start({ mailboxCapacity: 10 })
      yield* create(engine)
      hold("append.before")
      const fibers = yield* Effect.forEach(Array.from({ length: 30 }), () => Effect.forkChild(increment(engine)))
      yield* Harness.settled
      const refused = fibers.filter((fiber) => fiber.pollUnsafe() !== undefined)
      assert.strictEqual(refused.length, 20)
      for (const fiber of refused) assert.isTrue(isUnavailable(yield* Fiber.await(fiber)))
      // Another account has a mailbox of its own.
      const other = yield* Effect.forkChild(create(engine, "a", "mer_2:test"))
      yield* Harness.settled
      assert.isUndefined(other.pollUnsafe())
      release("append.before")
      const counts = yield* Effect.forEach(
        fibers.filter((fiber) => !refused.includes(fiber)),
        (fiber) => Fiber.join(fiber)
      )
      assert.deepStrictEqual(counts, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
      yield* Fiber.join(other)
      assert.strictEqual((yield* Harness.recordsOf(storage, ACCOUNT)).length, 11)
      assert.strictEqual(yield* increment(engine), 11)
    })
  )
})

describe("the number of requests that wait for the storage before or beside the mailbox", () => {
  /**
   * Runs thirty requests while the storage does not answer. Returns those refused at once; the others must succeed
   * later.
   */
  const refusedOfThirty = <A, E>(waiting: (i: number) => Effect.Effect<A, E>, release: () => void) =>
    Effect.gen(function* () {
      const fibers = yield* Effect.forEach(Array.from({ length: 30 }), (_, i) => Effect.forkChild(waiting(i)))
      yield* Harness.settled
      const refused = fibers.filter((fiber) => fiber.pollUnsafe() !== undefined)
      for (const fiber of refused) assert.isTrue(isUnavailable(yield* Fiber.await(fiber)))
      release()
      for (const fiber of fibers) if (!refused.includes(fiber)) yield* Fiber.join(fiber)
      return refused.length
    })

  const restarted = Effect.gen(function* () {
    const { engine, storage } = yield* start()
    const { id } = (yield* create(engine)) as Toy.Counter
    yield* engine.stop
    // The used keys are not known before they have been read.
    const scan = () => Effect.fail(Harness.outage("no answer"))
    const place = Context.add(storage, Views, { ...Harness.viewsOf(storage), scan })
    return { id, ...(yield* start({ mailboxCapacity: 10 }, place)) }
  })

  it.effect("is bounded: starts of the account", () =>
    Effect.gen(function* () {
      const { engine, hold, release } = yield* restarted
      hold("read")
      assert.strictEqual(
        yield* refusedOfThirty(
          () => engine.accounts.wake(ACCOUNT),
          () => release("read")
        ),
        20
      )
      assert.strictEqual(yield* increment(engine), 1)
    })
  )

  it.effect("is bounded: look-ups of keys", () =>
    Effect.gen(function* () {
      const { engine, hold, release, storage } = yield* restarted
      const { accounts } = engine
      yield* accounts.wake(ACCOUNT)
      const command = Toy.command({ op: "increment", slot: "a", by: 1 })
      const execute = (i: number) => runOnce(accounts, ACCOUNT, Toy.request(`key ${i}`), () => command)
      hold("read")
      assert.strictEqual(yield* refusedOfThirty(execute, () => release("read")), 20)
      assert.strictEqual(yield* increment(engine), 11)
      assert.strictEqual((yield* Harness.recordsOf(storage, ACCOUNT)).length, 12)
    })
  )

  it.effect("is bounded: repetitions", () =>
    Effect.gen(function* () {
      const { engine, hold, release, storage } = yield* restarted
      const command = Toy.command({ op: "increment", slot: "a", by: 1 })
      const execute = () => runOnce(engine.accounts, ACCOUNT, Toy.request("key"), () => command)
      hold("append.before")
      assert.strictEqual(yield* refusedOfThirty(execute, () => release("append.before")), 20)
      assert.strictEqual((yield* Harness.recordsOf(storage, ACCOUNT)).length, 2)
    })
  )

  it.effect("is bounded: reads and lists", () =>
    Effect.gen(function* () {
      const { engine, hold, id, release } = yield* restarted
      const { accounts } = engine
      yield* accounts.wake(ACCOUNT)
      yield* Harness.settled
      hold("read")
      const read = (i: number): Effect.Effect<unknown, Unavailable> =>
        i % 2 === 0 ? accounts.read(ACCOUNT, id) : accounts.list(ACCOUNT, { kind: Toy.COUNTER.name, limit: 1 })
      assert.strictEqual(yield* refusedOfThirty(read, () => release("read")), 20)
      // Interrupted reads no longer count.
      hold("read")
      const gone = yield* Effect.forEach(Array.from({ length: 10 }), () => Effect.forkChild(read(1)))
      yield* Harness.settled
      yield* Fiber.interruptAll(gone)
      release("read")
      assert.strictEqual(yield* increment(engine), 1)
    })
  )
})

describe("commands", () => {
  it.effect("that exceed one flush, or one projection, all run and are visible", () =>
    Effect.gen(function* () {
      const { engine, hold, release } = yield* start()
      yield* create(engine)
      hold("append.before")
      const fibers = yield* Effect.forEach(Array.from({ length: 1500 }), () => Effect.forkChild(increment(engine)))
      yield* Effect.repeat(Harness.settled, { times: 20 })
      release("append.before")
      const counts = yield* Effect.forEach(fibers, (fiber) => Fiber.join(fiber))
      assert.strictEqual(new Set(counts).size, 1500)
      const { documents } = yield* engine.accounts.list(ACCOUNT, { kind: Toy.COUNTER.name, limit: 1 })
      assert.strictEqual((documents[0]!.value as Toy.Counter).count, 1500)
    })
  )

  it.effect("are still answered if one of them closes the actor, and the account starts anew", () =>
    Effect.gen(function* () {
      const { engine } = yield* start()
      const counter = (yield* create(engine)) as Toy.Counter
      // No response either.
      const fatal = Effect.succeed(undefined as never)
      const died = yield* Effect.exit(runOnce(engine.accounts, ACCOUNT, Toy.request("fatal"), () => fatal))
      assert.isTrue(Exit.hasDies(died))
      yield* Harness.settled
      yield* create(engine, "b")
      assert.isDefined(yield* engine.accounts.read(ACCOUNT, counter.id))
    })
  )

  it.effect("that follow a record whose flush has failed never get into the log", () =>
    Effect.gen(function* () {
      const gate = Latch.makeUnsafe(false)
      let isFailing = false
      const { engine, storage } = yield* start({
        faults: (point) => {
          if (point !== "append.after" || !isFailing) return Effect.void
          isFailing = false
          return Effect.andThen(gate.await, Effect.fail(Harness.outage("lost")))
        }
      })
      yield* create(engine)
      isFailing = true
      const fibers = yield* Effect.forEach(Array.from({ length: 5 }), () =>
        Effect.andThen(Effect.forkChild(Effect.exit(increment(engine))), (fiber) => Effect.as(Harness.pass(20), fiber))
      )
      gate.openUnsafe()
      for (const fiber of fibers) assert.isTrue(isUnavailable(yield* Fiber.join(fiber)))
      // The first command's record was written although its flush failed; the others' were not.
      assert.strictEqual(yield* increment(engine), 2)
      assert.strictEqual((yield* Harness.recordsOf(storage, ACCOUNT)).length, 3)
    })
  )

  it.effect("that are in the log before its answer do not count as another process': the account stays in memory", () =>
    Effect.gen(function* () {
      const { engine, hold, reads, release } = yield* start()
      const { id } = yield* create(engine)
      hold("append.after")
      const writer = yield* Effect.forkChild(increment(engine))
      // During that, the log is read for records of other processes.
      yield* Harness.pass(60_000, 1000)
      release("append.after")
      assert.strictEqual(yield* Fiber.join(writer), 1)
      const before = reads()
      assert.strictEqual((yield* engine.accounts.read(ACCOUNT, id))?.version, 2)
      assert.strictEqual(reads(), before)
    })
  )

  it.effect("that change nothing wait for the flush of the records they have read, and fail with it", () =>
    Effect.gen(function* () {
      let isFailing = false
      const gate = Latch.makeUnsafe(false)
      const { engine } = yield* start({
        faults: (point) =>
          isFailing && point === "append.before"
            ? Effect.andThen(gate.await, Effect.fail(Harness.outage("lost")))
            : Effect.void
      })
      yield* create(engine)
      isFailing = true
      const writer = yield* Effect.forkChild(Effect.exit(increment(engine)))
      const looker = yield* Effect.forkChild(Effect.exit(engine.accounts.run(ACCOUNT, Toy.counterIn("a"))))
      yield* Harness.settled
      assert.isUndefined(looker.pollUnsafe())
      gate.openUnsafe()
      assert.isTrue(isUnavailable(yield* Fiber.join(writer)))
      assert.isTrue(isUnavailable(yield* Fiber.join(looker)))
    })
  )

  it.effect("that wait for the log when the engine stops are still answered", () =>
    Effect.gen(function* () {
      const { engine, hold, release, storage } = yield* start()
      yield* create(engine)
      yield* engine.projector.drained
      hold("append.before")
      const writers = yield* Effect.forEach([1, 2], () =>
        Effect.andThen(Effect.forkChild(increment(engine)), (fiber) => Effect.as(Harness.pass(20), fiber))
      )
      const stopping = yield* Effect.forkChild(engine.stop)
      yield* Harness.settled
      release("append.before")
      yield* Harness.pass(100, 10)
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(
        writers.map((fiber) => fiber.pollUnsafe()),
        [Exit.succeed(1), Exit.succeed(2)]
      )
      assert.deepStrictEqual(yield* Harness.viewsOf(storage).behind, [])
      yield* Harness.verified(storage)
    })
  )

  it.effect("that cannot be written do not keep the engine from stopping", () =>
    Effect.gen(function* () {
      const { engine, hold } = yield* start()
      hold("append.before")
      yield* Effect.forkChild(create(engine))
      yield* Harness.settled
      const stopping = yield* Effect.forkChild(engine.stop)
      yield* Harness.pass(5000)
      assert.isDefined(stopping.pollUnsafe())
    })
  )

  it.effect("that have restarted an account use its only actor, also if others are about to restart it", () =>
    Effect.gen(function* () {
      let isDown = false
      let reads = 0
      const { engine } = yield* start({
        faults: (point) => {
          if (point === "read") reads++
          return isDown && point !== "apply.before" ? Effect.fail(Harness.outage("down")) : Effect.void
        }
      })
      const { id } = yield* create(engine)
      yield* engine.projector.drained
      isDown = true
      assert.isTrue(isUnavailable(yield* Effect.exit(increment(engine))))
      yield* Harness.settled
      isDown = false
      assert.strictEqual(yield* increment(engine), 1)
      // The restart after the failed command is tried again.
      yield* Harness.pass(2000, 100)
      const before = reads
      assert.strictEqual((yield* engine.accounts.read(ACCOUNT, id))?.id, id)
      assert.strictEqual(reads, before)
    })
  )
})

describe("the cache", () => {
  it.effect("keeps what is read of the replicated account, with any number of other accounts in memory", () =>
    Effect.gen(function* () {
      const common = "common"
      const others = Array.from({ length: 200 }, (_, i) => `mer_${i}:test`)
      const written = yield* start()
      const created = yield* Effect.forEach(["a", "b", "c", "d"], (slot) => create(written.engine, slot, common))
      yield* Effect.forEach(others, (account) => create(written.engine, "a", account), { discard: true })
      yield* written.engine.stop
      const { engine, reads } = yield* start({ replicated: common, cacheBytes: 32_000 }, written.storage)
      // Each of the others fills its share.
      yield* Effect.forEach(others, (account) => increment(engine, account), { discard: true })
      const readAll = Effect.gen(function* () {
        const before = reads()
        for (const { id } of created) assert.strictEqual((yield* engine.accounts.read(common, id))?.id, id)
        return reads() - before
      })
      assert.isAtLeast(yield* readAll, created.length)
      assert.strictEqual(yield* readAll, 0)
    })
  )
})

describe("a wipe", () => {
  it.effect("that takes long keeps no other account's lists waiting, and its own account's until it is done", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const storage = yield* Harness.storageInMemory
      const views = Harness.viewsOf(storage)
      const gate = Latch.makeUnsafe(false)
      const slow = Context.add(storage, Views, {
        ...views,
        apply: (projection, leasedUntil) =>
          Effect.andThen(
            projection.sweep?.wiped === true ? gate.await : Effect.void,
            views.apply(projection, leasedUntil)
          )
      })
      const engine = yield* Harness.startEngine(slow)
      yield* Effect.addFinalizer(() => engine.kill)
      const idsOf = (account: string) =>
        Effect.map(engine.accounts.list(account, { kind: Toy.COUNTER.name, limit: 10 }), ({ documents }) =>
          documents.map(({ id }) => id)
        )
      yield* create(engine, "a")
      yield* engine.accounts.run(
        ACCOUNT,
        Effect.map(Transaction, (transaction) => transaction.wipe())
      )
      const after = yield* create(engine, "b")
      const other = yield* create(engine, "a", "mer_2:test")
      assert.deepStrictEqual(yield* idsOf("mer_2:test"), [other.id])
      const own = yield* Effect.forkChild(idsOf(ACCOUNT))
      const drained = yield* Effect.forkChild(engine.projector.drained)
      yield* Harness.pass(1000, 100)
      assert.isUndefined(own.pollUnsafe())
      assert.isUndefined(drained.pollUnsafe())
      const later = yield* create(engine, "c")
      gate.openUnsafe()
      assert.includeMembers([...(yield* Fiber.join(own))], [after.id])
      yield* Fiber.join(drained)
      assert.deepStrictEqual(yield* idsOf(ACCOUNT), [later.id, after.id])
      assert.deepStrictEqual(yield* views.behind, [])
      yield* Harness.verified(storage)
    })
  )
})

describe("a read", () => {
  it.effect("waits for the flush of the state that it shows, and not if that is durable", () =>
    Effect.gen(function* () {
      const { engine, hold, release } = yield* start()
      const [a, b] = [yield* create(engine, "a"), yield* create(engine, "b")]
      hold("append.before")
      const writer = yield* Effect.forkChild(increment(engine))
      yield* Harness.settled
      const reader = yield* Effect.forkChild(engine.accounts.read(ACCOUNT, a.id))
      const ofMissing = yield* Effect.forkChild(engine.accounts.read(ACCOUNT, "ctr_missing"))
      yield* Harness.settled
      assert.isUndefined(reader.pollUnsafe())
      assert.isUndefined(ofMissing.pollUnsafe())
      const read = yield* engine.accounts.read(ACCOUNT, b.id)
      assert.strictEqual(read?.id, b.id)
      release("append.before")
      yield* Fiber.join(writer)
      const entry = yield* Fiber.join(reader)
      assert.strictEqual(entry?.deleted === false ? (entry.value as Toy.Counter).count : null, 1)
      assert.isUndefined(yield* Fiber.join(ofMissing))
    })
  )

  it.effect("of a document whose flush fails does not show it", () =>
    Effect.gen(function* () {
      let failing = false
      const gate = Latch.makeUnsafe(false)
      const { engine } = yield* start({
        faults: (point) =>
          Effect.suspend(() =>
            failing && point === "append.before"
              ? Effect.andThen(gate.await, Effect.fail(Harness.outage("lost")))
              : Effect.void
          )
      })
      const counter = yield* create(engine)
      failing = true
      const writer = yield* Effect.forkChild(Effect.exit(increment(engine)))
      yield* Harness.settled
      const reader = yield* Effect.forkChild(Effect.exit(engine.accounts.read(ACCOUNT, counter.id)))
      yield* Harness.settled
      gate.openUnsafe()
      assert.isTrue(isUnavailable(yield* Fiber.join(writer)))
      assert.isTrue(isUnavailable(yield* Fiber.join(reader)))
      failing = false
      const entry = yield* engine.accounts.read(ACCOUNT, counter.id)
      assert.strictEqual(entry?.deleted === false ? (entry.value as Toy.Counter).count : null, 0)
    })
  )

  it.effect("shows nothing from before a wipe, though the views still have it", () =>
    Effect.gen(function* () {
      const { engine, hold, release } = yield* start()
      const { id } = yield* create(engine)
      const answer = Effect.succeed(Toy.answer(200, "{}"))
      const answered = runOnce(engine.accounts, ACCOUNT, Toy.request("key"), () => answer)
      yield* answered
      assert.isNotNull((yield* answered).replayOf)
      yield* engine.accounts.run(
        ACCOUNT,
        Effect.map(Transaction, (transaction) => transaction.setTimer({ id: "t", name: "n", dueAt: Harness.START * 2 }))
      )
      const wakeAt = () => engine.accounts.wakeTimes(Harness.START).get(ACCOUNT)
      assert.strictEqual(wakeAt(), Harness.START * 2)
      yield* engine.projector.drained
      hold("apply.before")
      yield* engine.accounts.run(
        ACCOUNT,
        Effect.map(Transaction, (transaction) => transaction.wipe())
      )
      const reader = yield* Effect.forkChild(engine.accounts.read(ACCOUNT, id))
      const repetition = yield* Effect.forkChild(answered)
      yield* Harness.settled
      release("apply.before")
      yield* engine.projector.drained
      assert.isUndefined(yield* Fiber.join(reader))
      assert.isNull((yield* Fiber.join(repetition)).replayOf)
      assert.strictEqual(wakeAt(), Infinity)
    })
  )

  it.effect("shows nothing from memory after the log was found to be damaged", () =>
    Effect.gen(function* () {
      let damaged = false
      const storage = yield* Harness.storageInMemory
      const journal = Harness.journalOf(storage)
      const spoilt = (row: JournalRow) => (damaged ? { ...row, bytes: row.bytes.with(0, 0) } : row)
      const read: JournalShape["read"] = (...query) => Effect.map(journal.read(...query), (rows) => rows.map(spoilt))
      const { engine } = yield* start({}, Context.add(storage, Journal, Journal.of({ ...journal, read })))
      const counter = (yield* create(engine)) as Toy.Counter
      yield* engine.projector.drained
      assert.isDefined(engine.accounts.peek(ACCOUNT, counter.id))
      // The projection finds a moved checkpoint, and so reads the log.
      damaged = true
      yield* Harness.viewsOf(storage).clear(ACCOUNT)
      yield* create(engine, "b")
      yield* engine.projector.drained
      assert.isUndefined(engine.accounts.peek(ACCOUNT, counter.id))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(engine.accounts.read(ACCOUNT, counter.id))))
    })
  )

  it.effect("by an id of another kind or account, or an unknown id, finds nothing", () =>
    Effect.gen(function* () {
      const { engine } = yield* start()
      const { id } = yield* create(engine)
      assert.isUndefined(yield* engine.accounts.read("mer_1:live", id))
      assert.isUndefined(yield* engine.accounts.read(ACCOUNT, `${id}x`))
      const asSlot = yield* engine.accounts.run(
        ACCOUNT,
        Effect.flatMap(Transaction, (transaction) => transaction.get(Toy.SLOT, id))
      )
      assert.isUndefined(asSlot)
    })
  )

  it.effect.prop(
    "that is interrupted at any time leaves the account usable",
    {
      steps: Schema.Literals([2, 3, 4, 5]),
      moment: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 }))
    },
    Effect.fnUntraced(function* ({ moment, steps }) {
      const first = yield* start()
      const { id } = yield* create(first.engine)
      yield* first.engine.projector.drained
      const { engine } = yield* start({}, first.storage)
      const read = Effect.provideService(engine.accounts.read(ACCOUNT, id), References.MaxOpsBeforeYield, steps)
      const reader = yield* Effect.forkChild(read)
      for (let i = 0; i < moment; i++) yield* Effect.yieldNow
      yield* Fiber.interrupt(reader)
      const writer = yield* Effect.forkChild(increment(engine))
      // An activation that the reader began yields after as few steps as the reader.
      for (let i = 0; i < 3; i++) yield* Harness.settled
      assert.isDefined(writer.pollUnsafe(), "the account hangs")
      assert.strictEqual(yield* Fiber.join(writer), 1)
    }),
    { arbitrary: { runs: 200 } }
  )
})

describe("a list", () => {
  it.effect("shows all records acknowledged before it, however slow the views are", () =>
    Effect.gen(function* () {
      const { engine, hold, release } = yield* start()
      hold("apply.before")
      for (const slot of ["a", "b", "c"]) yield* create(engine, slot)
      const list = yield* Effect.forkChild(engine.accounts.list(ACCOUNT, { kind: Toy.COUNTER.name, limit: 10 }))
      const events = yield* Effect.forkChild(engine.accounts.events(ACCOUNT, { limit: 10 }))
      yield* Harness.settled
      assert.isUndefined(list.pollUnsafe())
      assert.isUndefined(events.pollUnsafe())
      release("apply.before")
      const { documents } = yield* Fiber.join(list)
      assert.deepStrictEqual(
        documents.map(({ value }) => (value as Toy.Counter).slot),
        ["c", "b", "a"]
      )
      assert.strictEqual((yield* Fiber.join(events)).events.length, 3)
    })
  )

  it.effect("is answered when the views can be written again", () =>
    Effect.gen(function* () {
      let isFailing = true
      const { engine } = yield* start({
        faults: (point) =>
          isFailing && point === "apply.before" ? Effect.fail(Harness.outage("the views")) : Effect.void
      })
      yield* create(engine)
      const list = yield* Effect.forkChild(engine.accounts.list(ACCOUNT, { kind: Toy.COUNTER.name, limit: 10 }))
      yield* Harness.pass(1000, 100)
      assert.isUndefined(list.pollUnsafe())
      isFailing = false
      yield* Harness.pass(1000, 100)
      assert.strictEqual((yield* Fiber.join(list)).documents.length, 1)
    })
  )

  it.effect("that waits for the views fails at once when its actor closes", () =>
    Effect.gen(function* () {
      let isDown = false
      const { engine } = yield* start({
        faults: (point) => {
          if (point === "apply.before") return Effect.never
          return isDown ? Effect.fail(Harness.outage("down")) : Effect.void
        }
      })
      yield* create(engine)
      const list = yield* Effect.forkChild(
        Effect.exit(engine.accounts.list(ACCOUNT, { kind: Toy.COUNTER.name, limit: 10 }))
      )
      yield* Harness.settled
      isDown = true
      assert.isTrue(isUnavailable(yield* Effect.exit(increment(engine))))
      yield* Harness.settled
      const exit = list.pollUnsafe()
      assert.isTrue(exit !== undefined && Exit.isSuccess(exit) && isUnavailable(exit.value))
    })
  )

  it.effect("shows no record that a closed actor could not write", () =>
    Effect.gen(function* () {
      const reading = Latch.makeUnsafe(false)
      let isHeld = false
      let isFailing = false
      const { engine } = yield* start({
        faults: (point) => {
          if (point === "append.before" && isFailing) return Effect.fail(Harness.outage("the log"))
          if (point !== "read" || !isHeld) return Effect.void
          isHeld = false
          return reading.await
        }
      })
      yield* create(engine)
      yield* engine.projector.drained
      // The reads of the start are over.
      yield* Harness.settled
      isHeld = true
      const list = yield* Effect.forkChild(engine.accounts.list(ACCOUNT, { kind: "counter", limit: 1 }))
      yield* Harness.settled
      isFailing = true
      assert.isTrue(isUnavailable(yield* Effect.exit(increment(engine))))
      isFailing = false
      // Gets the version that the lost record would have had.
      yield* engine.accounts.run(
        ACCOUNT,
        Effect.flatMap(Toy.counterIn("a"), (counter) => Toy.add(counter!.value, 5))
      )
      yield* engine.projector.drained
      reading.openUnsafe()
      const { documents } = yield* Fiber.join(list)
      assert.deepStrictEqual(
        documents.map(({ json }) => (JSON.parse(json) as Toy.Counter).count),
        [5]
      )
    })
  )

  it.effect("costs the storage little if many run at once, and each gets its own result", () =>
    Effect.gen(function* () {
      const { engine, runAll, slots } = yield* manyLists
      const readCounters = runAll(({ account, limit }) => engine.accounts.list(account, { kind: "counter", limit }))
      const slotsOf = (pages: Effect.Success<typeof readCounters>["answers"]) =>
        pages.map(({ documents }) => documents.map(({ value }) => (value as Toy.Counter).slot))
      const fromJournal = yield* readCounters
      assert.deepStrictEqual(slotsOf(fromJournal.answers), slots)
      assert.isAtMost(fromJournal.reads, 10)
      for (const slot of slots.flat()) {
        const account = slot === SUBSCRIBED ? "mer_2:test" : ACCOUNT
        yield* engine.accounts.run(account, Toy.counterIn(slot))
      }
      const fromMemory = yield* readCounters
      assert.deepStrictEqual(slotsOf(fromMemory.answers), slots)
      assert.isAtMost(fromMemory.reads, 5)
    })
  )

  it.effect("of events reads their records, and their pending counts, together with those of other lists", () =>
    Effect.gen(function* () {
      const { engine, runAll, slots } = yield* manyLists
      const lists = yield* runAll(
        Effect.fnUntraced(function* ({ account, limit }) {
          const { events } = yield* engine.accounts.events(account, { limit })
          const ids = events.map(({ id }) => id)
          return { events, pending: yield* engine.accounts.pendingDeliveries(account, ids) }
        })
      )
      const seen = lists.answers.map(({ events }) =>
        events.map(({ object }) => (JSON.parse(object) as Toy.Counter).slot)
      )
      assert.deepStrictEqual(seen, slots)
      assert.deepStrictEqual(
        lists.answers.map(({ pending }) => pending),
        slots.map((ofList) => ofList.map((slot) => (slot === SUBSCRIBED ? 1 : 0)))
      )
      // The events themselves are searched for each list separately.
      assert.isAtMost(lists.reads, slots.length + 10)
    })
  )

  it.effect("waits for no other account", () =>
    Effect.gen(function* () {
      const { engine, hold } = yield* start()
      yield* create(engine)
      yield* engine.projector.drained
      hold("apply.before")
      yield* create(engine, "a", "mer_2:test")
      const { documents } = yield* engine.accounts.list(ACCOUNT, { kind: Toy.COUNTER.name, limit: 10 })
      assert.strictEqual(documents.length, 1)
    })
  )

  it.effect("filters by all given labels", () =>
    Effect.gen(function* () {
      const { engine } = yield* start()
      yield* create(engine, "a")
      yield* create(engine, "b")
      yield* engine.accounts.run(ACCOUNT, Toy.command({ op: "rename", slot: "b", name: "" }))
      const slots = (labels: Readonly<Record<string, string>>) =>
        Effect.map(engine.accounts.list(ACCOUNT, { kind: Toy.COUNTER.name, labels, limit: 10 }), ({ documents }) =>
          documents.map(({ value }) => (value as Toy.Counter).slot)
        )
      assert.deepStrictEqual(yield* slots({}), ["b", "a"])
      assert.deepStrictEqual(yield* slots({ slot: "b" }), ["b"])
      assert.deepStrictEqual(yield* slots({ name: "plain" }), ["a"])
      assert.deepStrictEqual(yield* slots({ name: "plain", slot: "b" }), [])
      assert.deepStrictEqual(yield* slots({ constructor: "x" }), [])
    })
  )
})

describe("an idle account", () => {
  it.effect("leaves memory after its idle time, not before, and comes back unchanged", () =>
    Effect.gen(function* () {
      const { engine, reads } = yield* start({ idleMillis: 60_000 })
      const { id } = yield* create(engine)
      const readAgain = Effect.gen(function* () {
        const before = reads()
        assert.strictEqual((yield* engine.accounts.read(ACCOUNT, id))?.id, id)
        return reads() - before
      })
      yield* Harness.pass(59_000)
      assert.strictEqual(yield* readAgain, 0)
      assert.strictEqual(yield* increment(engine), 1)
      yield* Harness.pass(30_000)
      assert.strictEqual(yield* readAgain, 0)
      yield* Harness.pass(120_000)
      assert.isAbove(yield* readAgain, 0)
      assert.strictEqual(yield* increment(engine), 2)
    })
  )

  it.effect("stays while one of its commands waits for the log, or the views are behind", () =>
    Effect.gen(function* () {
      const { engine, hold, reads, release } = yield* start({ idleMillis: 1000 })
      const { id } = yield* create(engine)
      yield* engine.projector.drained
      hold("append.before")
      const writer = yield* Effect.forkChild(increment(engine))
      yield* Harness.pass(10_000)
      release("append.before")
      assert.strictEqual(yield* Fiber.join(writer), 1)
      hold("apply.before")
      assert.strictEqual(yield* increment(engine), 2)
      yield* Harness.pass(10_000)
      const before = reads()
      const read = yield* engine.accounts.read(ACCOUNT, id)
      assert.strictEqual(read?.deleted === false ? (read.value as Toy.Counter).count : null, 2)
      assert.strictEqual(reads(), before)
      release("apply.before")
    })
  )

  it.effect("stays while one of its commands runs", () =>
    Effect.gen(function* () {
      const { engine } = yield* start({ idleMillis: 1000 })
      yield* create(engine)
      yield* engine.projector.drained
      let runs = 0
      const slow = Effect.andThen(
        Effect.sync(() => runs++),
        Effect.sleep(5000)
      )
      const running = yield* Effect.forkChild(engine.accounts.run(ACCOUNT, slow))
      yield* Harness.pass(20_000, 100)
      yield* Fiber.join(running)
      assert.strictEqual(runs, 1)
    })
  )

  it.effect("is activated once for all simultaneous requests", () =>
    Effect.gen(function* () {
      const first = yield* start()
      yield* create(first.engine)
      yield* first.engine.projector.drained
      yield* first.engine.kill
      const costOf = (callers: number) =>
        Effect.gen(function* () {
          const { engine, reads } = yield* start({}, first.storage)
          yield* Harness.settled
          const before = reads()
          yield* Effect.forEach(Array.from({ length: callers }), () => engine.accounts.wake(ACCOUNT), {
            concurrency: "unbounded"
          })
          yield* Harness.settled
          return reads() - before
        })
      assert.strictEqual(yield* costOf(10), yield* costOf(1))
    })
  )
})

describe("the views of an account", () => {
  it.effect("get records without a waiting read in batches, also after a hurried read", () =>
    Effect.gen(function* () {
      const { engine, hold, projections, release } = yield* start()
      const list = engine.accounts.list(ACCOUNT, { kind: Toy.COUNTER.name, limit: 1 })
      yield* create(engine)
      yield* list
      // Hurried reads for nothing, and for records that are already being projected.
      yield* engine.projector.drained
      hold("apply.before")
      yield* increment(engine)
      yield* Harness.pass(50)
      const waiting = yield* Effect.forkChild(list)
      yield* Harness.settled
      release("apply.before")
      yield* Fiber.join(waiting)
      const before = projections()
      for (let i = 0; i < 10; i++) yield* Effect.andThen(increment(engine), Harness.settled)
      assert.strictEqual(projections(), before)
      yield* Harness.pass(50)
      assert.strictEqual(projections(), before + 1)
    })
  )
})

describe("the memory of an account", () => {
  it.effect("stays bounded for written objects and for objects that are only read", () =>
    Effect.gen(function* () {
      const written = yield* start({ cacheBytes: 5000 })
      const ids = yield* Effect.forEach(Array.from({ length: 100 }), (_, i) =>
        Effect.tap(create(written.engine, `s${i}`), written.engine.projector.drained)
      )
      const onlyRead = yield* start({ cacheBytes: 5000 }, written.storage)
      for (const { engine, reads } of [written, onlyRead]) {
        for (let round = 1; round <= 2; round++) {
          const before = reads()
          yield* Effect.forEach(ids, ({ id }) => engine.accounts.read(ACCOUNT, id))
          assert.isAtLeast(reads() - before, 80, "objects that were used once are still in memory")
        }
      }
    })
  )

  it.effect("is counted in bytes: it holds fewer long objects", () =>
    Effect.gen(function* () {
      const { engine, reads } = yield* start({ cacheBytes: 200_000 })
      const readsOf = (name: string, prefix: string) =>
        Effect.gen(function* () {
          const ids = yield* Effect.forEach(Array.from({ length: 100 }), (_, i) =>
            Effect.tap(engine.accounts.run(ACCOUNT, Toy.create(`${prefix}${i}`, name)), engine.projector.drained)
          )
          const before = reads()
          yield* Effect.forEach(ids, ({ id }) => engine.accounts.read(ACCOUNT, id))
          return reads() - before
        })
      assert.strictEqual(yield* readsOf("short", "s"), 0)
      assert.isAtLeast(yield* readsOf("long".repeat(5000), "l"), 90)
    })
  )

  it.effect("holds few of many responses", () =>
    Effect.gen(function* () {
      const { engine, reads } = yield* start({ cacheBytes: 5000 })
      yield* create(engine)
      const answer = Effect.succeed(Toy.answer(200, "{}"))
      const send = (_: unknown, i: number) =>
        Effect.tap(
          runOnce(engine.accounts, ACCOUNT, Toy.request(`key ${i}`), () => answer),
          engine.projector.drained
        )
      yield* Effect.forEach(Array.from({ length: 100 }), send)
      const before = reads()
      yield* Effect.forEach(Array.from({ length: 100 }), send)
      assert.isAtLeast(reads() - before, 80)
    })
  )

  it.effect("does not fill up with records that are not projected: commits wait for the views", () =>
    Effect.gen(function* () {
      const { engine, hold, release } = yield* start()
      hold("apply.before")
      // A label repeats the name, so a record is twice as long.
      const name = "n".repeat(1_048_576)
      let created = 0
      const writer = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 40 }), (_, i) =>
          Effect.tap(engine.accounts.run(ACCOUNT, Toy.create(`s${i}`, name)), () => Effect.sync(() => created++))
        )
      )
      yield* Effect.repeat(Harness.pass(1), { times: 100 })
      assert.isAbove(created, 0)
      assert.isBelow(created, 36)
      release("apply.before")
      yield* Harness.pass(1000)
      yield* Fiber.join(writer)
      assert.strictEqual(created, 40)
    })
  )
})

describe("a command with a bug", () => {
  it.effect("does not harm the account, whatever it wrote", () =>
    Effect.gen(function* () {
      const { engine } = yield* start()
      yield* create(engine)
      const cyclic: Record<string, unknown> = {}
      cyclic["self"] = cyclic
      for (const hidden of [cyclic, 5n, () => 1, "text", 5, null]) {
        const kind: Kind<Toy.Slot, unknown> = { name: "slot" }
        const exit = yield* Effect.forkChild(
          Effect.exit(
            engine.accounts.run(
              ACCOUNT,
              Effect.map(Transaction, (transaction) =>
                transaction.put(kind, { id: "slot_x", counter: "none" }, hidden as never)
              )
            )
          )
        )
        yield* Harness.settled
        assert.isDefined(exit.pollUnsafe(), "the command is never answered")
        const next = yield* Effect.forkChild(increment(engine))
        yield* Harness.settled
        assert.isDefined(next.pollUnsafe(), "the account hangs")
      }
      assert.strictEqual(yield* increment(engine), 7)
    })
  )

  it.effect("cannot write a record that could not be read again", () =>
    Effect.gen(function* () {
      const { engine } = yield* start()
      // A counter's name is in its record twice, because it is also a label.
      const named = (length: number) => engine.accounts.run(ACCOUNT, Toy.create("a", "x".repeat(length)))
      assert.isTrue(Exit.hasDies(yield* Effect.exit(named(RECORD_BYTES_MAX / 2))))
      const largest = yield* named(RECORD_BYTES_MAX / 2 - 1000)
      assert.strictEqual((yield* engine.accounts.read(ACCOUNT, largest.id))?.id, largest.id)
    })
  )

  it.effect("cannot write a label that the views could not hold", () =>
    Effect.gen(function* () {
      const { engine } = yield* start()
      yield* create(engine)
      const kind: Kind<Toy.Slot> = { name: "slot", labels: ({ counter }) => ({ counter }) }
      for (const label of ["\0", "a\ud800", "\udc00"]) {
        const put = Effect.map(Transaction, (transaction) => transaction.put(kind, { id: "slot_x", counter: label }))
        const exit = yield* Effect.exit(engine.accounts.run(ACCOUNT, put))
        assert.isTrue(Exit.isFailure(exit))
        assert.isUndefined(yield* engine.accounts.read(ACCOUNT, "slot_x"))
      }
      assert.strictEqual(yield* increment(engine), 1)
    })
  )
})
