/**
 * Idempotency keys (semantics idempotency.*): a request is carried out at most once per key, however often, from
 * wherever and whenever it is repeated.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Fiber, Latch, References, Schema } from "effect"
import { TestClock } from "effect/testing"
import {
  IdempotencyKeyInUse,
  IdempotencyKeyReuse,
  type Replay,
  runOnce,
  Unavailable,
  whenClaimed
} from "../../../src/engine/Accounts.ts"
import { Journal } from "../../../src/engine/log/Journal.ts"
import { RELEASED, type StoredAnswer } from "../../../src/engine/log/Record.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import { Views } from "../../../src/engine/views/Views.ts"
import type { Faults } from "../storage/Faults.ts"
import type { EngineOptions, RunningEngine, Storage } from "../Harness.ts"
import { failureOf } from "../Clients.ts"
import * as Harness from "../Harness.ts"
import { Random, Seed } from "../../support/Random.ts"
import * as Toy from "../Toy.ts"

const ACCOUNT = "mer_1:test"
/** 24 hours (semantics idempotency.retention). */
const RETENTION_MILLIS = 86_400_000

/** A fresh engine whose account has a counter in slot a. */
const withCounter = Effect.fnUntraced(function* (options: EngineOptions = {}) {
  yield* Harness.startClock
  const storage = yield* Harness.storageInMemory
  const engine = yield* Harness.startEngine(storage, options)
  yield* engine.accounts.run(ACCOUNT, Toy.create("a", "plain"))
  yield* Effect.addFinalizer(() => engine.kill)
  return { engine, storage }
})

const increment = Toy.command({ op: "increment", slot: "a", by: 1 })
const dropped = Toy.command({ op: "drop", slot: "a" })

const ask = (
  { accounts }: RunningEngine,
  key: string,
  command: Effect.Effect<Toy.Answer, Toy.Answer, Transaction> = increment,
  account: string = ACCOUNT
) => runOnce(accounts, account, Toy.request(key), () => command)

const count = ({ accounts }: RunningEngine) =>
  Effect.map(accounts.run(ACCOUNT, Toy.counterIn("a")), (counter) => counter!.value.count)

const records = (storage: Storage) => Effect.map(Harness.recordsOf(storage, ACCOUNT), ({ length }) => length)

const withRestart = Effect.fnUntraced(function* (engine: RunningEngine, storage: Storage) {
  yield* engine.projector.drained
  yield* engine.kill
  const next = yield* Harness.startEngine(storage)
  yield* Effect.addFinalizer(() => next.kill)
  return next
})

const assertReplays = (reply: Toy.Answer | Replay, original: Toy.Answer | Replay) => {
  assert.isNotNull(reply.replayOf)
  const { body, status } = original
  assert.deepStrictEqual({ ...reply, replayOf: "" }, { status, body, apiVersion: Toy.API_VERSION, replayOf: "" })
}

