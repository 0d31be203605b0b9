/**
 * Crashes and failures of the storage at any step (semantics idempotency.atomic). After a restart on the storage that
 * was left:
 * - every acknowledged response is still true, and a repeat of its request replays the same bytes;
 * - a command that was not acknowledged is there as a whole or not at all, and its repeat takes effect exactly once;
 * - no read ever showed anything that the final journal does not hold.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit, Fiber, Schema } from "effect"
import { Unavailable, runOnce } from "../../src/engine/Accounts.ts"
import { Journal, type JournalShape, type StorageFailure } from "../../src/engine/log/Journal.ts"
import type { Faults } from "./storage/Faults.ts"
import { ACCOUNTS, Clients, everythingHolds, failureOf } from "./Clients.ts"
import * as Harness from "./Harness.ts"
import { Random, Seed } from "../support/Random.ts"
import * as Toy from "./Toy.ts"

const CLIENTS = 6

/** Frequency of each kind of fault, and the number of storage operations after which the process dies. */
const Plan = Schema.Struct({
  seed: Seed,
  failures: Schema.Literals([0, 0.05, 0.25]),
  hangs: Schema.Literals([0, 0.02]),
  crashAfter: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 120 }))
})
type Plan = typeof Plan.Type

/** Random faults; `onVisit` runs for each storage operation. */
const faultsOf =
  (plan: Plan, random: Random, onVisit: () => Effect.Effect<void>): Faults =>
  (point) =>
    Effect.gen(function* (): Effect.fn.Return<void, StorageFailure> {
      yield* random.jitter(3)
      yield* onVisit()
      if (random.chance(plan.failures)) return yield* Harness.outage(`${point} failed`)
      // A hang: the storage does not answer for a while.
      if (random.chance(plan.hangs)) yield* Effect.sleep(2000)
    })

describe("a crash", () => {
  it.effect.prop(
    "at any point, with a failing storage before it, loses nothing that was acknowledged",
    { first: Plan, second: Plan },
    Effect.fnUntraced(function* ({ first, second }) {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const storage = yield* Harness.storageInMemory
      const clients = new Clients(new Random(first.seed ^ second.seed))
      // Two processes, each killed during its work; then one that checks.
      for (const plan of [first, second]) {
        let visits = 0
        let die: Effect.Effect<void> = Effect.void
        const visit = () => Effect.suspend(() => (++visits === plan.crashAfter ? die : Effect.void))
        const faults = faultsOf(plan, new Random(plan.seed), visit)
        const engine = yield* Harness.startEngine(storage, { faults, cacheBytes: 5000 })
        die = engine.kill
        const running: Array<Fiber.Fiber<void, unknown>> = []
        // Detached: a client of a process that died waits forever.
        for (let i = 0; i < CLIENTS; i++) running.push(yield* Effect.forkDetach(clients.client(engine, 5)))
        const finished = Effect.forEach(running, Fiber.await, { discard: true })
        yield* Effect.timeoutOption(finished, 20_000)
        for (const fiber of running) {
          const exit = fiber.pollUnsafe()
          if (exit !== undefined) yield* exit
        }
        yield* engine.kill
      }
      yield* everythingHolds(storage, clients)
    }),
    { arbitrary: { runs: 60 } }
  )

  it.effect.prop(
    "at each step of a write leaves the write whole or not there",
    {
      seed: Seed,
      point: Schema.Literals(["append.before", "append.after", "apply.before", "apply.after"]),
      visit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 }))
    },
    Effect.fnUntraced(function* ({ point, seed, visit }) {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const storage = yield* Harness.storageInMemory
      const clients = new Clients(new Random(seed))
      let visits = 0
      let die: Effect.Effect<void> = Effect.void
      const faults: Faults = (at) => (at === point && ++visits === visit ? die : Effect.void)
      const engine = yield* Harness.startEngine(storage, { faults })
      die = engine.kill
      const running = yield* Effect.forkDetach(
        Effect.forEach([1, 2, 3], () => clients.client(engine, 4), { concurrency: "unbounded", discard: true })
      )
      yield* Effect.timeoutOption(Fiber.await(running), 1000)
      yield* engine.kill
      yield* everythingHolds(storage, clients)
    }),
    { arbitrary: { runs: 60 } }
  )
})

