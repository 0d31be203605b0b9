/**
 * Deliveries against a plain model: any sequence of subscriptions, events, outcomes (also stale and doubled ones),
 * clock moves, wipes, crashes and rebuilds leaves lists, counts, leases and calls of listeners equal to the model's.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { AttemptOutcome, Committed, DeliveryRow } from "../../src/engine/Deliveries.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { DeliveryModel, standing } from "./DeliveryModel.ts"
import type { RunningEngine, Storage } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import { Random, Seed } from "../support/Random.ts"
import * as Toy from "./Toy.ts"

const ACCOUNTS = ["mer_1:test", "mer_2:test"]
const DESTINATIONS = ["we_1", "we_2", "we_3"]
const TYPES = ["*", "counter.created", "counter.incremented", "counter.deleted"]
const LEASE_MILLIS = 120_000

const STEPS = 60

/** Frequency of each step. */
const WEIGHTS = {
  happen: 12,
  report: 12,
  take: 8,
  pass: 5,
  advance: 3,
  resend: 3,
  hasten: 4,
  subscribe: 4,
  unsubscribe: 2,
  restart: 2,
  rebuild: 1,
  wipe: 0.5
}
type Step = keyof typeof WEIGHTS
const CHOICES = Object.entries(WEIGHTS).flatMap(([step, weight]) => Array<Step>(weight * 2).fill(step as Step))

/** An engine, the calls of its listener, and the model that follows it. */
class DeliveryRun {
  readonly models = new Map(ACCOUNTS.map((id) => [id, new DeliveryModel()] as const))
  readonly storage: Storage
  readonly random: Random
  /** With a listener, new deliveries are leased to it; without one, they may be taken at once. */
  readonly listens: boolean
  engine!: RunningEngine
  calls: Array<Committed> = []

  constructor(storage: Storage, random: Random) {
    this.storage = storage
    this.random = random
    this.listens = random.chance(0.5)
  }

  readonly start = Effect.fnUntraced({ self: this }, function* () {
    this.engine = yield* Harness.startEngine(this.storage)
    if (this.listens) yield* this.engine.deliveries.onCommitted((committed) => this.calls.push(committed))
  })

  transact<A>(id: string, command: (transaction: Transaction) => A) {
    this.calls = []
    return this.engine.accounts.run(id, Effect.map(Transaction, command))
  }

  /** Every row of one destination in a random direction and size of page, oldest first. */
  readonly rows = Effect.fnUntraced({ self: this }, function* (id: string, to: string) {
    const direction = this.random.pick(["older", "newer"] as const)
    const rows = yield* Harness.walk(direction, 1 + this.random.below(9), (page) =>
      Effect.map(this.engine.accounts.deliveries(id, { destination: to, ...page }), ({ deliveries, hasMore }) => ({
        rows: deliveries,
        hasMore
      }))
    )
    return rows.toReversed()
  })

  /** Deliveries of a command: exactly one per event and destination, in the order of the events. */
  readonly made = Effect.fnUntraced(
    { self: this },
    function* (
      id: string,
      expected: ReadonlyArray<{ readonly destination: string; readonly event: string }>,
      resent: boolean
    ) {
      const model = this.models.get(id)!
      const wallClock = yield* Harness.now
      const fresh: Array<DeliveryRow> = []
      for (const to of DESTINATIONS) {
        fresh.push(...(yield* this.rows(id, to)).filter((row) => !model.deliveries.has(row.id)))
      }
      fresh.sort((a, b) => (a.id < b.id ? -1 : 1))
      const names = fresh.map(({ destination: to, event }) => `${event} to ${to}`)
      assert.sameMembers(
        names,
        expected.map(({ destination: to, event }) => `${event} to ${to}`)
      )
      assert.deepStrictEqual(
        fresh.map(({ event }) => event),
        expected.map(({ event }) => event)
      )
      const leasedUntil = this.listens ? wallClock + LEASE_MILLIS : 0
      for (const row of fresh) model.made(row.id, row.destination, row.event, wallClock, leasedUntil)
      const leased = this.calls.flatMap(({ deliveries }) => deliveries)
      assert.deepStrictEqual(
        leased.map((one) => [one.account, one.id, one.attempt, one.content?.id ?? null]),
        this.listens ? fresh.map((row) => [id, row.id, 1, resent ? null : row.event]) : []
      )
    }
  )

