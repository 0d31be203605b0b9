/**
 * The toy objects of the engine's tests: counters that are found by a slot, a keyed entry of the account. Each command
 * has a plain model of its effects beside it.
 */
import { Effect, Schema } from "effect"
import type { CommandResult } from "../../src/engine/Accounts.ts"
import { encode, type Kind } from "../../src/engine/log/Document.ts"
import { RELEASED, type RequestIdentity, type StoredAnswer } from "../../src/engine/log/Record.ts"
import type { DueTimer } from "../../src/engine/actor/Timers.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"

export interface Counter {
  readonly id: string
  readonly object: "counter"
  readonly slot: string
  readonly name: string
  readonly count: number
}

export interface Slot {
  readonly id: string
  readonly counter: string
}

export const COUNTER: Kind<Counter, { readonly secret: string }> = {
  name: "counter",
  labels: ({ name, slot }) => ({ name: name.toWellFormed().replaceAll("\0", ""), slot }),
  search: ({ count, name, slot }) => ({ terms: [`slot=${slot}`, `name=${name}`], measure: count }),
  // All counters, and each in an hour that depends on its count.
  tallies: ({ count, slot }) => [
    { at: 0, key: "counters", count: 1, amount: count },
    { at: 3600 * (count % 3), key: `slot ${slot}`, count: 1, amount: 0 }
  ]
}
export const SLOT: Kind<Slot> = { name: "slot" }

/** An operation on a slot that a command has begun and whose outcome its timer brings. */
export interface Open {
  readonly id: string
  readonly slot: string
  readonly by: number
  readonly request: RequestIdentity
}
export const OPEN: Kind<Open> = { name: "open" }

const slot = Schema.Literals(["a", "b", "c", "d"])
const name = Schema.Literals(["", "plain", "ünï→😀", "\u0000\ud800", '"__proto__"'])
const by = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 }))

/**
 * Operation of a command. `keep` and `drop` change many documents and then fail, with and without a stored answer. The
 * outcome of `begin` is an increment; 0 releases its key.
 */
export const Operation = Schema.Union([
  Schema.Struct({ op: Schema.Literal("create"), slot, name }),
  Schema.Struct({ op: Schema.Literal("increment"), slot, by }),
  Schema.Struct({ op: Schema.Literal("rename"), slot, name }),
  Schema.Struct({ op: Schema.Literal("delete"), slot }),
  Schema.Struct({ op: Schema.Literals(["look", "keep", "drop", "die"]), slot }),
  Schema.Struct({
    op: Schema.Literal("setTimer"),
    slot,
    delay: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 90 }))
  }),
  Schema.Struct({ op: Schema.Literal("clearTimer"), slot }),
  Schema.Struct({
    op: Schema.Literal("begin"),
    slot,
    by: Schema.Literals([0, 1, 2, 3]),
    delay: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 90 }))
  })
])
export type Operation = typeof Operation.Type

/** Added to a counter whose timer fires. */
export const TIMER_INCREMENT = 1000

const slotId = (slot: string) => `slot_${slot}`
const timerId = (counter: string) => `timer_${counter}`

/** An answer as commands give it. */
export interface Answer extends StoredAnswer, CommandResult {}

/** Makes a command's answer, which its record keeps unless stated otherwise. */
export const answer = (status: number, body: string, isKept: boolean = true): Answer => ({
  status,
  body,
  kept: isKept ? { status, body } : null,
  replayOf: null
})

/** The answer to a command that has begun an operation. */
const begun = (id: string): Answer => ({ status: 202, body: "", kept: { awaits: id }, replayOf: null })

const refusal = (status: number, code: string, isKept: boolean): Answer =>
  answer(status, JSON.stringify({ error: { code } }), isKept)
const success = (counter: Counter): Answer => answer(200, encode(counter))

const missing = refusal(404, "missing", false)
const taken = refusal(409, "taken", true)
const kept = refusal(402, "kept", true)
const dropped = refusal(400, "dropped", false)

/** Thrown by the command `die`. */
export class Bug extends Error {}