describe("a failing flush", () => {
  it.effect.prop(
    "fails its commands with Unavailable, and the account continues from the log",
    {
      seed: Seed,
      written: Schema.Boolean,
      outage: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 }))
    },
    Effect.fnUntraced(function* ({ outage, seed, written }) {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const random = new Random(seed)
      const storage = yield* Harness.storageInMemory
      let failing = 0
      const faults: Faults = (point) =>
        Effect.andThen(
          random.jitter(3),
          Effect.suspend((): Effect.Effect<void, StorageFailure> => {
            if (point !== (written ? "append.after" : "append.before") || failing === 0) return Effect.void
            failing--
            return Effect.fail(Harness.outage("the connection is lost"))
          })
        )
      const engine = yield* Harness.startEngine(storage, { faults })
      const [account] = ACCOUNTS as [string]
      const counter = yield* engine.accounts.run(account, Toy.create("a", "plain"))
      const increment = Effect.exit(engine.accounts.run(account, incrementSlot))
      failing = outage
      const exits = yield* Effect.forEach(
        Array.from({ length: 20 }),
        () => Effect.andThen(random.jitter(9), increment),
        {
          concurrency: "unbounded"
        }
      )
      const refused = exits.filter(Exit.isFailure)
      assert.isAbove(refused.length, 0)
      for (const exit of refused) assert.instanceOf(failureOf(exit), Unavailable)
      // When the storage is back, the account is back without a restart.
      failing = 0
      const acknowledged = exits.length - refused.length
      const value = yield* engine.accounts.run(account, incrementSlot)
      const read = yield* engine.accounts.read(account, counter.id)
      assert.strictEqual(read?.deleted === false ? (read.value as Toy.Counter).count : undefined, value)
      if (written) assert.isAtLeast(value, acknowledged + 1)
      else assert.strictEqual(value, acknowledged + 1)
      const records = yield* Harness.recordsOf(storage, account)
      assert.strictEqual(records.length, value + 1)
      yield* engine.projector.drained
      yield* Harness.verified(storage)
      yield* engine.stop
    }),
    { arbitrary: { runs: 40 } }
  )

  it.effect("whose record may have set timers lets them fire, without another request to the account", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const storage = yield* Harness.storageInMemory
      let lost = false
      const faults: Faults = (point) =>
        Effect.suspend(() =>
          lost && (point === "append.after" || point === "read") ? Effect.fail(Harness.outage("lost")) : Effect.void
        )
      const engine = yield* Harness.startEngine(storage, { faults })
      const [account] = ACCOUNTS as [string]
      const counter = yield* engine.accounts.run(account, Toy.create("a", "plain"))
      lost = true
      const command = Toy.command({ op: "setTimer", slot: "a", delay: 50 })
      const exit = yield* Effect.exit(runOnce(engine.accounts, account, Toy.request("lost"), () => command))
      assert.instanceOf(failureOf(exit), Unavailable)
      // The account cannot start anew at once.
      yield* Effect.sleep(300)
      lost = false
      // Far less than the scheduler's own polling interval.
      yield* Effect.sleep(2000)
      const [row] = yield* Harness.viewsOf(storage).documents([{ account, id: counter.id }])
      assert.strictEqual((JSON.parse(row!.document!) as Toy.Counter).count, 1 + Toy.TIMER_INCREMENT)
      yield* engine.stop
    })
  )

  it.effect("that succeeds after it was given up is noticed, without another request to the account", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const storage = yield* Harness.storageInMemory
      const journal = Harness.journalOf(storage)
      let late = false
      const append: JournalShape["append"] = (rows) => {
        if (!late) return journal.append(rows)
        late = false
        const givenUp = Effect.fail(Harness.outage("no answer in time"))
        return Effect.andThen(Effect.forkDetach(Effect.delay(journal.append(rows), 20_000)), givenUp)
      }
      const engine = yield* Harness.startEngine(Context.add(storage, Journal, { ...journal, append }))
      const [account] = ACCOUNTS as [string]
      const { id } = yield* engine.accounts.run(account, Toy.create("a", "plain"))
      late = true
      const command = Toy.command({ op: "setTimer", slot: "a", delay: 90 })
      const exit = yield* Effect.exit(runOnce(engine.accounts, account, Toy.request("late"), () => command))
      assert.instanceOf(failureOf(exit), Unavailable)
      yield* Effect.sleep(90_000)
      const read = yield* engine.accounts.read(account, id)
      assert.isTrue(read?.deleted === false && (read.value as Toy.Counter).count === 1 + Toy.TIMER_INCREMENT)
      yield* engine.stop
      yield* Harness.verified(storage)
    })
  )
})