  /** One command with up to three events, and its changes before them. */
  readonly happen = Effect.fnUntraced(
    { self: this },
    function* (id: string, before: (transaction: Transaction) => void = () => {}) {
      const model = this.models.get(id)!
      const known = new Set(model.events.keys())
      const times = 1 + this.random.below(3)
      const command = Effect.gen({ self: this }, function* () {
        before(yield* Transaction)
        const counter = yield* Toy.create(`slot ${this.random.below(1_000_000)}`, "plain")
        for (let time = 1; time < times; time++) yield* Toy.add({ ...counter, count: time }, 1)
      })
      this.calls = []
      yield* this.engine.accounts.run(id, command)
      yield* this.engine.projector.drained
      const events = (yield* Harness.allEvents(this.engine, id, "older", 50)).toReversed()
      const fresh = events.filter((event) => !known.has(event.id))
      assert.strictEqual(fresh.length, times)
      for (const event of fresh) {
        model.events.set(event.id, event.type)
        assert.strictEqual(event.deliveries, model.destinationsOf(event.type).length)
      }
      const expected = fresh.flatMap(({ id: event, type }) =>
        model.destinationsOf(type).map((to) => ({ destination: to, event }))
      )
      yield* this.made(id, expected, false)
    }
  )

  readonly resend = Effect.fnUntraced({ self: this }, function* (id: string, to: string) {
    const model = this.models.get(id)!
    if (model.events.size === 0) return
    const event = (yield* this.engine.accounts.event(id, this.random.pick([...model.events.keys()])))!
    yield* this.transact(id, (transaction) => transaction.deliver(event, to))
    yield* this.made(id, [{ destination: to, event: event.id }], true)
  })

  /** Hastens deliveries in any state with one command; some with an attempt that is over, or is not next. */
  readonly hasten = Effect.fnUntraced({ self: this }, function* (id: string) {
    const model = this.models.get(id)!
    const now = yield* Harness.now
    const meant = [...model.deliveries.values()]
      .filter(() => this.random.chance(0.3))
      .map(({ attempts, destination, id }) => {
        return { id, destination, attempt: Math.max(attempts.length + 1 + this.random.pick([0, 0, 0, -1, 1]), 1) }
      })
    yield* this.transact(id, (transaction) => {
      for (const delivery of meant) transaction.hasten(delivery)
    })
    for (const { attempt, id } of meant) model.hastened(id, attempt, now)
    assert.isEmpty(this.calls)
  })

  /** Outcomes of some deliveries in one report; some of them stale, doubled or ahead. */
  readonly report = Effect.fnUntraced({ self: this }, function* (id: string) {
    const model = this.models.get(id)!
    const startedAt = yield* Harness.now
    const outcomes: Array<AttemptOutcome> = []
    for (const delivery of model.deliveries.values()) {
      if (this.random.chance(0.5)) continue
      const skew = this.random.pick([0, 0, 0, -1, 1])
      outcomes.push({
        id: delivery.id,
        destination: delivery.destination,
        attempt: Math.max(delivery.attempts.length + 1 + skew, 1),
        startedAt,
        durationMillis: this.random.below(30_000),
        status: this.random.pick([null, 200, 500]),
        error: this.random.pick([null, "reset"]),
        ...(this.random.chance(0.3) && { body: this.random.pick(["Not now", 'é "\\\n日本 💳']) }),
        next: this.random.pick([
          "delivered",
          "exhausted",
          { retryAfterMillis: 0 },
          { retryAfterMillis: 300_000 }
        ] as const)
      })
    }
    yield* this.engine.deliveries.report(id, outcomes)
    if (this.random.chance(0.3)) yield* this.engine.deliveries.report(id, outcomes)
    for (const outcome of outcomes) model.attempted(outcome)
  })

