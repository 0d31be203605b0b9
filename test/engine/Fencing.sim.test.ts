/**
 * Several owners of one account: engines on one journal, as during a handover between two processes. Only one of them
 * can append a version; the others notice, reload, and run their commands again on the fresh state.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Schema } from "effect"
import { runOnce } from "../../src/engine/Accounts.ts"
import type { Faults } from "./storage/Faults.ts"
import type { RunningEngine } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import { Random, Seed } from "../support/Random.ts"
import * as Toy from "./Toy.ts"

const ACCOUNTS = ["mer_1:test", "mer_2:test"]

/** Adds one to the counter in slot a, and returns its new count and the number of runs of the command. */
const increment = (engine: RunningEngine, account: string, random: Random) =>
  Effect.suspend(() => {
    let runs = 0
    return engine.accounts.run(
      account,
      Effect.gen(function* () {
        runs++
        yield* random.jitter(2)
        const counter = yield* Toy.counterIn("a")
        const { count } = yield* Toy.add(counter!.value, 1)
        return { count, runs }
      })
    )
  })

const enginesOn = (storage: Harness.Storage, count: number, faults: Faults) =>
  Effect.forEach(Array.from({ length: count }), () => Harness.startEngine(storage, { faults }))

/** Two engines, and an account in which the first has created slot a. */
const twoOwners = Effect.gen(function* () {
  yield* Harness.startClock
  yield* Harness.flowingTime
  const storage = yield* Harness.storageInMemory
  const [one, two] = (yield* enginesOn(storage, 2, () => Effect.void)) as [RunningEngine, RunningEngine]
  const [account] = ACCOUNTS as [string]
  const { id } = yield* one.accounts.run(account, Toy.create("a", "plain"))
  const stop = Effect.forEach([one, two], (engine) => engine.stop)
  return { account, id, one, stop, storage, two }
})