describe("equal requests at once", () => {
  it.effect.prop(
    "have one effect, one original, and replays of the same bytes for all others",
    { seed: Seed, twins: Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: 100 })) },
    Effect.fnUntraced(function* ({ seed, twins }) {
      const random = new Random(seed)
      const { engine, storage } = yield* withCounter({ faults: () => random.jitter(4) })
      const replies = yield* Effect.forEach(
        Array.from({ length: twins }),
        () => Effect.andThen(random.jitter(30), ask(engine, "key", Effect.andThen(random.jitter(6), increment))),
        { concurrency: "unbounded" }
      )
      const originals = replies.filter(({ replayOf }) => replayOf === null)
      assert.strictEqual(originals.length, 1)
      for (const reply of replies) assert.strictEqual(reply.body, originals[0]!.body)
      const records = yield* Harness.recordsOf(storage, ACCOUNT)
      assert.strictEqual(records.length, 2)
      const replays = replies.filter(({ replayOf }) => replayOf !== null)
      for (const { replayOf } of replays) assert.strictEqual(replayOf, records[1]!.request!.id)
      assert.strictEqual(yield* count(engine), 1)
      yield* engine.projector.drained
      yield* Harness.verified(storage)
    }),
    { arbitrary: { runs: 40 } }
  )

  it.effect("one hundred of them", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      const replies = yield* Effect.forEach(Array.from({ length: 100 }), () => ask(engine, "key"), {
        concurrency: "unbounded"
      })
      assert.strictEqual(replies.filter(({ replayOf }) => replayOf === null).length, 1)
      assert.strictEqual(replies.filter(({ replayOf }) => replayOf !== null).length, 99)
      assert.strictEqual(new Set(replies.map(({ body }) => body)).size, 1)
      assert.strictEqual(yield* count(engine), 1)
    })
  )

  it.effect("without a key are each carried out", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      yield* Effect.forEach(
        Array.from({ length: 10 }),
        () => runOnce(engine.accounts, ACCOUNT, Toy.request(null), () => increment),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(yield* count(engine), 10)
    })
  )

  it.effect("on another account do not know of each other", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      yield* engine.accounts.run("mer_2:test", Toy.create("a", "plain"))
      const gate = yield* Deferred.make<void>()
      const one = yield* Effect.forkChild(ask(engine, "key", Effect.andThen(Deferred.await(gate), increment)))
      yield* Effect.yieldNow
      assert.isNull((yield* ask(engine, "key", increment, "mer_2:test")).replayOf)
      assert.isUndefined(one.pollUnsafe())
      yield* Deferred.succeed(gate, undefined)
      assert.isNull((yield* Fiber.join(one)).replayOf)
    })
  )
})