  /** Takes exactly the due and free deliveries, longest due first; they are leased after that. */
  readonly take = Effect.fnUntraced({ self: this }, function* () {
    yield* this.engine.projector.drained
    const now = yield* Harness.now
    const busy = DESTINATIONS.filter(() => this.random.chance(0.2))
    const due = [...this.models].flatMap(([id, model]) =>
      model
        .due(now, busy)
        .map((delivery) => ({ ...delivery, account: id, dueAt: delivery.nextAttemptAt! - model.clockOffset }))
    )
    const limit = this.random.pick([1, 3, 1000])
    const taken = yield* this.engine.deliveries.take({ limit, busy })
    assert.strictEqual(taken.length, Math.min(limit, due.length))
    const freeSince = ({ dueAt, leasedUntil }: (typeof due)[number]) => Math.max(dueAt, leasedUntil)
    const left = due.filter((one) => !taken.some(({ account, id }) => one.account === account && one.id === id))
    let last = 0
    for (const carried of taken) {
      const { account: id, attempt, id: delivery } = carried
      const wanted = due.find((one) => one.account === id && one.id === delivery)!
      assert.isTrue(left.every((one) => freeSince(one) >= freeSince(wanted)))
      assert.strictEqual(attempt, wanted.attempts.length + 1)
      assert.isAtLeast(wanted.dueAt, last)
      last = wanted.dueAt
      const after = this.models.get(id)!.deliveries.get(delivery)!
      assert.deepStrictEqual((yield* this.engine.deliveries.content(carried)).id, carried.event)
      after.leasedUntil = now + LEASE_MILLIS
    }
  })

  readonly step = Effect.fnUntraced({ self: this }, function* (step: Step) {
    const id = this.random.pick(ACCOUNTS)
    const to = this.random.pick(DESTINATIONS)
    const model = this.models.get(id)!
    switch (step) {
      case "subscribe": {
        const types = TYPES.filter(() => this.random.chance(0.4))
        model.subscriptions.set(to, types)
        yield* this.happen(id, (transaction) => transaction.subscribe(to, types))
        return assert.isEmpty(this.calls.flatMap(({ canceled }) => canceled))
      }
      case "unsubscribe":
        yield* this.transact(id, (transaction) => transaction.unsubscribe(to))
        model.unsubscribed(to)
        assert.deepStrictEqual(
          this.calls.map(({ canceled }) => canceled),
          this.listens ? [[to]] : []
        )
        return
      case "resend":
        return yield* this.resend(id, to)
      case "hasten":
        return yield* this.hasten(id)
      case "happen":
        return yield* this.happen(id)
      case "report":
        return yield* this.report(id)
      case "take":
        return yield* this.take()
      case "advance": {
        const millis = 1 + this.random.below(400_000)
        const now = yield* this.transact(id, (transaction) => {
          transaction.advanceClock(millis)
          return transaction.now
        })
        model.clockOffset += millis
        assert.strictEqual(now, (yield* Harness.now) + model.clockOffset)
        return
      }
      case "pass":
        return yield* TestClock.adjust(this.random.pick([1, 1000, 130_000]))
      case "wipe":
        yield* this.transact(id, (transaction) => transaction.wipe())
        model.wiped()
        return assert.deepStrictEqual(
          this.calls.map(({ wiped }) => wiped),
          this.listens ? [true] : []
        )
      default: {
        yield* step === "restart" && this.random.chance(0.5) ? this.engine.kill : this.engine.stop
        if (step === "rebuild") {
          yield* Harness.rebuilt(this.storage)
          for (const { deliveries } of this.models.values()) {
            for (const delivery of deliveries.values()) delivery.leasedUntil = 0
          }
        }
        yield* this.start()
        // The views have all records after that.
        for (const account of ACCOUNTS) yield* this.engine.accounts.wake(account)
      }
    }
  })

