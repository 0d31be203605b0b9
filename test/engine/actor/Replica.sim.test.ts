/**
 * The replicated account is read in every engine (semantics runners.merchants). Changes acknowledged by its owner are
 * visible elsewhere within two seconds, and new documents at once. Only its owner writes to it, and a flood of wrong
 * keys causes no flood of queries.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import type { JournalShape } from "../../../src/engine/log/Journal.ts"
import { partitionOf, Placement } from "../../../src/engine/process/Placement.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import { Random, Seed } from "../../support/Random.ts"
import type { RunningEngine } from "../Harness.ts"
import * as Harness from "../Harness.ts"
import * as Toy from "../Toy.ts"

const COMMON = "till"
const OTHER = "mer_1:test"

/** Two engines, of which the first serves the replicated account. `reads` counts reads of versions from the log. */
const owned = Effect.fnUntraced(function* (options: { readonly notifies: boolean } = { notifies: false }) {
  yield* Harness.startClock
  yield* Harness.flowingTime
  const clock = yield* Clock.Clock
  const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const storage = yield* Harness.storageInMemory
  let reads = 0
  const journal = Harness.journalOf(storage)
  const versions: JournalShape["versions"] = (accounts) => Effect.suspend(() => (reads++, journal.versions(accounts)))
  const counted = Harness.withJournal(storage, { ...journal, versions })
  const start = (on: Harness.Storage) =>
    Harness.startEngine(on, { replicated: COMMON, placement: Placement.layerSharedBy(now) })
  const [owner, other] = [yield* start(storage), yield* start(counted)]
  for (const { placement } of [owner, other]) {
    placement.confirm(now())
    yield* Effect.forkScoped(
      Effect.forever(
        Effect.andThen(
          Effect.sleep(1000),
          Effect.sync(() => placement.confirm(now()))
        )
      )
    )
  }
  if (options.notifies) yield* owner.placement.listen({ onWritten: (account) => other.placement.noteChanged(account) })
  yield* owner.placement.acquire(partitionOf(COMMON))
  yield* other.placement.acquire(partitionOf(OTHER))
  return {
    owner,
    other,
    storage,
    counted: () => reads,
    stop: Effect.forEach([owner, other], (engine) => engine.stop)
  }
})

const countIn = (engine: RunningEngine, id: string) =>
  Effect.map(engine.accounts.read(COMMON, id), (entry) =>
    entry === undefined || entry.deleted ? undefined : (entry.value as Toy.Counter).count
  )

const increment = (slot: string) => Effect.flatMap(Toy.counterIn(slot), (counter) => Toy.add(counter!.value, 1))

