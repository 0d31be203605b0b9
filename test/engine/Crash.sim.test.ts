/**
 * Crashes and failures of the storage at any step. After a restart on what was left:
 * - every acknowledged response is still true, and a repeat of its request replays the same bytes;
 * - what was not acknowledged is there as a whole, or not at all, and its repeat takes effect exactly once;
 * - no read ever showed anything that the final journal does not hold.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Schema } from "effect"
import { Unavailable } from "../../src/engine/Accounts.ts"
import type { Reply, Response } from "../../src/engine/Accounts.ts"
import type { Faults } from "../../src/engine/Faults.ts"
import type { StorageFailure } from "../../src/engine/Journal.ts"
import type { RequestIdentity } from "../../src/engine/Record.ts"
import { Transaction } from "../../src/engine/Transaction.ts"
import type { RunningEngine, Storage } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import { Randomness, Seed } from "./Randomness.ts"
import * as Toy from "./Toy.ts"

const ACCOUNTS = ["mer_1:test", "mer_2:test", "mer_3:live"]
const SLOTS = ["a", "b", "c"] as const
const CLIENTS = 6

/** How often each kind of fault strikes, and after how many visits to the storage the process dies. */
const Plan = Schema.Struct({
  seed: Seed,
  failures: Schema.Literals([0, 0.05, 0.25]),
  hangs: Schema.Literals([0, 0.02]),
  crashAfter: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 120 }))
})
type Plan = typeof Plan.Type

/** What a client has asked for, and what it was told: nothing, as long as it was not. */
interface Asked {
  readonly account: string
  readonly request: RequestIdentity
  readonly operation: Toy.Operation
  answer: Reply | null
}

interface Seen {
  readonly account: string
  readonly id: string
  readonly version: number
  readonly json: string | null
}

/** Clients that go on asking, and remember what they saw. */
class Clients {
  readonly asked: Array<Asked> = []
  readonly seen: Array<Seen> = []
  readonly random: Randomness
  #key = 0

  constructor(random: Randomness) {
    this.random = random
  }

  operation(): Toy.Operation {
    const slot = this.random.pick(SLOTS)
    switch (this.random.below(6)) {
      case 0:
      case 1:
        return { op: "create", slot, name: "plain" }
      case 2:
        return { op: "rename", slot, name: this.random.pick(["", "ünï→😀"]) }
      case 3:
        return { op: this.random.pick(["delete", "keep", "drop"] as const), slot }
      default:
        return { op: "increment", slot, by: 1 + this.random.below(9) }
    }
  }

  /** A client repeats its request until it has an answer, as the contract of idempotency keys invites it to. */
  readonly client = (engine: RunningEngine, requests: number) =>
    Effect.gen({ self: this }, function* () {
      for (let n = 0; n < requests; n++) {
        const key = `key-${this.#key++}`
        const asked: Asked = {
          account: this.random.pick(ACCOUNTS),
          request: Toy.request(key),
          operation: this.operation(),
          answer: null
        }
        this.asked.push(asked)
        yield* this.random.jitter(3)
        yield* this.ask(engine, asked)
        if (this.random.chance(0.4)) yield* this.look(engine, asked.account)
      }
    })

  readonly ask = (engine: RunningEngine, asked: Asked) =>
    Effect.map(
      Effect.exit(engine.accounts.execute(asked.account, asked.request, withJitter(this.random, asked.operation))),
      (exit) => {
        if (Exit.isSuccess(exit)) asked.answer = exit.value
        // A process that ends interrupts what it was doing: no answer.
        else if (!Cause.hasInterrupts(exit.cause)) assert.instanceOf(failureOf(exit), Unavailable)
      }
    )