  /** Checks lists, single reads and counts against the model. */
  readonly check = Effect.fnUntraced({ self: this }, function* () {
    for (const [id, model] of this.models) {
      for (const to of DESTINATIONS) {
        const rows = yield* this.rows(id, to)
        assert.deepStrictEqual(
          rows.map((row) => standing(row)),
          model.of(to)
        )
        for (const row of rows.slice(0, 1)) {
          assert.deepStrictEqual(yield* this.engine.accounts.delivery(id, to, row.id), row)
        }
      }
      const events = [...model.events.keys()]
      const counts = yield* this.engine.accounts.pendingDeliveries(id, events)
      for (const [i, event] of events.entries()) assert.strictEqual(counts[i], model.pendingOf(event), event)
    }
  })
}

describe("deliveries", () => {
  it.effect.prop(
    "match the model after any commands, crashes and rebuilds",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        yield* Harness.startClock
        const run = new DeliveryRun(yield* Harness.storageInMemory, new Random(seed))
        yield* run.start()
        for (let step = 0; step < STEPS; step++) {
          yield* run.step(step < 2 ? "subscribe" : run.random.pick(CHOICES))
          // Without waiting reads, the views get several records at a time.
          if (run.random.chance(0.5)) yield* run.check()
        }
        yield* run.check()
        yield* run.engine.stop
        yield* Harness.verified(run.storage)
      }),
    { arbitrary: { runs: 60 } }
  )

  it.effect("start a round when a delivery is due before the next one", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const engine = yield* Harness.startEngine(yield* Harness.storageInMemory)
      yield* Effect.addFinalizer(() => engine.kill)
      const [account, destination] = [ACCOUNTS[0]!, "we_1"]
      const command = (f: (transaction: Transaction) => void) =>
        engine.accounts.run(account, Effect.map(Transaction, f))
      yield* command((transaction) => transaction.subscribe(destination, ["*"]))
      let rounds = 0
      const round = Effect.sync(() => {
        rounds++
        return Harness.START + 20_000
      })
      yield* Effect.forkChild(engine.deliveries.run(round))
      const roundsOf = Effect.fnUntraced(function* <A, E>(effect: Effect.Effect<A, E>) {
        yield* Harness.settled
        const before = rounds
        yield* effect
        yield* Harness.settled
        return rounds - before
      })
      assert.strictEqual(yield* roundsOf(engine.accounts.run(account, Toy.create("a", "plain"))), 1)
      const { deliveries } = yield* engine.accounts.deliveries(account, { destination, limit: 1 })
      const report = (attempt: number, next: AttemptOutcome["next"]) =>
        engine.deliveries.report(account, [
          {
            id: deliveries[0]!.id,
            destination,
            attempt,
            startedAt: Harness.START,
            durationMillis: 0,
            status: 500,
            error: null,
            next
          }
        ])
      assert.strictEqual(yield* roundsOf(report(1, { retryAfterMillis: 20_000 })), 0)
      assert.strictEqual(yield* roundsOf(report(2, { retryAfterMillis: 19_999 })), 1)
      const hasten = command((transaction) => transaction.hasten({ id: deliveries[0]!.id, destination, attempt: 3 }))
      assert.strictEqual(yield* roundsOf(hasten), 1)
      assert.strictEqual(yield* roundsOf(command((transaction) => transaction.advanceClock(60_000))), 1)
      assert.strictEqual(yield* roundsOf(report(3, { retryAfterMillis: 19_999 })), 1)
      assert.strictEqual(yield* roundsOf(report(4, "exhausted")), 0)
    })
  )
})