describe("a key", () => {
  it.effect("refuses another request, during the first and after it, and carries nothing out", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      const gate = yield* Deferred.make<void>()
      const first = yield* Effect.forkChild(ask(engine, "key", Effect.andThen(Deferred.await(gate), increment)))
      yield* Effect.yieldNow
      const other = Effect.flip(
        runOnce(engine.accounts, ACCOUNT, Toy.request("key", "another request"), () =>
          Effect.die(new Error("carried out"))
        )
      )
      const during = yield* Effect.forkChild(other)
      yield* Effect.yieldNow
      assert.isUndefined(during.pollUnsafe())
      yield* Deferred.succeed(gate, undefined)
      assert.instanceOf(yield* Fiber.join(during), IdempotencyKeyReuse)
      yield* Fiber.join(first)
      assert.instanceOf(yield* other, IdempotencyKeyReuse)
      assert.strictEqual(yield* records(storage), 2)
    })
  )

  it.effect("has a command made for what is carried out, and for nothing else", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      let made = 0
      const make = () => {
        made++
        return increment
      }
      const execute = (request: ReturnType<typeof Toy.request>) => runOnce(engine.accounts, ACCOUNT, request, make)
      yield* Effect.all([execute(Toy.request("key")), execute(Toy.request("key"))], { concurrency: "unbounded" })
      assert.instanceOf(yield* Effect.flip(execute(Toy.request("key", "another request"))), IdempotencyKeyReuse)
      assert.isNotNull((yield* execute(Toy.request("key"))).replayOf)
      assert.strictEqual(made, 1)
      yield* execute(Toy.request("other key"))
      assert.strictEqual(made, 2)
    })
  )

  it.effect("keeps nothing of what only the first answer shows", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      const kept = { status: 200, body: "{}" }
      const shown = { ...Toy.answer(200, '{"secret":"shown once"}'), kept }
      assert.strictEqual(yield* ask(engine, "key", Effect.succeed(shown)), shown)
      assertReplays(yield* ask(engine, "key"), { ...shown, ...kept })
      const records = JSON.stringify(yield* Harness.recordsOf(storage, ACCOUNT))
      assert.include(records, '"body":"{}"')
      assert.notInclude(records, "shown once")
    })
  )

  it.effect("is released by a refusal that is not stored, and the waiting twin executes", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      const gate = yield* Deferred.make<void>()
      const first = yield* Effect.forkChild(ask(engine, "key", Effect.andThen(Deferred.await(gate), dropped)))
      yield* Effect.yieldNow
      const twin = yield* Effect.forkChild(ask(engine, "key"))
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual((yield* Fiber.join(first)).status, 400)
      const reply = yield* Fiber.join(twin)
      assert.strictEqual(reply.status, 200)
      assert.isNull(reply.replayOf)
      assert.strictEqual(yield* count(engine), 1)
      // The refusal has left no record.
      assert.strictEqual(yield* records(storage), 2)
    })
  )

  it.effect("is released by a bug, and the account goes on", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      const exit = yield* Effect.exit(ask(engine, "key", Toy.command({ op: "die", slot: "a" })))
      assert.isTrue(Exit.isFailure(exit) && exit.cause.reasons.some((reason) => reason._tag === "Die"))
      assert.isNull((yield* ask(engine, "key")).replayOf)
      assert.strictEqual(yield* count(engine), 1)
    })
  )

  it.effect("replays a stored refusal, which leaves no change", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      const everything = Effect.map(Transaction, (transaction) => {
        transaction.subscribe("we_1", ["*"])
        transaction.deliver({ id: "evt_1", version: 1 }, "we_1")
        const outcome = { startedAt: 1, durationMillis: 1, status: 200, error: null, next: "delivered" } as const
        transaction.attempted({ id: "whd_1", destination: "we_1", attempt: 1, ...outcome })
        transaction.advanceClock(1000)
        transaction.wipe()
        transaction.advanceClock(1000)
      })
      const first = yield* ask(engine, "key", Effect.andThen(everything, Toy.command({ op: "keep", slot: "a" })))
      assert.strictEqual(first.status, 402)
      assert.isNull(first.replayOf)
      assertReplays(yield* ask(engine, "key"), first)
      assert.strictEqual(yield* count(engine), 0)
      const [, record] = yield* Harness.recordsOf(storage, ACCOUNT)
      const { advanced, attempts, changes, clock, deliveries, events, response, subscriptions, timers, wiped } = record!
      assert.strictEqual((response as StoredAnswer).status, 402)
      assert.deepStrictEqual({ clock, advanced, wiped }, { clock: 0, advanced: 0, wiped: false })
      assert.deepStrictEqual([changes, events, timers, subscriptions, deliveries, attempts].flat(), [])
    })
  )

  it.effect("starts anew 24 hours after its request was answered, and not a millisecond earlier", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      const first = yield* ask(engine, "key")
      yield* TestClock.setTime(Harness.START + RETENTION_MILLIS - 1)
      assertReplays(yield* ask(engine, "key"), first)
      yield* TestClock.setTime(Harness.START + RETENTION_MILLIS)
      const anew = yield* ask(engine, "key")
      assert.isNull(anew.replayOf)
      assert.strictEqual(yield* count(engine), 2)
      assertReplays(yield* ask(engine, "key"), anew)
      yield* engine.projector.drained
      yield* Harness.verified(storage)
    })
  )

  it.effect("is forgotten by the views some time after its retention, and they are still verified", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      yield* ask(engine, "key")
      yield* engine.projector.drained
      const keys = Harness.viewsOf(storage).keys([{ account: ACCOUNT, id: "key" }])
      yield* Harness.pass(RETENTION_MILLIS - 1)
      assert.isDefined((yield* keys)[0])
      yield* Harness.pass(3_600_001)
      assert.isUndefined((yield* keys)[0])
      yield* Harness.verified(storage)
    })
  )

  it.effect("makes a twin wait for 25 seconds at most", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      const gate = yield* Deferred.make<void>()
      const first = yield* Effect.forkChild(ask(engine, "key", Effect.andThen(Deferred.await(gate), increment)))
      yield* Harness.pass(1000)
      const twin = yield* Effect.forkChild(Effect.exit(ask(engine, "key")))
      yield* Harness.pass(24_999)
      assert.isUndefined(twin.pollUnsafe())
      yield* Harness.pass(1)
      const exit = yield* Fiber.join(twin)
      assert.isTrue(
        Exit.isFailure(exit) &&
          exit.cause.reasons.some((r) => r._tag === "Fail" && r.error instanceof IdempotencyKeyInUse)
      )
      // Its time is up, the first one's is not.
      yield* Deferred.succeed(gate, undefined)
      const original = yield* Fiber.join(first)
      assertReplays(yield* ask(engine, "key"), original)
      assert.strictEqual(yield* count(engine), 1)
    })
  )

  it.effect("makes a twin wait no longer if the account cannot be started", () =>
    Effect.gen(function* () {
      const { engine: before, storage } = yield* withCounter()
      yield* before.stop
      const gate = Latch.makeUnsafe(false)
      const engine = yield* Harness.startEngine(storage, {
        faults: (point) => (point === "read" ? gate.await : Effect.void)
      })
      yield* Effect.addFinalizer(() => engine.kill)
      const first = yield* Effect.forkChild(ask(engine, "key"))
      yield* Harness.pass(1000)
      const twin = yield* Effect.forkChild(Effect.flip(ask(engine, "key")))
      yield* Harness.pass(24_999)
      assert.isUndefined(twin.pollUnsafe())
      yield* Harness.pass(1)
      yield* Harness.settled
      assert.instanceOf(twin.pollUnsafe() && (yield* Fiber.join(twin)), IdempotencyKeyInUse)
      gate.openUnsafe()
      assertReplays(yield* ask(engine, "key"), yield* Fiber.join(first))
    })
  )

  it.effect("makes a twin wait no longer if yet another one comes before it", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      const gate = yield* Deferred.make<void>()
      const first = yield* Effect.forkChild(ask(engine, "key", Effect.andThen(Effect.sleep(20_000), dropped)))
      yield* Effect.yieldNow
      const second = yield* Effect.forkChild(ask(engine, "key", Effect.andThen(Deferred.await(gate), increment)))
      yield* Effect.yieldNow
      const third = yield* Effect.forkChild(Effect.flip(ask(engine, "key")))
      yield* Harness.pass(20_000)
      assert.strictEqual((yield* Fiber.join(first)).status, 400)
      yield* Harness.pass(4999)
      assert.isUndefined(third.pollUnsafe())
      yield* Harness.pass(1)
      yield* Deferred.succeed(gate, undefined)
      assert.isNull((yield* Fiber.join(second)).replayOf)
      assert.instanceOf(yield* Fiber.join(third), IdempotencyKeyInUse)
    })
  )

  it.effect("costs the storage nothing, neither when it is new nor when it is repeated at once", () =>
    Effect.gen(function* () {
      let reads = 0
      const { engine } = yield* withCounter({
        faults: (point) => Effect.sync(() => void (point === "read" && reads++))
      })
      yield* engine.projector.drained
      // The start's own reads are done.
      yield* Harness.settled
      reads = 0
      const first = yield* ask(engine, "key")
      assertReplays(yield* ask(engine, "key"), first)
      assert.strictEqual(reads, 0)
    })
  )

  it.effect("that is looked up while its account leaves memory is answered all the same", () =>
    Effect.gen(function* () {
      const { engine: first, storage } = yield* withCounter()
      const original = yield* ask(first, "key")
      yield* first.projector.drained
      yield* first.kill
      const gate = Latch.makeUnsafe(true)
      const faults: Faults = (point) => (point === "read" ? gate.await : Effect.void)
      const engine = yield* Harness.startEngine(storage, { faults, idleMillis: 1000 })
      yield* engine.accounts.wake(ACCOUNT)
      gate.closeUnsafe()
      const asking = yield* Effect.forEach(["key", "new"], (key) => Effect.forkChild(ask(engine, key)))
      yield* Harness.pass(5000, 500)
      gate.openUnsafe()
      yield* Harness.pass(5000, 500)
      for (const fiber of asking) assert.isDefined(fiber.pollUnsafe(), "it is never answered")
      const [repeated, other] = yield* Effect.forEach(asking, (fiber) => Fiber.join(fiber))
      assertReplays(repeated!, original)
      assert.isNull(other!.replayOf)
    })
  )

  it.effect(
    "costs a look-up after a start only until all that were used are known, even if the views fail now and then",
    () =>
      Effect.gen(function* () {
        const { engine: first, storage } = yield* withCounter()
        const used = Array.from({ length: 4500 }, (_, i) => `key ${i}`)
        const originals = yield* Effect.forEach(used, (key) => ask(first, key), { concurrency: 100 })
        yield* first.projector.drained
        yield* first.kill
        const views = Harness.viewsOf(storage)
        let pages = 0
        let looks = 0
        const watched = Context.add(storage, Views, {
          ...views,
          scan: (...query) =>
            Effect.suspend(() => (++pages % 2 === 0 ? Effect.fail(Harness.outage("no answer")) : views.scan(...query))),
          keys: (addresses) => {
            looks += addresses.length
            return views.keys(addresses)
          }
        })
        const engine = yield* Harness.startEngine(watched)
        assert.isNull((yield* ask(engine, "new")).replayOf)
        assert.strictEqual(looks, 1)
        yield* Harness.pass(10_000, 500)
        assert.isAtLeast(pages, 5)
        looks = 0
        yield* Effect.forEach(Array.from({ length: 100 }), (_, i) => ask(engine, `other ${i}`))
        assert.isBelow(looks, 10)
        for (const i of [0, 2000, 4000, 4499]) assertReplays(yield* ask(engine, used[i]!), originals[i]!)
      })
  )

  it.effect("whose response the journal has lost is not carried out again", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      yield* ask(engine, "key")
      yield* engine.projector.drained
      yield* engine.kill
      const journal = Harness.journalOf(storage)
      const [withoutResponse] = yield* journal.at([{ account: ACCOUNT, version: 1 }])
      for (const [row, problem] of [
        [undefined, "is missing, but the views have it"],
        [withoutResponse, "does not hold the answer to a key, but the views point there"]
      ] as const) {
        const damaged = Context.add(storage, Journal, { ...journal, at: () => Effect.succeed([row]) })
        const exit = yield* Effect.exit(ask(yield* Harness.startEngine(damaged), "key"))
        assert.include(
          Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "",
          `Record 2 of account ${ACCOUNT} ${problem}`
        )
        assert.strictEqual(yield* records(storage), 2)
      }
    })
  )

  it.effect("is answered from the journal, byte for byte, after passivation and after a restart", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter({ idleMillis: 1000, cacheBytes: 500 })
      yield* ask(engine, "rename", Toy.command({ op: "rename", slot: "a", name: "\u0000\ud800" }))
      const originals = [yield* ask(engine, "one"), yield* ask(engine, "two", Toy.command({ op: "keep", slot: "a" }))]
      const ids = (yield* Harness.recordsOf(storage, ACCOUNT)).slice(2).map(({ request }) => request!.id)
      yield* engine.accounts.run(ACCOUNT, Toy.command({ op: "delete", slot: "a" }))
      const assertAllReplay = Effect.fnUntraced(function* (engine: RunningEngine) {
        for (const [i, key] of ["one", "two"].entries()) {
          const reply = yield* ask(engine, key)
          assertReplays(reply, originals[i]!)
          assert.strictEqual(reply.replayOf, ids[i])
        }
      })
      yield* engine.projector.drained
      yield* Harness.pass(5000)
      yield* assertAllReplay(engine)
      yield* engine.kill
      yield* assertAllReplay(yield* Harness.startEngine(storage))
      yield* Harness.rebuilt(storage)
      yield* assertAllReplay(yield* Harness.startEngine(storage))
    })
  )
})