describe("a replica", () => {
  it.effect("shows new documents at once, and changes within two seconds", () =>
    Effect.gen(function* () {
      const { other, owner, stop, storage } = yield* owned()
      const { id } = yield* owner.accounts.run(COMMON, Toy.create("a", "plain"))
      assert.strictEqual(yield* countIn(other, id), 0)
      for (const slot of ["b", "c", "d"]) {
        const made = yield* owner.accounts.run(COMMON, Toy.create(slot, "plain"))
        assert.strictEqual(yield* countIn(other, made.id), 0)
        const page = yield* other.accounts.list(COMMON, { kind: "counter", limit: 1 })
        assert.strictEqual(page.documents[0]?.id, made.id)
      }
      assert.strictEqual(other.accounts.peek(COMMON, id)?.id, id)
      yield* owner.accounts.run(COMMON, increment("a"))
      yield* Effect.sleep(2000)
      assert.strictEqual(yield* countIn(other, id), 1)
      yield* owner.accounts.run(
        COMMON,
        Effect.map(Transaction, (transaction) => transaction.wipe())
      )
      yield* Effect.sleep(2000)
      assert.strictEqual(yield* countIn(other, id), undefined)
      yield* stop
      yield* Harness.verified(storage)
    })
  )

  it.effect("is notified of changes, and keeps unchanged documents in memory", () =>
    Effect.gen(function* () {
      const { other, owner, stop } = yield* owned({ notifies: true })
      const { id } = yield* owner.accounts.run(COMMON, Toy.create("a", "plain"))
      const untouched = yield* owner.accounts.run(COMMON, Toy.create("b", "plain"))
      for (const each of [id, untouched.id]) yield* countIn(other, each)
      const before = other.accounts.peek(COMMON, untouched.id)
      assert.isDefined(before)
      yield* owner.accounts.run(COMMON, increment("a"))
      const changedAt = yield* Harness.now
      while ((yield* countIn(other, id)) !== 1) yield* Effect.sleep(5)
      assert.isBelow((yield* Harness.now) - changedAt, 500)
      assert.strictEqual(other.accounts.peek(COMMON, untouched.id), before)
      yield* stop
    })
  )

  it.effect("runs no command, fires no timer, and never answers from unconfirmed state", () =>
    Effect.gen(function* () {
      const { other, owner, stop, storage } = yield* owned()
      const { id } = yield* owner.accounts.run(
        COMMON,
        Effect.tap(Toy.create("a", "plain"), () => Toy.command({ op: "setTimer", slot: "a", delay: 3000 } as never))
      )
      assert.strictEqual(yield* countIn(other, id), 1)
      const refused = yield* Effect.flip(other.accounts.run(COMMON, increment("a")))
      assert.deepStrictEqual([refused._tag, refused.isElsewhere], ["Unavailable", true])
      const foreign = yield* Effect.flip(other.accounts.read("mer_2:test", id))
      assert.isTrue(foreign.isElsewhere)
      yield* owner.placement.release(partitionOf(COMMON))
      yield* Effect.sleep(10_000)
      assert.strictEqual(yield* countIn(other, id), 1)
      yield* owner.placement.acquire(partitionOf(COMMON))
      yield* Effect.sleep(5000)
      assert.strictEqual(yield* countIn(other, id), 1 + Toy.TIMER_INCREMENT)
      assert.lengthOf(yield* Harness.recordsOf(storage, COMMON), 2)
      yield* stop
    })
  )

  it.effect(
    "becomes the account itself where its partition is acquired, and a replica again where it is released",
    () =>
      Effect.gen(function* () {
        const { other, owner, stop, storage } = yield* owned()
        const { id } = yield* owner.accounts.run(COMMON, Toy.create("a", "plain"))
        const engines = [owner, other] as const
        for (let move = 1; move <= 6; move++) {
          const [from, to] = move % 2 === 1 ? engines : engines.toReversed()
          assert.strictEqual(yield* countIn(to!, id), move - 1)
          yield* from!.placement.release(partitionOf(COMMON))
          yield* to!.placement.acquire(partitionOf(COMMON))
          yield* to!.accounts.run(COMMON, increment("a"))
          assert.strictEqual(yield* countIn(to!, id), move)
          yield* Effect.sleep(2000)
          assert.strictEqual(yield* countIn(from!, id), move)
        }
        yield* stop
        yield* Harness.verified(storage)
      })
  )

  it.effect("reads the log some forty times a second for any number of reads of missing documents", () =>
    Effect.gen(function* () {
      const { counted, other, owner, stop } = yield* owned()
      const { id } = yield* owner.accounts.run(COMMON, Toy.create("a", "plain"))
      yield* countIn(other, id)
      const before = counted()
      const start = yield* Harness.now
      const flood = yield* Effect.forEach(Array.from({ length: 200 }), (_, i) =>
        Effect.forkChild(Effect.repeat(other.accounts.read(COMMON, `ctr_wrong_${i}`), { times: 9 }))
      )
      for (const fiber of flood) assert.isUndefined(yield* Fiber.join(fiber))
      const seconds = ((yield* Harness.now) - start) / 1000
      assert.isAtMost(counted() - before, 2 + seconds * 40)
      yield* stop
    })
  )

  it.effect.prop(
    "shows all earlier new documents, and no state older than two seconds",
    { seed: Seed },
    Effect.fnUntraced(function* ({ seed }) {
      const random = new Random(seed)
      const { other, owner, stop, storage } = yield* owned({ notifies: random.chance(0.5) })
      const { id } = yield* owner.accounts.run(COMMON, Toy.create("counter", "plain"))
      const acknowledged: Array<{ readonly at: number; readonly count: number }> = []
      for (let i = 0; i < 40; i++) {
        yield* random.jitter(random.pick([0, 50, 1500]))
        if (random.chance(0.4)) {
          const { count } = yield* owner.accounts.run(COMMON, increment("counter"))
          acknowledged.push({ at: yield* Harness.now, count })
        } else if (random.chance(0.3)) {
          const made = yield* owner.accounts.run(COMMON, Toy.create(`slot ${i}`, "plain"))
          assert.strictEqual(yield* countIn(other, made.id), 0)
        } else {
          const now = yield* Harness.now
          const least = acknowledged.findLast(({ at }) => at <= now - 2000)?.count ?? 0
          assert.isAtLeast((yield* countIn(other, id))!, least)
        }
      }
      yield* stop
      yield* Harness.verified(storage)
    }),
    { arbitrary: { runs: 15 } }
  )
})