/** Finds the counter in a slot. */
export const counterIn = Effect.fnUntraced(function* (slot: string) {
  const transaction = yield* Transaction
  const entry = yield* transaction.get(SLOT, slotId(slot))
  return entry === undefined ? undefined : yield* transaction.get(COUNTER, entry.value.counter)
})

const put = (transaction: Transaction, counter: Counter) =>
  transaction.put(COUNTER, counter, { secret: `secret of ${counter.slot}` })

/** Creates a counter in a free slot. */
export const create = Effect.fnUntraced(function* (slot: string, name: string, count: number = 0) {
  const transaction = yield* Transaction
  const counter: Counter = { id: transaction.newId("ctr"), object: "counter", slot, name, count }
  put(transaction, counter)
  transaction.put(SLOT, { id: slotId(slot), counter: counter.id })
  transaction.emit("counter.created", counter.id)
  return counter
})

/** Adds to a counter, with its event. */
export const add = Effect.fnUntraced(function* (counter: Counter, by: number, type: string = "counter.incremented") {
  const transaction = yield* Transaction
  const changed = { ...counter, count: counter.count + by }
  put(transaction, changed)
  transaction.emit(type, changed.id, { count: counter.count })
  return changed
})

const remove = (transaction: Transaction, counter: Counter) => {
  transaction.emit("counter.deleted", counter.id)
  transaction.clearTimer(timerId(counter.id))
  transaction.delete(COUNTER, counter.id)
  transaction.delete(SLOT, slotId(counter.slot))
}

/** Makes the command of an operation. */
export const command = Effect.fnUntraced(function* (
  operation: Operation
): Effect.fn.Return<Answer, Answer, Transaction> {
  const transaction = yield* Transaction
  const found = yield* counterIn(operation.slot)
  if (operation.op === "create") {
    return found === undefined ? success(yield* create(operation.slot, operation.name)) : yield* Effect.fail(taken)
  }
  if (found === undefined) return yield* Effect.fail(missing)
  const counter = found.value
  switch (operation.op) {
    case "increment":
      return success(yield* add(counter, operation.by))
    case "rename": {
      const renamed = { ...counter, name: operation.name }
      put(transaction, renamed)
      transaction.emit("counter.renamed", counter.id, { name: counter.name })
      return success(renamed)
    }
    case "delete":
      remove(transaction, counter)
      return success(counter)
    case "look":
      return success(counter)
    case "setTimer":
      yield* add(counter, 1)
      transaction.setTimer({ id: timerId(counter.id), name: "increment", dueAt: transaction.now + operation.delay })
      return success({ ...counter, count: counter.count + 1 })
    case "clearTimer":
      transaction.clearTimer(timerId(counter.id))
      return success(counter)
    case "begin": {
      const { request } = transaction
      // Without a key there is no repetition that could wait.
      if (request === null || request.idempotencyKey === null) return success(yield* add(counter, 1))
      const id = transaction.newId("opn")
      transaction.put(OPEN, { id, slot: operation.slot, by: operation.by, request })
      transaction.setTimer({ id: timerId(id), name: CONCLUDE, dueAt: transaction.now + operation.delay })
      return begun(id)
    }
    default:
      yield* add(counter, 999)
      transaction.setTimer({ id: timerId(counter.id), name: "increment", dueAt: transaction.now })
      transaction.delete(SLOT, slotId(counter.slot))
      if (operation.op === "die") throw new Bug("a bug in a command")
      return yield* Effect.fail(operation.op === "keep" ? kept : dropped)
  }
})

const CONCLUDE = "conclude"

/** Concludes an operation: answers its request, or releases the request's key. */
const conclude = Effect.fnUntraced(function* (id: string) {
  const transaction = yield* Transaction
  const open = yield* transaction.get(OPEN, id)
  if (open === undefined) return
  const { by, request, slot } = open.value
  transaction.delete(OPEN, id)
  const counter = yield* counterIn(slot)
  if (by === 0 || counter === undefined) return transaction.answer(request, RELEASED)
  const { body, status } = success(yield* add(counter.value, by, "counter.concluded"))
  transaction.answer(request, { status, body })
})