describe("two owners of an account", () => {
  it.effect.prop(
    "count every acknowledged increment exactly once",
    {
      seed: Seed,
      engines: Schema.Literals([2, 3]),
      increments: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60 })),
      pauses: Schema.Literals([0, 10, 60])
    },
    Effect.fnUntraced(function* ({ engines: count, increments, pauses, seed }) {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const random = new Random(seed)
      const storage = yield* Harness.storageInMemory
      const engines = yield* enginesOn(storage, count, () => random.jitter(5))
      for (const account of ACCOUNTS) yield* engines[0]!.accounts.run(account, Toy.create("a", "plain"))

      const returned = new Map(ACCOUNTS.map((account) => [account, new Set<number>()] as const))
      let runs = 0
      yield* Effect.forEach(
        Array.from({ length: increments }),
        Effect.fnUntraced(function* () {
          yield* random.jitter(pauses)
          const account = random.pick(ACCOUNTS)
          const outcome = yield* increment(random.pick(engines), account, random)
          runs += outcome.runs
          assert.isFalse(returned.get(account)!.has(outcome.count), "two commands returned the same count")
          returned.get(account)!.add(outcome.count)
        }),
        { concurrency: "unbounded", discard: true }
      )

      assert.isAtLeast(
        runs,
        [...returned.values()].reduce((sum, counts) => sum + counts.size, 0)
      )
      for (const account of ACCOUNTS) {
        const acknowledged = returned.get(account)!.size
        const records = yield* Harness.recordsOf(storage, account)
        // One for the creation; the read checks that versions have no gap.
        assert.strictEqual(records.length, acknowledged + 1)
        Harness.idsAscend(records)
        const last = yield* increment(random.pick(engines), account, random)
        assert.strictEqual(last.count, acknowledged + 1)
      }
      for (const engine of engines) yield* engine.projector.drained
      yield* Harness.verified(storage)
      for (const engine of engines) yield* engine.stop
    }),
    { arbitrary: { runs: 60 } }
  )

  it.effect("run a fenced command again, on the other's records", () =>
    Effect.gen(function* () {
      const random = new Random(1)
      const { account, one, stop, two } = yield* twoOwners
      assert.deepStrictEqual(yield* increment(two, account, random), { count: 1, runs: 1 })
      // The first engine still has the earlier state of the account in memory.
      assert.deepStrictEqual(yield* increment(one, account, random), { count: 2, runs: 2 })
      assert.deepStrictEqual(yield* increment(one, account, random), { count: 3, runs: 1 })
      assert.deepStrictEqual(yield* increment(two, account, random), { count: 4, runs: 2 })
      yield* stop
    })
  )

  it.effect("lose no answer of requests that wait during a fencing", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const random = new Random(3)
      const storage = yield* Harness.storageInMemory
      const gate = Latch.makeUnsafe(true)
      const slow = yield* Harness.startEngine(storage, {
        faults: (point) => (point === "append.before" ? gate.await : Effect.void)
      })
      const other = yield* Harness.startEngine(storage)
      const [account] = ACCOUNTS as [string]
      const { id } = yield* slow.accounts.run(account, Toy.create("a", "plain"))
      yield* increment(other, account, random)
      yield* gate.close
      const count = Effect.map(Toy.counterIn("a"), (counter) => counter!.value.count)
      const waiting = yield* Effect.forEach(
        [
          // A command whose flush will be fenced, one that reads its changes, and two that change nothing or something.
          increment(slow, account, random),
          slow.accounts.read(account, id),
          slow.accounts.run(account, count),
          slow.accounts.run(account, Effect.andThen(Effect.sleep(1000), count)),
          increment(slow, account, random)
        ],
        (effect) => Effect.andThen(Effect.forkChild(effect), (fiber) => Effect.as(Harness.settled, fiber))
      )
      yield* gate.open
      for (const fiber of waiting) yield* Fiber.join(fiber)
      assert.strictEqual((yield* increment(other, account, random)).count, 4)
      yield* Effect.forEach([slow, other], (engine) => engine.stop)
    })
  )

  it.effect("show the other's new documents at once, and its changes within half a minute", () =>
    Effect.gen(function* () {
      const random = new Random(4)
      const { account, id, one, stop, two } = yield* twoOwners
      const seenByTwo = Effect.map(two.accounts.read(account, id), (entry) =>
        entry === undefined || entry.deleted ? undefined : (entry.value as Toy.Counter).count
      )
      assert.strictEqual(yield* seenByTwo, 0)
      const { id: other } = yield* one.accounts.run(account, Toy.create("b", "plain"))
      yield* one.projector.drained
      const startedAt = yield* Harness.now
      assert.strictEqual((yield* two.accounts.read(account, other))?.id, other)
      assert.isBelow((yield* Harness.now) - startedAt, 1000)
      assert.strictEqual(yield* seenByTwo, 0)
      yield* increment(one, account, random)
      yield* one.projector.drained
      assert.strictEqual(yield* seenByTwo, 0)
      yield* Effect.sleep(31_000)
      assert.strictEqual(yield* seenByTwo, 1)
      yield* stop
    })
  )

  it.effect("are noticed even if the storage has failed during the check", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const storage = yield* Harness.storageInMemory
      let reads = 0
      let failing = false
      const faults: Faults = (point) =>
        Effect.suspend(() => {
          if (point !== "read" || !failing) return Effect.void
          reads++
          return Effect.fail(Harness.outage("no connection"))
        })
      const watching = yield* Harness.startEngine(storage, { faults })
      const other = yield* Harness.startEngine(storage)
      const [account] = ACCOUNTS as [string]
      const { id } = yield* watching.accounts.run(account, Toy.create("a", "plain"))
      yield* watching.projector.drained
      yield* increment(other, account, new Random(5))
      failing = true
      yield* Effect.sleep(31_000)
      failing = false
      assert.isAtLeast(reads, 1)
      yield* Effect.sleep(31_000)
      const entry = yield* watching.accounts.read(account, id)
      assert.strictEqual(entry?.deleted === false ? (entry.value as Toy.Counter).count : undefined, 1)
      yield* Effect.forEach([watching, other], (engine) => engine.stop)
    })
  )

  it.effect("replay each other's responses", () =>
    Effect.gen(function* () {
      const { account, one, stop, storage, two } = yield* twoOwners
      yield* two.accounts.read(account, "slot_a")
      const send = (engine: RunningEngine) =>
        runOnce(engine.accounts, account, Toy.request("key"), () => Toy.command({ op: "increment", slot: "a", by: 5 }))
      const first = yield* send(one)
      // The second engine does not know the key, runs the command, is fenced, and finds the response.
      const second = yield* send(two)
      assert.strictEqual(second.body, first.body)
      assert.isNotNull(second.replayOf)
      assert.strictEqual((yield* Harness.recordsOf(storage, account)).length, 2)
      yield* stop
    })
  )

  it.effect("do not affect the other accounts of the same flush", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const random = new Random(2)
      const storage = yield* Harness.storageInMemory
      let appends = 0
      const faults: Faults = (point) => Effect.sync(() => void (point === "append.before" && appends++))
      const one = yield* Harness.startEngine(storage, { faults })
      const two = yield* Harness.startEngine(storage)
      for (const account of ACCOUNTS) yield* one.accounts.run(account, Toy.create("a", "plain"))
      yield* increment(two, ACCOUNTS[0]!, random)
      appends = 0
      const outcomes = yield* Effect.forEach(ACCOUNTS, (account) => increment(one, account, new Random(0)), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(outcomes, [
        { count: 2, runs: 2 },
        { count: 1, runs: 1 }
      ])
      assert.isAtLeast(appends, 2)
      yield* Effect.forEach([one, two], (engine) => engine.stop)
    })
  )
})
