/**
 * Clients of the toy accounts that repeat their requests through all failures, and record all answers and reads; with
 * the check that these are still true on the storage after a crash.
 */
import { assert } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { type Replay, runOnce, Unavailable } from "../../src/engine/Accounts.ts"
import { isAnswer, isAwaiting, RELEASED, type RequestIdentity } from "../../src/engine/log/Record.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import type { RunningEngine, Storage } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import type { Random } from "../support/Random.ts"
import * as Toy from "./Toy.ts"

export const ACCOUNTS = ["mer_1:test", "mer_2:test", "mer_3:live"]
const SLOTS = ["a", "b", "c"] as const

/** A client's request and its answer; undefined before the answer. */
interface Sent {
  readonly account: string
  readonly request: RequestIdentity
  readonly operation: Toy.Operation
  answer: Toy.Answer | Replay | null
  /** Whether an operation's outcome has released the key, so that a repetition ran anew or will. */
  released: boolean
}

interface Seen {
  readonly account: string
  readonly id: string
  readonly version: number
  readonly json: string | null
}

/** Clients that repeat their requests, and record all answers and reads. */
export class Clients {
  readonly sent: Array<Sent> = []
  readonly seen: Array<Seen> = []
  readonly random: Random
  #key = 0

  constructor(random: Random) {
    this.random = random
  }

  operation(): Toy.Operation {
    const slot = this.random.pick(SLOTS)
    switch (this.random.below(7)) {
      case 0:
      case 1:
        return { op: "create", slot, name: "plain" }
      case 2:
        return { op: "rename", slot, name: this.random.pick(["", "ünï→😀"]) }
      case 3:
        return { op: this.random.pick(["delete", "keep", "drop"] as const), slot }
      case 4:
        return { op: "begin", slot, by: this.random.pick([0, 1, 2] as const), delay: this.random.below(50) }
      default:
        return { op: "increment", slot, by: 1 + this.random.below(9) }
    }
  }

  /** Repeats a request until it is answered, as idempotency keys allow. */
  readonly client = (engine: RunningEngine, requests: number) =>
    Effect.gen({ self: this }, function* () {
      for (let n = 0; n < requests; n++) {
        const key = `key-${this.#key++}`
        const sent: Sent = {
          account: this.random.pick(ACCOUNTS),
          request: Toy.request(key),
          operation: this.operation(),
          answer: null,
          released: false
        }
        this.sent.push(sent)
        yield* this.random.jitter(3)
        yield* this.send(engine, sent)
        if (this.random.chance(0.4)) yield* this.read(engine, sent.account)
      }
    })

  readonly send = (engine: RunningEngine, sent: Sent) =>
    Effect.map(
      Effect.exit(
        Effect.flatMap(
          runOnce(engine.accounts, sent.account, sent.request, () => withJitter(this.random, sent.operation)),
          (reply) =>
            reply.replayOf === null && reply.kept !== null && isAwaiting(reply.kept)
              ? engine.accounts.awaited(sent.account, sent.request)
              : Effect.succeed(reply)
        )
      ),
      (exit) => {
        if (Exit.isSuccess(exit)) {
          sent.answer = exit.value ?? null
          if (exit.value === undefined) sent.released = true
        }
        // A process that ends interrupts its commands, without an answer.
        else if (!Cause.hasInterrupts(exit.cause)) assert.instanceOf(failureOf(exit), Unavailable)
      }
    )

  /** Reads in one of the possible ways. */
  readonly read = (engine: RunningEngine, account: string) =>
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

export const failureOf = <A, E>(exit: Exit.Exit<A, E>): unknown =>
  Exit.isFailure(exit) ? (exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error ?? exit.cause) : undefined

const withJitter = (random: Random, operation: Toy.Operation): Effect.Effect<Toy.Answer, Toy.Answer, Transaction> =>
  Effect.andThen(random.jitter(2), Toy.command(operation))

/** Checks that each answer matches the journal, and is replayed byte for byte. */
const answersHold = Effect.fnUntraced(function* (engine: RunningEngine, clients: Clients) {
  for (const { account, answer, operation, request } of clients.sent) {
    if (answer === null) continue
    const notAgain = Effect.andThen(Toy.command(operation), Effect.die(new Error("carried out again")))
    // An answer that was not stored (a refusal before any effect) may differ.
    if (answer.status === 404 || answer.status === 400) continue
    const reply = yield* runOnce(engine.accounts, account, { ...request, id: "req_repeat" }, () => notAgain)
    assert.deepStrictEqual(
      { ...reply },
      {
        status: answer.status,
        body: answer.body,
        apiVersion: request.apiVersion,
        replayOf: answer.replayOf ?? request.id
      }
    )
  }
})

/** Checks that the journal holds each request as a whole, at most once, and with the plain model's answer. */
const journalHolds = Effect.fnUntraced(function* (storage: Storage, clients: Clients) {
  const models = new Map<string, Toy.Model>()
  for (const account of ACCOUNTS) {
    const model = new Toy.Model()
    const carriedOut = new Set<string>()
    const awaiting = new Map<string, string>()
    const records = yield* Harness.recordsOf(storage, account)
    Harness.eventsMatchChanges(records)
    for (const { at, changes, request, response, version } of records) {
      const key = request!.idempotencyKey!
      assert.isFalse(carriedOut.has(key), `${key} was carried out twice`)
      const sent = clients.sent.find((candidate) => candidate.request.idempotencyKey === key)!
      const begun = awaiting.get(key)
      if (begun !== undefined) {
        awaiting.delete(key)
        model.fire(`timer_${begun}`)
        const outcome = model.outcomes.get(begun)!
        if (outcome === null) {
          assert.deepStrictEqual(response, RELEASED, `record ${version}`)
          continue
        }
        assert.deepStrictEqual(response, { status: outcome.status, body: outcome.body }, `record ${version}`)
      } else {
        const created = () => changes.find(({ kind }) => kind === Toy.COUNTER.name || kind === Toy.OPEN.name)!.id
        const expected = model.apply(sent.operation, at, created) as Toy.Answer
        assert.deepStrictEqual(response, expected.kept, `record ${version}`)
        if (isAwaiting(response!)) {
          awaiting.set(key, response.awaits)
          continue
        }
      }
      carriedOut.add(key)
      if (sent.answer !== null) assert.strictEqual(sent.answer.body, isAnswer(response!) ? response.body : undefined)
    }
    for (const { account: of, answer, request } of clients.sent) {
      if (of !== account || answer === null || answer.status === 404 || answer.status === 400) continue
      assert.isTrue(carriedOut.has(request.idempotencyKey!), `${request.idempotencyKey} was lost`)
    }
    models.set(account, model)
  }
  return models
})

/** Checks that all results of reads are in the journal, with the version that they had. */
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

/** Checks everything on the storage that is left, also after repeating the requests without an answer. */
export const everythingHolds = Effect.fnUntraced(function* (storage: Storage, clients: Clients) {
  const engine = yield* Harness.startEngine(storage)
  yield* answersHold(engine, clients)
  yield* journalHolds(storage, clients)
  // A client without an answer repeats its request, which takes effect once, whether or not it already had.
  for (const sent of clients.sent) if (sent.answer === null && !sent.released) yield* clients.send(engine, sent)
  yield* answersHold(engine, clients)
  for (const [account, model] of yield* journalHolds(storage, clients)) {
    yield* Harness.agrees(engine, account, model, 3)
    yield* Harness.historyAgrees(engine, storage, account, 3)
  }
  yield* readsHold(storage, clients)
  yield* engine.projector.drained
  yield* Harness.verified(storage)
  yield* engine.stop
})