describe("a journal with heavy records", () => {
  it.effect("is read to its end, however few records each read returns", () =>
    Effect.gen(function* () {
      const { account, storage } = yield* projectedInPart(5)
      const journal = Harness.journalOf(storage)
      const read: JournalShape["read"] = (of, after) => journal.read(of, after, 1)
      const heavy = Context.add(storage, Journal, { ...journal, read })
      const engine = yield* Harness.startEngine(heavy)
      assert.strictEqual(yield* engine.accounts.run(account, incrementSlot), 7)
      yield* engine.stop
      yield* Harness.verified(heavy)
    })
  )
})

describe("a damaged journal", () => {
  it.effect("that has lost records that are in the views is not continued", () =>
    Effect.gen(function* () {
      const { account, storage } = yield* projectedInPart(1)
      const journal = Harness.journalOf(storage)
      for (const gone of [[2], [2, 3]]) {
        const damaged: JournalShape = {
          ...journal,
          read: (of, after, limit) =>
            Effect.map(journal.read(of, after, limit), (rows) => rows.filter(({ version }) => !gone.includes(version))),
          at: (places) =>
            Effect.map(journal.at(places), (rows) =>
              rows.map((row) => (row !== undefined && gone.includes(row.version) ? undefined : row))
            )
        }
        const engine = yield* Harness.startEngine(Context.add(storage, Journal, damaged))
        const exit = yield* Effect.exit(engine.accounts.run(account, incrementSlot))
        const problem = `Record 2 of account ${account} is missing, but the views have it`
        assert.include(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", problem)
        yield* engine.kill
      }
    })
  )

  it.effect("of an account with emptied views delays no other account", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const storage = yield* Harness.storageInMemory
      const journal = Harness.journalOf(storage)
      const [damaged, sound] = ACCOUNTS as [string, string]
      let isDamaged = false
      const read: JournalShape["read"] = (account, after, limit) =>
        Effect.map(journal.read(account, after, limit), (rows) =>
          isDamaged && account === damaged ? rows.map((row) => ({ ...row, bytes: row.bytes.with(0, 0) })) : rows
        )
      const engine = yield* Harness.startEngine(Context.add(storage, Journal, { ...journal, read }))
      for (const account of [damaged, sound]) yield* engine.accounts.run(account, Toy.create("a", "plain"))
      yield* engine.projector.drained
      isDamaged = true
      // Like `till rebuild`, which must not run beside the service.
      yield* Harness.viewsOf(storage).clear(damaged)
      yield* engine.accounts.run(damaged, incrementSlot)
      yield* engine.accounts.run(sound, incrementSlot)
      const { documents } = yield* engine.accounts.list(sound, { kind: Toy.COUNTER.name, limit: 1 })
      assert.strictEqual((documents[0]!.value as Toy.Counter).count, 1)
      const exit = yield* Effect.exit(engine.accounts.list(damaged, { kind: Toy.COUNTER.name, limit: 1 }))
      assert.include(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", `Record 1 of account ${damaged} `)
      isDamaged = false
      assert.strictEqual(yield* engine.accounts.run(damaged, incrementSlot), 2)
      yield* engine.stop
    })
  )
})

/** An account with two records in the views, and a number of further ones only in the journal. */
const projectedInPart = Effect.fnUntraced(function* (more: number) {
  yield* Harness.startClock
  yield* Harness.flowingTime
  const storage = yield* Harness.storageInMemory
  const [account] = ACCOUNTS as [string]
  const first = yield* Harness.startEngine(storage)
  yield* first.accounts.run(account, Toy.create("a", "plain"))
  yield* first.accounts.run(account, incrementSlot)
  yield* first.stop
  const faults: Faults = (point) => (point === "apply.before" ? Effect.never : Effect.void)
  const second = yield* Harness.startEngine(storage, { faults })
  for (let i = 0; i < more; i++) yield* second.accounts.run(account, incrementSlot)
  yield* second.kill
  return { account, storage }
})

/** Adds one to the counter in slot a, and returns its count. */
const incrementSlot = Effect.gen(function* () {
  const counter = yield* Toy.counterIn("a")
  return (yield* Toy.add(counter!.value, 1)).count
})
