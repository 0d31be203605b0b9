/**
 * Several engines share accounts by partition, and partitions move at random while accounts are used: they are handed
 * over, or taken over while their owner is frozen. At every interleaving no acknowledged write is lost or doubled, no
 * read misses a write acknowledged before it, each timer takes effect once, and the views are the journal's fold.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { TestClock } from "effect/testing"
import { Clock, Effect, Fiber, Latch, Schedule, Schema } from "effect"
import type { Unavailable } from "../../src/engine/Accounts.ts"
import { CONFIRMED_MILLIS, type Partition, partitionOf, Placement } from "../../src/engine/process/Placement.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { Random, Seed } from "../support/Random.ts"
import type { RunningEngine } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import * as Toy from "./Toy.ts"

const ACCOUNTS = ["mer_1:test", "mer_2:test", "mer_3:test", "mer_4:live"]
const SLOT = "a"
/** Interval at which a runner confirms its ownership. */
const CONFIRM_MILLIS = 1000
const PATIENCE_MILLIS = 2000

interface Runner {
  readonly engine: RunningEngine
  /** Closed while the runner is frozen: no storage operation of it starts or returns. */
  readonly awake: Latch.Latch
  isConfirming: boolean
}

/** Runners on one storage, the owner of each partition, and the moves of partitions. */
class Fleet {
  readonly runners: ReadonlyArray<Runner>
  readonly random: Random
  readonly now: () => number
  readonly owners = new Map<Partition, Runner>()

  constructor(runners: ReadonlyArray<Runner>, random: Random, now: () => number) {
    this.runners = runners
    this.random = random
    this.now = now
  }

  get partitions(): ReadonlyArray<Partition> {
    return [...new Set(ACCOUNTS.map(partitionOf))]
  }

  readonly confirming = (runner: Runner) =>
    Effect.forever(
      Effect.andThen(
        Effect.sync(() => runner.isConfirming && runner.engine.placement.confirm(this.now())),
        Effect.sleep(CONFIRM_MILLIS)
      )
    )

  readonly give = (partition: Partition, runner: Runner) =>
    Effect.andThen(
      Effect.sync(() => this.owners.set(partition, runner)),
      runner.engine.placement.acquire(partition)
    )

  readonly #another = (than: Runner) => this.random.pick(this.runners.filter((runner) => runner !== than))

  readonly handOver = Effect.suspend(() => {
    const partition = this.random.pick(this.partitions)
    const from = this.owners.get(partition)!
    return Effect.andThen(from.engine.placement.release(partition), this.give(partition, this.#another(from)))
  })

  /** Freezes a runner for longer than its confirmation is valid. Others may take its partitions over, or not. */
  readonly freeze = Effect.gen({ self: this }, function* () {
    const from = this.random.pick(this.runners)
    from.isConfirming = false
    yield* from.awake.close
    // Counted from its last confirmation; the next owner waits for its end.
    yield* Effect.sleep(CONFIRMED_MILLIS)
    const lost = this.partitions.filter((partition) => this.owners.get(partition) === from && this.random.chance(0.8))
    for (const partition of lost) yield* this.give(partition, this.#another(from))
    yield* this.random.jitter(3000)
    // The next owner may end, so that the first owner gets the same lock again and never notices the gap.
    const back = lost.filter(() => this.random.chance(0.3))
    for (const partition of back) yield* this.owners.get(partition)!.engine.placement.release(partition)
    yield* from.awake.open
    yield* this.random.jitter(20)
    const gone = lost.filter((partition) => !back.includes(partition))
    yield* Effect.forEach(gone, (partition) => from.engine.placement.release(partition), { concurrency: "unbounded" })
    for (const partition of back) this.owners.set(partition, from)
    from.isConfirming = true
    from.engine.placement.confirm(this.now())
  })

  /** Chooses the runner of a request: mostly the owner. */
  readonly runnerFor = (account: string): Runner =>
    this.random.chance(0.8) ? this.owners.get(partitionOf(account))! : this.random.pick(this.runners)
}

const startFleet = Effect.fnUntraced(function* (storage: Harness.Storage, count: number, random: Random) {
  const clock = yield* Clock.Clock
  const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const runners = yield* Effect.forEach(
    Array.from({ length: count }),
    Effect.fnUntraced(function* () {
      const awake = Latch.makeUnsafe(true)
      const engine = yield* Harness.startEngine(storage, {
        faults: () => Effect.andThen(random.jitter(4), awake.await),
        placement: Placement.layerSharedBy(now)
      })
      return { engine, awake, isConfirming: true }
    })
  )
  const fleet = new Fleet(runners, random, now)
  for (const runner of runners) {
    runner.engine.placement.confirm(now())
    yield* Effect.forkScoped(fleet.confirming(runner))
  }
  for (const partition of fleet.partitions) yield* fleet.give(partition, random.pick(runners))
  return fleet
})

/** Bounds of an account's counter, which only grows. */
interface Known {
  id: string
  acknowledged: number
  /** Increments that may have happened or not. */
  open: number
  readonly returned: Set<number>
}

const increment = Effect.gen(function* () {
  const counter = yield* Toy.counterIn(SLOT)
  return (yield* Toy.add(counter!.value, 1)).count
})

/** Advances the test clock in larger steps than other tests. */
const time = Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(20), Effect.yieldNow)))

