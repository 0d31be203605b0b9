/**
 * Clients of the toy accounts that go on asking whatever happens, and remember what they were told and shown; with the
 * check that all of it holds in what a crash has left.
 */
import { assert } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import type { Outcome, Rendered } from "../../src/engine/Accounts.ts"
import { Unavailable, runOnce } from "../../src/engine/Accounts.ts"
import type { RequestIdentity } from "../../src/engine/log/Record.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import type { RunningEngine, Storage } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import type { Random } from "../support/Random.ts"
import * as Toy from "./Toy.ts"

export const ACCOUNTS = ["mer_1:test", "mer_2:test", "mer_3:live"]
const SLOTS = ["a", "b", "c"] as const

/** What a client has asked for, and what it was told: nothing, as long as it was not. */
interface Asked {
  readonly account: string
  readonly request: RequestIdentity
  readonly operation: Toy.Operation
  answer: Outcome | null
}

interface Seen {
  readonly account: string
  readonly id: string
  readonly version: number
  readonly json: string | null
}

/** Clients that go on asking, and remember what they saw. */
export class Clients {
  readonly asked: Array<Asked> = []
  readonly seen: Array<Seen> = []
  readonly random: Random
  #key = 0

  constructor(random: Random) {
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
      Effect.exit(
        runOnce(engine.accounts, asked.account, asked.request, () => withJitter(this.random, asked.operation))
      ),
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

export const failureOf = <A, E>(exit: Exit.Exit<A, E>): unknown =>
  Exit.isFailure(exit) ? (exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error ?? exit.cause) : undefined

const withJitter = (random: Random, operation: Toy.Operation): Effect.Effect<Rendered, Rendered, Transaction> =>
  Effect.andThen(random.jitter(2), Toy.command(operation))

/** Every answer that was given is what the journal says, and is given again, byte for byte. */
const answersHold = Effect.fnUntraced(function* (engine: RunningEngine, clients: Clients) {
  for (const { account, answer, operation, request } of clients.asked) {
    if (answer === null) continue
    const notAgain = Effect.andThen(Toy.command(operation), Effect.die(new Error("carried out again")))
    // What was not stored (a refusal before any effect) may be decided anew.
    if (answer.status === 404 || answer.status === 400) continue
    const reply = yield* runOnce(engine.accounts, account, { ...request, id: "req_repeat" }, () => notAgain)
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
      const expected = model.apply(asked.operation, at, created) as Rendered
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

/** All of it holds on what is left, also after those who were not answered have asked again. */
export const everythingHolds = Effect.fnUntraced(function* (storage: Storage, clients: Clients) {
  const engine = yield* Harness.startEngine(storage)
  yield* answersHold(engine, clients)
  yield* journalHolds(storage, clients)
  // A client that was never answered asks again: the request takes effect once, whether or not it already had.
  for (const asked of clients.asked) if (asked.answer === null) yield* clients.ask(engine, asked)
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