describe("a key that awaits an operation", () => {
  /** The operation's outcome comes after so many milliseconds, and is an increment by 2; 0 releases the key. */
  const begin = (delay: number, by: 0 | 2 = 2) => Toy.command({ op: "begin", slot: "a", by, delay })

  /** Sends a request as its client would: waits for the outcome. */
  const send = Effect.fnUntraced(function* (
    engine: RunningEngine,
    id: string,
    command: Effect.Effect<Toy.Answer, Toy.Answer, Transaction>,
    fingerprint?: string
  ) {
    const request = { ...Toy.request("key", fingerprint), id }
    const reply = yield* runOnce(engine.accounts, ACCOUNT, request, () => command)
    return reply.replayOf === null && reply.status === 202 ? yield* engine.accounts.awaited(ACCOUNT, request) : reply
  })
  const sending = (...parameters: Parameters<typeof send>) =>
    Effect.tap(Effect.forkChild(Effect.exit(send(...parameters))), Harness.settled)
  const ended = <A, E>(fiber: Fiber.Fiber<Exit.Exit<A, E>>) => Effect.flatten(Fiber.join(fiber))
  const original = { status: 200, apiVersion: Toy.API_VERSION, replayOf: "req_first" }
  const outcome = (body: string) => ({ ...original, body })

  it.effect("gives the first request and all repetitions the operation's answer, once it is durable", () =>
    Effect.gen(function* () {
      const gate = Latch.makeUnsafe(true)
      const faults: Faults = (point) => (point === "append.before" ? gate.await : Effect.void)
      const { engine, storage } = yield* withCounter({ faults })
      const requests = [yield* sending(engine, "req_first", begin(1000))]
      for (let i = 0; i < 20; i++) requests.push(yield* sending(engine, `req_${i}`, Effect.die("again")))
      yield* Harness.pass(900)
      for (const request of requests) assert.isUndefined(request.pollUnsafe())
      gate.closeUnsafe()
      yield* Harness.pass(200)
      requests.push(yield* sending(engine, "req_late", Effect.die("again")))
      for (const request of requests) assert.isUndefined(request.pollUnsafe(), "the answer is not durable")
      gate.openUnsafe()
      const answers = yield* Effect.forEach(requests, ended)
      const { body } = answers[0]!
      assert.strictEqual((JSON.parse(body) as Toy.Counter).count, 2)
      for (const answer of answers) assert.deepStrictEqual({ ...answer }, outcome(body))
      const [, begun, concluded] = yield* Harness.recordsOf(storage, ACCOUNT)
      assert.deepStrictEqual(concluded!.request, begun!.request)
      yield* engine.projector.drained
      yield* Harness.verified(storage)
    })
  )

  it.effect("refuses another request at once", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      yield* sending(engine, "req_first", begin(1000))
      const other = yield* Effect.exit(send(engine, "req_other", increment, "another request"))
      assert.isTrue(Exit.isFailure(other) && failureOf(other) instanceof IdempotencyKeyReuse)
    })
  )

  it.effect("that is released has no answer for the first request, and is new for one of the others", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      const first = yield* sending(engine, "req_first", begin(1000, 0))
      const others = yield* Effect.forEach(["one", "two", "three"], (id) => sending(engine, id, increment))
      yield* Harness.pass(1000)
      assert.isUndefined(yield* ended(first))
      const replies = yield* Effect.forEach(others, ended)
      assert.strictEqual(replies.filter((reply) => reply!.replayOf === null).length, 1)
      assert.strictEqual(yield* count(engine), 1)
      const responses = (yield* Harness.recordsOf(storage, ACCOUNT)).map(({ response }) => response)
      assert.deepStrictEqual(responses[2], RELEASED)
      const again = yield* withRestart(engine, storage)
      assertReplays((yield* send(again, "req_again", Effect.die("again")))!, replies[0]!)
    })
  )

  it.effect("that was released is free for another request, also after a restart", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      const first = yield* sending(engine, "req_first", begin(1000, 0))
      yield* Harness.pass(1000)
      assert.isUndefined(yield* ended(first))
      const again = yield* withRestart(engine, storage)
      assert.isNull((yield* send(again, "req_other", increment, "another request"))!.replayOf)
    })
  )

  it.effect("is answered after a restart, and after its account has moved", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      yield* sending(engine, "req_first", begin(5000))
      const again = yield* withRestart(engine, storage)
      const repeated = yield* sending(again, "req_repeated", Effect.die("again"))
      // Another process takes the account: the actor that the request waits in ends.
      const other = yield* Harness.startEngine(storage)
      yield* Effect.addFinalizer(() => other.kill)
      yield* other.accounts.run(ACCOUNT, Toy.create("b", "plain"))
      yield* Harness.pass(40_000, 1000)
      const { body } = (yield* ended(repeated))!
      assert.deepStrictEqual({ ...(yield* send(other, "req_late", Effect.die("again")))! }, outcome(body))
      assert.strictEqual(yield* count(other), 2)
    })
  )

  it.effect("is given up after 25 seconds", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      const first = yield* sending(engine, "req_first", begin(30_000))
      const repeated = yield* sending(engine, "req_repeated", Effect.die("again"))
      yield* Harness.pass(24_999, 1000)
      for (const request of [first, repeated]) assert.isUndefined(request.pollUnsafe())
      yield* Harness.pass(1)
      for (const request of [first, repeated]) {
        const exit = yield* Fiber.join(request)
        assert.isTrue(Exit.isFailure(exit) && failureOf(exit) instanceof IdempotencyKeyInUse)
      }
      yield* Harness.pass(10_000, 1000)
      assert.strictEqual((yield* send(engine, "req_repeated", Effect.die("again")))!.replayOf, "req_first")
    })
  )

  it.effect(
    "takes neither places of commands nor of reads; of more than 4096 waiting requests, the others are refused",
    () =>
      Effect.gen(function* () {
        const { engine } = yield* withCounter({ mailboxCapacity: 4 })
        const first = yield* sending(engine, "req_first", begin(1000))
        const waiting = yield* Effect.forEach(Array.from({ length: 4095 }), (_, i) =>
          Effect.forkChild(Effect.exit(send(engine, `req_${i}`, Effect.die("again"))))
        )
        yield* Harness.settled
        assert.isDefined(yield* engine.accounts.run(ACCOUNT, Toy.create("b", "plain")))
        assert.isDefined(yield* engine.accounts.list(ACCOUNT, { kind: Toy.COUNTER.name, limit: 1 }))
        const refused = yield* Effect.exit(send(engine, "req_refused", Effect.die("again")))
        assert.isTrue(Exit.isFailure(refused) && failureOf(refused) instanceof Unavailable)
        // A client that goes away makes room.
        yield* Fiber.interrupt(waiting.pop()!)
        waiting.push(yield* Effect.forkChild(Effect.exit(send(engine, "req_last", Effect.die("again")))))
        yield* Harness.pass(1000)
        for (const request of [first, ...waiting]) assert.strictEqual((yield* ended(request))!.replayOf, "req_first")
      })
  )

  it.effect("ends with the data of its account", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      const first = yield* sending(engine, "req_first", begin(1000))
      yield* engine.accounts.run(
        ACCOUNT,
        Effect.map(Transaction, (transaction) => transaction.wipe())
      )
      // The key is looked up again, which waits for the projection of the wipe.
      yield* Harness.pass(1000)
      assert.isUndefined(yield* ended(first))
    })
  )

  it.effect("cannot be answered by a command with a key of its own", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      const answering = Effect.map(Transaction, (transaction) => {
        transaction.answer(Toy.request("other"), { status: 200, body: "{}" })
        return Toy.answer(200, "{}")
      })
      assert.isTrue(Exit.isFailure(yield* Effect.exit(ask(engine, "key", answering))))
    })
  )
})