/** Tries one runner after the other until one serves the account. Clients do not wait long for a frozen one. */
const runWhereServed = <A>(
  fleet: Fleet,
  account: string,
  run: (engine: RunningEngine) => Effect.Effect<A, Unavailable>
): Effect.Effect<A | undefined> =>
  Effect.suspend(() => run(fleet.runnerFor(account).engine)).pipe(
    Effect.retry({ while: ({ isElsewhere }) => isElsewhere, schedule: Schedule.spaced(20) }),
    Effect.orElseSucceed(() => undefined),
    Effect.timeoutOrElse({ duration: PATIENCE_MILLIS, orElse: () => Effect.undefined })
  )

describe("engines that share accounts", () => {
  it.effect.prop(
    "lose and double no write, and show no old state, for any moves of partitions",
    {
      seed: Seed,
      runners: Schema.Literals([2, 3]),
      moves: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 }))
    },
    Effect.fnUntraced(function* ({ moves, runners, seed }) {
      yield* Harness.startClock
      yield* time
      const random = new Random(seed)
      const storage = yield* Harness.storageInMemory
      const fleet = yield* startFleet(storage, runners, random)
      const known = new Map<string, Known>()
      for (const account of ACCOUNTS) {
        const created = yield* runWhereServed(fleet, account, ({ accounts }) =>
          accounts.run(account, Toy.create(SLOT, "plain"))
        )
        known.set(account, { id: created!.id, acknowledged: 0, open: 0, returned: new Set() })
      }
      const timers = new Map<string, string>()
      let left = 0

      const write = Effect.fnUntraced(function* (account: string) {
        const of = known.get(account)!
        const count = yield* runWhereServed(fleet, account, ({ accounts }) => accounts.run(account, increment))
        if (count === undefined) return void of.open++
        assert.isFalse(of.returned.has(count), `two commands returned ${count}`)
        of.returned.add(count)
        of.acknowledged = Math.max(of.acknowledged, count)
      })
      const read = Effect.fnUntraced(function* (account: string) {
        const { acknowledged, id } = known.get(account)!
        const isList = random.chance(0.3)
        const entry = yield* runWhereServed(fleet, account, ({ accounts }) =>
          isList
            ? Effect.map(
                accounts.list(account, { kind: "counter", labels: { slot: SLOT }, limit: 1 }),
                (page) => page.documents[0]
              )
            : accounts.read(account, id)
        )
        if (entry === undefined) return
        const { count } = (entry as unknown as { readonly value: Toy.Counter }).value
        assert.isAtLeast(count, acknowledged, `a ${isList ? "list" : "read"} of ${account} is old`)
      })
      const setTimer = Effect.fnUntraced(function* (account: string) {
        const slot = `timer ${timers.size}`
        const delay = random.below(3000)
        const created = yield* runWhereServed(fleet, account, ({ accounts }) =>
          accounts.run(
            account,
            Effect.gen(function* () {
              const counter = yield* Toy.create(slot, "plain")
              const transaction = yield* Transaction
              transaction.setTimer({ id: `timer_${counter.id}`, name: "increment", dueAt: transaction.now + delay })
              return counter
            })
          )
        )
        if (created !== undefined) timers.set(created.id, account)
      })
      const client = Effect.gen(function* () {
        for (; left > 0; left--) {
          const account = random.pick(ACCOUNTS)
          yield* random.pick([write, write, read, read, read, setTimer])(account)
          yield* random.jitter(200)
        }
      })
      left = Infinity
      const clients = yield* Effect.forEach(Array.from({ length: 6 }), () => Effect.forkChild(client))
      for (let move = 0; move < moves; move++) {
        yield* random.jitter(500)
        yield* random.pick([fleet.handOver, fleet.freeze])
      }
      yield* random.jitter(500)
      left = 0
      for (const fiber of clients) yield* Fiber.join(fiber)
      yield* Effect.sleep(5000)

      for (const account of ACCOUNTS) {
        const { acknowledged, id, open, returned } = known.get(account)!
        const { engine } = fleet.owners.get(partitionOf(account))!
        const last = (yield* engine.accounts.read(account, id)) as unknown as { readonly value: Toy.Counter }
        assert.isAtLeast(last.value.count, acknowledged)
        assert.isAtLeast(last.value.count, returned.size)
        assert.isAtMost(last.value.count, returned.size + open)
        Harness.idsAscend(yield* Harness.recordsOf(storage, account))
      }
      for (const [id, account] of timers) {
        const { engine } = fleet.owners.get(partitionOf(account))!
        const counter = (yield* engine.accounts.read(account, id)) as unknown as { readonly value: Toy.Counter }
        assert.strictEqual(counter.value.count, Toy.TIMER_INCREMENT, `the timer of ${id}`)
      }
      for (const { engine } of fleet.runners) yield* engine.projector.drained
      yield* Harness.verified(storage)
      for (const { engine } of fleet.runners) yield* engine.stop
    }),
    { arbitrary: { runs: 5 } }
  )
})