  /** Reads something, in one of the ways there are. */
  readonly look = (engine: RunningEngine, account: string) =>
    Effect.gen({ self: this }, function* () {
      if (this.random.chance(0.5)) {
        const page = yield* engine.accounts.list(account, { kind: Toy.COUNTER.name, limit: 10 })
        for (const { id, json, version } of page.documents) this.seen.push({ account, id, version, json })
        return
      }
      const id = `slot_${this.random.pick(SLOTS)}`
      const entry = yield* engine.accounts.read(account, id)
      if (entry === undefined) return
      this.seen.push({ account, id, version: entry.version, json: entry.deleted ? null : entry.json })
    }).pipe(
      Effect.catchTag("Unavailable", () => Effect.void),
      Effect.catchCause((cause) => (Cause.hasInterrupts(cause) ? Effect.void : Effect.failCause(cause)))
    )
}

const failureOf = <A, E>(exit: Exit.Exit<A, E>): unknown =>
  Exit.isFailure(exit) ? (exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error ?? exit.cause) : undefined

const withJitter = (random: Randomness, operation: Toy.Operation): Effect.Effect<Response, Response, Transaction> =>
  Effect.andThen(random.jitter(2), Toy.command(operation))

/** Faults at random; `onVisit` counts the visits to the storage. */
const faultsOf =
  (plan: Plan, random: Randomness, onVisit: () => Effect.Effect<void>): Faults =>
  (point) =>
    Effect.gen(function* (): Effect.fn.Return<void, StorageFailure> {
      yield* random.jitter(3)
      yield* onVisit()
      if (random.chance(plan.failures)) return yield* Harness.outage(`${point} failed`)
      // A hang: nothing comes back for a while.
      if (random.chance(plan.hangs)) yield* Effect.sleep(2000)
    })

/** Every answer that was given is what the journal says, and is given again, byte for byte. */
const answersHold = Effect.fnUntraced(function* (engine: RunningEngine, clients: Clients) {
  for (const { account, answer, operation, request } of clients.asked) {
    if (answer === null) continue
    const notAgain = Effect.andThen(Toy.command(operation), Effect.die(new Error("carried out again")))
    // What was not stored (a refusal before any effect) may be decided anew.
    if (answer.status === 404 || answer.status === 400) continue
    const reply = yield* engine.accounts.execute(account, { ...request, id: "req_repeat" }, notAgain)
    assert.deepStrictEqual(
      { status: reply.status, body: reply.body, apiVersion: reply.apiVersion },
      { status: answer.status, body: answer.body, apiVersion: answer.apiVersion }
    )
    assert.strictEqual(reply.replayOf, answer.replayOf ?? request.id)
  }
})

/** The journal holds each request once at most, as a whole, and answers as the plain model does. */
const journalHolds = Effect.fnUntraced(function* (storage: Storage, clients: Clients) {
  const models = new Map<string, Toy.Model>()
  for (const account of ACCOUNTS) {
    const model = new Toy.Model()
    const carriedOut = new Set<string>()
    const records = yield* Harness.recordsOf(storage, account)
    Harness.eventsMatchChanges(records)
    for (const { at, changes, request, response, version } of records) {
      const key = request!.idempotencyKey!
      assert.isFalse(carriedOut.has(key), `${key} was carried out twice`)
      carriedOut.add(key)
      const asked = clients.asked.find((candidate) => candidate.request.idempotencyKey === key)!
      const created = () => changes.find(({ kind }) => kind === Toy.COUNTER.name)!.id
      const expected = model.apply(asked.operation, at, created) as Response
      assert.deepStrictEqual(response, { status: expected.status, body: expected.body }, `record ${version}`)
      if (asked.answer !== null) assert.strictEqual(asked.answer.body, response!.body)
    }
    for (const { account: of, answer, request } of clients.asked) {
      if (of !== account || answer === null || answer.status === 404 || answer.status === 400) continue
      assert.isTrue(carriedOut.has(request.idempotencyKey!), `${request.idempotencyKey} was lost`)
    }
    models.set(account, model)
  }
  return models
})