/** Runs the command of a due timer. */
export const handleTimer = Effect.fnUntraced(function* (timer: DueTimer) {
  if (timer.name === CONCLUDE) return yield* conclude(timer.id.slice("timer_".length))
  const transaction = yield* Transaction
  const counter = yield* transaction.get(COUNTER, timer.id.slice("timer_".length))
  if (counter !== undefined) yield* add(counter.value, TIMER_INCREMENT, "counter.timed")
})

/** API version of every request. */
export const API_VERSION = "2026-03-09"

/** The request behind the n-th command of a test; a repetition of it has the same key and fingerprint. */
export const request = (key: string | null, fingerprint: string = `fingerprint of ${key}`): RequestIdentity => ({
  id: `req_${key}_${nextRequest++}`,
  idempotencyKey: key,
  fingerprint: key === null ? null : fingerprint,
  apiVersion: API_VERSION
})
let nextRequest = 0

export interface ModelEvent {
  readonly type: string
  readonly object: Counter
  readonly previous: Readonly<Record<string, unknown>> | null
}

/** The expected contents of an account: a map of its counters and a list of events. */
export class Model {
  readonly counters = new Map<string, Counter>()
  readonly deleted = new Set<string>()
  readonly events: Array<ModelEvent> = []
  readonly timers = new Map<string, number>()
  /** Operations without an outcome, by id. */
  readonly open = new Map<string, { readonly slot: string; readonly by: number }>()
  /** The outcomes of operations; null where the key was released. */
  readonly outcomes = new Map<string, Answer | null>()

  inSlot(slot: string): Counter | undefined {
    return [...this.counters.values()].find((counter) => counter.slot === slot)
  }

  /** Runs an operation; `id` is the id of a created counter, or of a begun operation. */
  apply(operation: Operation, now: number, id: () => string): Answer | "bug" {
    const counter = this.inSlot(operation.slot)
    if (operation.op === "create") {
      if (counter !== undefined) return taken
      const { name, slot } = operation
      return this.#put("counter.created", { id: id(), object: "counter", slot, name, count: 0 }, null)
    }
    if (counter === undefined) return missing
    switch (operation.op) {
      case "increment":
        return this.#count(counter, operation.by, "counter.incremented")
      case "rename":
        return this.#put("counter.renamed", { ...counter, name: operation.name }, { name: counter.name })
      case "delete":
        this.events.push({ type: "counter.deleted", object: counter, previous: null })
        this.counters.delete(counter.id)
        this.deleted.add(counter.id)
        this.timers.delete(timerId(counter.id))
        return success(counter)
      case "setTimer":
        this.timers.set(timerId(counter.id), now + operation.delay)
        return this.#count(counter, 1, "counter.incremented")
      case "clearTimer":
        this.timers.delete(timerId(counter.id))
        return success(counter)
      case "begin": {
        const begunId = id()
        this.timers.set(timerId(begunId), now + operation.delay)
        this.open.set(begunId, operation)
        return begun(begunId)
      }
      case "look":
        return success(counter)
      case "keep":
        return kept
      case "drop":
        return dropped
      case "die":
        return "bug"
    }
  }

  /** Lets the timer of a counter or of an operation fire. */
  fire(timer: string): void {
    this.timers.delete(timer)
    const subject = timer.slice("timer_".length)
    if (this.open.has(subject)) return this.conclude(subject)
    const counter = this.counters.get(subject)
    if (counter !== undefined) this.#count(counter, TIMER_INCREMENT, "counter.timed")
  }

  /** Brings the outcome of an operation. */
  conclude(id: string): void {
    const { by, slot } = this.open.get(id)!
    this.open.delete(id)
    const counter = this.inSlot(slot)
    const isReleased = by === 0 || counter === undefined
    this.outcomes.set(id, isReleased ? null : this.#count(counter, by, "counter.concluded"))
  }

  #count(counter: Counter, by: number, type: string): Answer {
    return this.#put(type, { ...counter, count: counter.count + by }, { count: counter.count })
  }

  #put(type: string, counter: Counter, previous: ModelEvent["previous"]): Answer {
    this.counters.set(counter.id, counter)
    this.events.push({ type, object: counter, previous })
    return success(counter)
  }
}