describe("many keys", () => {
  it.effect("are all known after a restart, from the moment of it", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      // One more than is read at a time.
      const keys = Array.from({ length: 1001 }, (_, i) => `key ${i}`)
      const originals = yield* Effect.forEach(keys, (key) => ask(engine, key), { concurrency: "unbounded" })
      yield* engine.projector.drained
      yield* engine.kill
      const next = yield* Harness.startEngine(storage)
      yield* Effect.addFinalizer(() => next.kill)
      assertReplays(yield* ask(next, keys[0]!), originals[0]!)
      yield* Harness.settled
      const again = yield* Effect.forEach(keys, (key) => ask(next, key), { concurrency: "unbounded" })
      for (const [i, reply] of again.entries()) assertReplays(reply, originals[i]!)
      assert.strictEqual(yield* count(next), keys.length)
    })
  )
})

describe("a claim", () => {
  const claim = ({ accounts }: RunningEngine) => accounts.claim(ACCOUNT, Toy.request("key"))

  it.effect("gets the answer that another process has given since, and runs nothing", () =>
    Effect.gen(function* () {
      const { engine, storage } = yield* withCounter()
      const other = yield* Harness.startEngine(storage)
      yield* Effect.addFinalizer(() => other.kill)
      let original: Toy.Answer | Replay | undefined
      const outcome = yield* whenClaimed(claim(engine), (claimed) =>
        Effect.gen(function* () {
          original = yield* ask(other, "key")
          return yield* engine.accounts.carryOut(claimed, increment)
        })
      )
      assertReplays(outcome, original!)
      assert.strictEqual(yield* count(engine), 1)
    })
  )

  it.effect.each([
    ["fails", () => Effect.fail("refused")],
    ["dies", () => Effect.die("a bug")],
    [
      "throws",
      () => {
        throw new Error("a bug")
      }
    ]
  ] as ReadonlyArray<[string, () => Effect.Effect<never, string>]>)("whose work %s gives the key back", ([, work]) =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      assert.isTrue(Exit.isFailure(yield* Effect.exit(whenClaimed(claim(engine), work))))
      const next = yield* Effect.forkChild(ask(engine, "key"))
      yield* Harness.settled
      assert.isNull((yield* Fiber.join(next)).replayOf)
      assert.strictEqual(yield* count(engine), 1)
    })
  )
})