/** Whatever a read has shown stands in the journal, at the version that it had. */
const readsHold = Effect.fnUntraced(function* (storage: Storage, clients: Clients) {
  const images = new Map<string, string | null>()
  for (const account of ACCOUNTS) {
    for (const { changes, version } of yield* Harness.recordsOf(storage, account)) {
      for (const { document, id } of changes) images.set(`${account} ${id} ${version}`, document)
    }
  }
  for (const { account, id, json, version } of clients.seen) {
    const place = `${account} ${id} ${version}`
    assert.isTrue(images.has(place), `a read showed ${place}, which is not in the journal`)
    assert.strictEqual(images.get(place), json)
  }
})

const everythingHolds = Effect.fnUntraced(function* (storage: Storage, clients: Clients) {
  const engine = yield* Harness.startEngine(storage)
  yield* answersHold(engine, clients)
  yield* journalHolds(storage, clients)
  // A client that was never answered asks again: the request takes effect once, whether or not it already had.
  for (const asked of clients.asked) if (asked.answer === null) yield* clients.ask(engine, asked)
  yield* answersHold(engine, clients)
  for (const [account, model] of yield* journalHolds(storage, clients)) {
    yield* Harness.agrees(engine, account, model, 3)
  }
  yield* readsHold(storage, clients)
  yield* engine.projector.drained
  yield* Harness.verified(storage)
  yield* engine.stop
})

describe("a crash", () => {
  it.effect.prop(
    "at any point, with a failing storage before it, costs nothing that was acknowledged",
    { first: Plan, second: Plan },
    Effect.fnUntraced(function* ({ first, second }) {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const storage = yield* Harness.storageInMemory
      const clients = new Clients(new Randomness(first.seed ^ second.seed))
      // Two lives, each ended in the middle of what it was doing; then one that checks.
      for (const plan of [first, second]) {
        let visits = 0
        let die: Effect.Effect<void> = Effect.void
        const visit = () => Effect.suspend(() => (++visits === plan.crashAfter ? die : Effect.void))
        const faults = faultsOf(plan, new Randomness(plan.seed), visit)
        const engine = yield* Harness.startEngine(storage, { faults, cacheCapacity: 10 })
        die = engine.kill
        const running: Array<Fiber.Fiber<void, unknown>> = []
        // Detached: whoever asked a process that died waits forever.
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
    "at each of the steps of a write leaves it whole or not there",
    {
      seed: Seed,
      point: Schema.Literals(["append.before", "append.after", "apply.before", "apply.after"]),
      visit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 }))
    },
    Effect.fnUntraced(function* ({ point, seed, visit }) {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const storage = yield* Harness.storageInMemory
      const clients = new Clients(new Randomness(seed))
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
    "fails its commands with Unavailable, and the account goes on from the log",
    {
      seed: Seed,
      written: Schema.Boolean,
      outage: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 }))
    },
    Effect.fnUntraced(function* ({ outage, seed, written }) {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const random = new Randomness(seed)
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
      // The storage is back: so is the account, without the help of a restart.
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

  it.effect("that may have left timers behind lets them fire, although nobody asks for the account again", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const storage = yield* Harness.storageInMemory
      let lost = false
      const faults: Faults = (point) =>
        Effect.suspend(() => (lost && point === "append.after" ? Effect.fail(Harness.outage("lost")) : Effect.void))
      const engine = yield* Harness.startEngine(storage, { faults })
      const [account] = ACCOUNTS as [string]
      const counter = yield* engine.accounts.run(account, Toy.create("a", "plain"))
      lost = true
      const command = Toy.command({ op: "setTimer", slot: "a", delay: 50 })
      const exit = yield* Effect.exit(engine.accounts.execute(account, Toy.request("lost"), command))
      assert.instanceOf(failureOf(exit), Unavailable)
      lost = false
      yield* Effect.sleep(31_000)
      const [row] = yield* Harness.viewsOf(storage).documents([{ account, id: counter.id }])
      assert.strictEqual((JSON.parse(row!.document!) as Toy.Counter).count, 1 + Toy.TIMER_INCREMENT)
      yield* engine.stop
    })
  )
})

/** Adds one to the counter in slot a, and answers with its count. */
const incrementSlot = Effect.gen(function* () {
  const counter = yield* Toy.counterIn("a")
  return (yield* Toy.add(counter!.value, 1)).count
})
