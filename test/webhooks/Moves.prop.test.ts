/**
 * Dispatchers of several processes on one storage, by the test clock: partitions move between them in order, and after
 * crashes. Every event reaches every endpoint; without a crash no delivery is attempted twice (semantics
 * webhooks.handover).
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import type { DeliveryRow } from "../../src/engine/Deliveries.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { CONFIRMED_MILLIS, type Partition, partitionOf, Placement } from "../../src/engine/process/Placement.ts"
import * as Harness from "../engine/Harness.ts"
import * as Toy from "../engine/Toy.ts"
import { Random, Seed } from "../support/Random.ts"
import { ACCOUNT, answers, type Attempted, DispatcherHarness, type Receiver } from "./DispatcherHarness.ts"

const ACCOUNTS = ["mer_1:test", "mer_1:live", "mer_2:test", "mer_3:test"]
const PROCESSES = 3
const DESTINATIONS = ["we_1", "we_2"]
const STEPS = 30
/** Duration of attempts that is longer than a dispatcher waits before their partition leaves, so they are given up. */
const ANSWER_MILLIS_MAX = 1500
const EVENTS = 200
/** A partition may move some times before a delivery's turn; a lease is two minutes. */
const WAIT_MILLIS_MAX = 60_000

/** Processes, and the owner of each partition. */
class Cluster {
  readonly processes: ReadonlyArray<DispatcherHarness>
  readonly owners = new Map<Partition, DispatcherHarness>()
  readonly events = new Map<string, number>(ACCOUNTS.map((account) => [account, 0]))
  readonly random: Random

  constructor(storage: Harness.Storage, receiver: Receiver, random: Random) {
    this.random = random
    this.processes = Array.from(
      { length: PROCESSES },
      () => new DispatcherHarness(storage, receiver, Placement.layerShared)
    )
  }

  readonly start = Effect.fnUntraced({ self: this }, function* () {
    for (const process of this.processes) yield* this.#start(process)
    for (const account of ACCOUNTS) yield* this.#gain(partitionOf(account), this.random.pick(this.processes))
    const subscribed = Effect.map(Transaction, (transaction) => {
      for (const destination of DESTINATIONS) transaction.subscribe(destination, ["*"])
    })
    for (const account of ACCOUNTS) yield* this.run(account, subscribed)
  })