describe("a caller that goes away", () => {
  it.effect("does not abort its command", () =>
    Effect.gen(function* () {
      const { engine } = yield* withCounter()
      const gate = yield* Deferred.make<void>()
      const caller = yield* Effect.forkChild(ask(engine, "key", Effect.andThen(Deferred.await(gate), increment)))
      yield* Effect.yieldNow
      const interrupted = yield* Effect.forkChild(Fiber.interrupt(caller))
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(interrupted)
      assert.isNotNull((yield* ask(engine, "key")).replayOf)
      assert.strictEqual(yield* count(engine), 1)
    })
  )

  it.effect("is followed by a repetition that waits until the command is durable", () =>
    Effect.gen(function* () {
      const gate = Latch.makeUnsafe(true)
      const faults: Faults = (point) => (point === "append.before" ? gate.await : Effect.void)
      const { engine } = yield* withCounter({ faults })
      gate.closeUnsafe()
      const caller = yield* Effect.forkChild(ask(engine, "key"))
      yield* Harness.settled
      yield* Effect.forkChild(Fiber.interrupt(caller))
      yield* Harness.settled
      const repetition = yield* Effect.forkChild(ask(engine, "key"))
      yield* Harness.settled
      assert.isUndefined(repetition.pollUnsafe())
      gate.openUnsafe()
      assert.isNotNull((yield* Fiber.join(repetition)).replayOf)
      assert.strictEqual(yield* count(engine), 1)
    })
  )

  it.effect.prop(
    "at any moment leaves its key neither taken nor lost",
    {
      seed: Seed,
      steps: Schema.Literals([2, 3, 4, 5]),
      moment: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 200 }))
    },
    Effect.fnUntraced(function* ({ moment, seed, steps }) {
      const random = new Random(seed)
      const { engine } = yield* withCounter({ faults: () => random.jitter(3) })
      // The caller gives way after every few steps, so that each of them may be the moment to go away.
      const slowly = Effect.provideService(ask(engine, "key"), References.MaxOpsBeforeYield, steps)
      const caller = yield* Effect.forkChild(slowly)
      for (let i = 0; i < moment; i++) yield* Effect.yieldNow
      yield* Fiber.interrupt(caller)
      const reply = yield* Effect.forkChild(ask(engine, "key"))
      for (let i = 0; i < 500; i++) yield* Effect.yieldNow
      const exit = reply.pollUnsafe()
      assert.isTrue(exit !== undefined && Exit.isSuccess(exit), "the key is still held by a caller that has gone")
      assert.strictEqual(yield* count(engine), 1)
    }),
    { arbitrary: { runs: 300 } }
  )
})