  readonly #start = Effect.fnUntraced({ self: this }, function* (process: DispatcherHarness) {
    yield* process.start()
    process.engine.placement.confirm(Infinity)
  })

  readonly #gain = Effect.fnUntraced({ self: this }, function* (partition: Partition, process: DispatcherHarness) {
    yield* process.engine.placement.acquire(partition)
    this.owners.set(partition, process)
  })

  /** Runs a command in the process that serves its account, after waiting for one that does. */
  run<A>(account: string, command: Effect.Effect<A, never, Transaction>): Effect.Effect<A> {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        const owner = this.processes.find(({ engine }) => engine.placement.isHere(account))
        const exit = owner && (yield* Effect.exit(owner.engine.accounts.run(account, command)))
        if (exit !== undefined && Exit.isSuccess(exit)) return exit.value
        yield* Effect.sleep(10)
      }
    })
  }

  readonly happen = Effect.fnUntraced({ self: this }, function* (account: string) {
    // Sometimes so many events that most deliveries wait.
    for (let left = this.random.pick([1, 1, 60]); left > 0; left--) {
      const count = this.events.get(account)!
      this.events.set(account, count + 1)
      yield* this.run(account, Toy.create(`slot ${count}`, "plain"))
    }
  })

  /** Moves an account's partition in order: its owner releases it, and another process acquires it. */
  readonly move = Effect.fnUntraced({ self: this }, function* (account: string) {
    const partition = partitionOf(account)
    const owner = this.owners.get(partition)
    if (owner === undefined) return
    this.owners.delete(partition)
    yield* owner.engine.placement.release(partition)
    yield* this.#gain(partition, this.random.pick(this.processes.filter((process) => process !== owner)))
  })

  /** Kills a process; others take over its partitions, and it starts again. */
  readonly die = Effect.fnUntraced({ self: this }, function* (process: DispatcherHarness) {
    const lost = [...this.owners].filter(([, owner]) => owner === process).map(([partition]) => partition)
    yield* process.kill
    for (const partition of lost) this.owners.delete(partition)
    yield* this.#start(process)
    for (const partition of lost) yield* this.#gain(partition, this.random.pick(this.processes))
  })

  readonly stop = Effect.gen({ self: this }, function* () {
    for (const [partition, process] of this.owners) yield* process.engine.placement.release(partition)
    for (const process of this.processes) yield* process.stop
  })

  readonly rows = Effect.fnUntraced({ self: this }, function* () {
    const rows: Array<DeliveryRow> = []
    for (const account of ACCOUNTS) {
      const owner = this.owners.get(partitionOf(account))!
      for (const destination of DESTINATIONS) {
        const page = yield* Effect.orDie(owner.engine.accounts.deliveries(account, { destination, limit: 1000 }))
        assert.strictEqual(page.deliveries.length, this.events.get(account))
        rows.push(...page.deliveries)
      }
    }
    return rows
  })

  /** Lets time pass until all deliveries have succeeded, also those whose attempts fail for some minutes. */
  readonly untilOver = Effect.fnUntraced({ self: this }, function* () {
    for (let turn = 0; turn < 20; turn++) {
      yield* Harness.pass(60_000, 5000)
      const rows = yield* this.rows()
      if (rows.every(({ state }) => state !== "pending")) return rows
    }
    return assert.fail("some deliveries never end")
  })

  /** All attempts of a delivery, in the order of their beginnings. */
  attemptsOf({ destination, event }: DeliveryRow): ReadonlyArray<Attempted> {
    return this.processes
      .flatMap(({ attempts }) => attempts)
      .filter((one) => one.destination === destination && one.event === event)
      .toSorted((a, b) => a.startedAt - b.startedAt)
  }
}

/** Lets time pass until all effects have ended. */
const ended = Effect.fnUntraced(function* (fibers: ReadonlyArray<Fiber.Fiber<void>>) {
  for (let turn = 0; fibers.some((fiber) => fiber.pollUnsafe() === undefined); turn++) {
    assert.isBelow(turn, 1000, "an effect never ends")
    yield* Harness.pass(50, 50)
  }
  for (const fiber of fibers) yield* Fiber.join(fiber)
})

const inTime = (effect: Effect.Effect<void>) => Effect.flatMap(Effect.forkChild(effect), (fiber) => ended([fiber]))

describe("dispatchers of several processes", () => {
  it.effect("attempt no delivery twice that another process has projected without a lease", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const storage = yield* Harness.storageInMemory
      const one = new DispatcherHarness(storage, () => answers(200, 100))
      yield* one.start()
      yield* one.subscribe(["we"])
      yield* Harness.pass(1000, 50)
      const other = yield* Harness.startEngine(storage, { schedulers: 0 })
      // The projection is late; the table is read after it, when the outcome is durable but not yet in the table.
      one.faults = (point) => (point === "apply.before" ? Effect.sleep(150) : Effect.void)
      yield* one.happen("slot")
      one.engine.deliveries.wake()
      yield* Effect.orDie(other.projector.catchUp(ACCOUNT))
      yield* Harness.pass(1000, 10)
      yield* Harness.pass(180_000, 5000)
      assert.strictEqual(one.attempts.length, 1)
      const [delivery] = yield* one.deliveries("we")
      assert.strictEqual(delivery!.state, "delivered")
      yield* other.stop
      yield* inTime(one.stop)
      yield* Harness.verified(storage)
    })
  )

  it.effect.prop(
    "attempt every delivery, and none twice without a crash, for any moves of partitions",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        yield* Harness.startClock
        const random = new Random(seed)
        const dies = random.chance(0.3)
        // A delivery fails twice at most, so its last attempt is after six minutes.
        const receiver: Receiver = ({ attempt }) =>
          answers(attempt < 3 && random.chance(0.2) ? 500 : 200, random.below(ANSWER_MILLIS_MAX))
        const storage = yield* Harness.storageInMemory
        const cluster = new Cluster(storage, receiver, random)
        yield* inTime(cluster.start())
        const underWay: Array<Fiber.Fiber<void>> = []
        for (let step = 0; step < STEPS; step++) {
          const account = random.pick(ACCOUNTS)
          if (random.chance(0.7)) underWay.push(yield* Effect.forkChild(cluster.happen(account)))
          else if (!dies || random.chance(0.7)) underWay.push(yield* Effect.forkChild(cluster.move(account)))
          else {
            // Work of a process that dies never ends.
            yield* ended(underWay)
            yield* inTime(cluster.die(random.pick(cluster.processes)))
          }
          yield* Harness.pass(random.pick([0, 1, 20, 300, 2000]), 20)
        }
        yield* ended(underWay)
        for (const row of yield* cluster.untilOver()) {
          assert.strictEqual(row.state, "delivered")
          const attempts = cluster.attemptsOf(row)
          const made = attempts.map(({ attempt }) => attempt)
          const kept = row.attempts.map(({ attempt }) => attempt)
          assert.isBelow(
            attempts[0]!.startedAt - row.at,
            WAIT_MILLIS_MAX,
            "the delivery has waited for the end of a lease"
          )
          assert.deepStrictEqual(dies ? [...new Set(made)] : made, kept, `${row.event} to ${row.destination}`)
        }
        yield* inTime(cluster.stop)
        yield* Harness.verified(storage)
      }),
    { arbitrary: { runs: 4, maxShrinks: 0 } }
  )

  it.effect(
    "begin nothing while ownership is in doubt, and the rest once it is confirmed or the partition acquired",
    () =>
      Effect.gen(function* () {
        yield* Harness.startClock
        const [account] = ACCOUNTS as [string]
        const partition = partitionOf(account)
        let now = 0
        const storage = yield* Harness.storageInMemory
        const receiver: Receiver = () => answers(200, 500)
        const [one, other] = [0, 1].map(
          () =>
            new DispatcherHarness(
              storage,
              receiver,
              Placement.layerSharedBy(() => now)
            )
        )
        for (const process of [one!, other!]) {
          yield* process.start()
          process.engine.placement.confirm(now)
        }
        const { placement } = one!.engine
        yield* placement.acquire(partition)
        yield* one!.subscribe(["we"])
        for (let i = 0; i < EVENTS; i++) yield* one!.happen(`slot ${i}`)
        yield* Harness.settled
        // An endpoint without an answer so far gets no more attempts at a time.
        const begun = one!.attempts.length
        assert.isBelow(begun, EVENTS / 2)

        now += CONFIRMED_MILLIS
        yield* Harness.pass(10_000, 100)
        assert.strictEqual(one!.attempts.length, begun)
        placement.confirm(now)
        yield* Harness.pass(1200, 50)
        const before = one!.attempts.length
        assert.isAbove(before, begun)
        assert.isBelow(before, EVENTS)

        now += CONFIRMED_MILLIS
        yield* Harness.pass(10_000, 100)
        assert.strictEqual(one!.attempts.length, before)
        yield* inTime(placement.release(partition))
        other!.engine.placement.confirm(now)
        yield* inTime(other!.engine.placement.acquire(partition))
        placement.confirm(now)
        yield* Harness.pass(10_000, 50)
        assert.strictEqual(one!.attempts.length, before)
        const again = other!.attempts.map(({ event }) => event)
        assert.strictEqual(new Set(again).size, again.length)
        assert.strictEqual(new Set([...one!.attempts, ...other!.attempts].map(({ event }) => event)).size, EVENTS)
        yield* inTime(other!.engine.placement.release(partition))
        for (const process of [one!, other!]) yield* inTime(process.stop)
        yield* Harness.verified(storage)
      })
  )
})
