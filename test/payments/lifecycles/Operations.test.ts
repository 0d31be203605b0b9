/**
 * The state table of operations, row by row (semantics operations.states): the effects of each word of a processor, of
 * each timer and each decision on an operation, on its payment, and on the request that waits.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import type { Operation } from "../../../src/domain/Operation.ts"
import type { PaymentIntent } from "../../../src/domain/PaymentIntent.ts"
import type { RequestIdentity } from "../../../src/engine/log/Record.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import * as CheckoutSessions from "../../../src/payments/lifecycles/CheckoutSessions.ts"
import {
  CHECKOUT_SESSION,
  OPERATION,
  type OperationHidden,
  PAYMENT_INTENT,
  REFUND
} from "../../../src/payments/shared/Documents.ts"
import * as OperationOutcomes from "../../../src/payments/lifecycles/OperationOutcomes.ts"
import { Begun, requestOf } from "../../../src/payments/lifecycles/Operations.ts"
import * as PaymentIntents from "../../../src/payments/lifecycles/PaymentIntents.ts"
import type { PaymentsConfig } from "../../../src/payments/shared/PaymentsConfig.ts"
import * as Prices from "../../../src/payments/lifecycles/Prices.ts"
import type { Processors } from "../../../src/payments/processing/Processor.ts"
import * as Products from "../../../src/payments/lifecycles/Products.ts"
import * as Refunds from "../../../src/payments/lifecycles/Refunds.ts"
import type { Outcome } from "../../../src/payments/processing/RemoteProcessor.ts"
import { PROCESSOR, VirtualProcessor } from "../../models/Operations.ts"
import { putCard } from "../../support/fixtures/Operations.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"
import { accepted } from "../../support/Outcomes.ts"

const CARD = "pm_000000000000000000000001"
const SECONDS = 1000
const HOUR = 3600 * SECONDS
const DAY = 24 * HOUR

const approved = (amount: number = 2000, currency: string = "usd"): Outcome => ({
  kind: "approved",
  reference: "ref_1",
  amount,
  currency,
  captureBefore: null
})
const DECLINED: Outcome = {
  kind: "declined",
  declineCode: "insufficient_funds",
  message: "Your card has insufficient funds.",
  processorCode: "51"
}
const CHALLENGE: Outcome = { kind: "challenge", url: "https://bank.example/3ds", reference: "ref_1" }
const PENDING: Outcome = { kind: "pending", reference: "ref_1" }
const AUTHENTICATED: Outcome = { kind: "authenticated", reference: "ref_1" }
const REFUSED: Outcome = { kind: "refused", param: "payment_method", code: "unknown_token", message: "No such token." }
const NOT_EXECUTED: Outcome = { kind: "not_executed", why: "429", retryAfterMillis: null }
const MISMATCH: Outcome = { kind: "mismatch", why: "Another payment." }
const tooLate = (now: "succeeded" | "canceled"): Outcome => ({ kind: "too_late", now, reference: "ref_1" })

/** An account whose processor is behind a network, with a card of that processor. */
class Shop extends MemoryAccount {
  #requests = 0

  constructor() {
    super()
    this.processors = new VirtualProcessor().processors
  }

  readonly open = this.run(putCard(CARD))

  /** Begins an operation by a command, and returns the operation's id. */
  readonly begun = <E>(
    command: Effect.Effect<unknown, E, Transaction | PaymentsConfig | Processors>
  ): Effect.Effect<string, E> =>
    Effect.map(this.run(command, this.request()), (begun) => {
      assert.instanceOf(begun, Begun)
      return (begun as Begun).operation
    })

  request(): RequestIdentity {
    const key = `key-${++this.#requests}`
    return { id: `req_${this.#requests}`, idempotencyKey: key, fingerprint: key, apiVersion: "2026-03-09" }
  }

  readonly word = (
    operation: string,
    outcome: Outcome,
    by: "answer" | "look" | "webhook" = "answer"
  ): Effect.Effect<void> => this.run(OperationOutcomes.conclude(operation, outcome, by), null)

  readonly decided = (operation: string, reference: string | null): Effect.Effect<boolean> =>
    this.run(OperationOutcomes.decide(operation, reference), null)

  readonly pay = Effect.fnUntraced({ self: this as Shop }, function* (terms: object = {}) {
    const { id } = yield* accepted(this.run(PaymentIntents.create({ amount: 2000, currency: "usd", ...terms })))
    const operation = yield* this.begun(PaymentIntents.confirm(id, { payment_method: CARD }))
    return { id, operation }
  })

  /** Pays with the processor's word. */
  readonly paid = Effect.fnUntraced({ self: this as Shop }, function* (outcome: Outcome, terms: object = {}) {
    const made = yield* this.pay(terms)
    yield* this.word(made.operation, outcome)
    return made
  })

  payment(id: string): PaymentIntent {
    return this.value(PAYMENT_INTENT, id)!
  }

  hidden(id: string): OperationHidden {
    return this.all(OPERATION).find(({ value }) => value.id === id)!.hidden!
  }

  evidence(id: string): OperationHidden["evidence"] {
    return this.hidden(id).evidence
  }

  /** The time of an operation's next look, in milliseconds. */
  dueAt(id: string): number | undefined {
    return this.timers.get(`operation:${id}`)?.dueAt
  }

  operation(id: string): Operation {
    return this.value(OPERATION, id)!
  }

  /** The status and code or object of the last answer. */
  get answer(): readonly [number, string] | "released" | undefined {
    const last = this.answers.at(-1)?.response
    if (last === undefined) return undefined
    if (!("status" in last)) return "released"
    const body = JSON.parse(last.body)
    return [last.status, body.error?.code ?? `${body.object} ${body.status}`]
  }

  get newest(): ReadonlyArray<string> {
    return this.events.map(({ type }) => type)
  }
}

const opened = Effect.gen(function* () {
  const shop = new Shop()
  yield* shop.open
  return shop
})

const cancel = (id: string): Command => PaymentIntents.cancel(id, {})
const confirmAgain = (id: string): Command => PaymentIntents.confirm(id, { payment_method: CARD })

const failure = <A, E extends { readonly _tag: string }>(exit: Exit.Exit<A, E>): string | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  const reason = exit.cause.reasons.find((reason) => reason._tag === "Fail")
  return reason?.error._tag
}

type Command = Effect.Effect<unknown, { readonly _tag: string }, Transaction | PaymentsConfig | Processors>

const FINAL = "final"

describe("an operation begins", () => {
  it.effect(
    "operations.begin, operations.object: with a record that has all that the call needs; the payment keeps its status",
    () =>
      Effect.gen(function* () {
        const shop = yield* opened
        const { id, operation } = yield* shop.pay({ capture_method: "manual", description: "Tea" })
        const { created, pending_operation, status } = shop.payment(id)
        assert.strictEqual(status, "requires_payment_method")
        assert.deepStrictEqual(pending_operation, { id: operation, kind: "authorize", created })
        assert.include(shop.operation(operation), {
          kind: "authorize",
          status: "open",
          amount: 2000,
          processor: PROCESSOR
        })
        const { hidden } = shop.all(OPERATION)[0]!
        assert.include(hidden.request, { token: "tok_approve", capture: "manual", description: "Tea", reference: null })
        assert.deepStrictEqual(
          [...shop.timers.values()],
          [{ id: `operation:${operation}`, name: "operation.attend", dueAt: shop.now + 20 * SECONDS }]
        )
        assert.strictEqual(shop.answer, undefined)
        assert.deepStrictEqual(shop.newest, ["payment_intent.created"])
      })
  )

  it.effect("operations.cards: only with a payment method of the same processor", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* accepted(shop.run(PaymentIntents.create({ amount: 2000, currency: "usd" })))
      const exit = yield* Effect.exit(shop.run(PaymentIntents.confirm(id, { payment_method: "pm_card_visa" })))
      assert.strictEqual(failure(exit), "ParameterInvalid")
      const simulated = new MemoryAccount()
      simulated.documents = shop.documents
      const other = yield* Effect.exit(simulated.run(PaymentIntents.confirm(id, { payment_method: CARD })))
      assert.strictEqual(failure(other), "ParameterInvalid")
    })
  )

  it.effect(
    "operations.one: until it has an outcome, whatever else needs the processor is refused, and details stay open",
    () =>
      Effect.gen(function* () {
        const shop = yield* opened
        const { id } = yield* shop.pay()
        for (const command of [
          PaymentIntents.confirm(id, { payment_method: CARD }),
          PaymentIntents.capture(id, {}),
          PaymentIntents.cancel(id, {}),
          PaymentIntents.update(id, { amount: 1 }),
          PaymentIntents.update(id, { setup_future_usage: null }),
          Refunds.create({ payment_intent: id })
        ]) {
          const exit = yield* Effect.exit(shop.run(command as Command))
          assert.strictEqual(failure(exit), "OperationInProgress")
        }
        const updated = yield* shop.run(PaymentIntents.update(id, { description: "Tea", metadata: { a: "1" } }))
        assert.include(updated, { description: "Tea" })
        assert.isDefined(updated.pending_operation)
      })
  )
})

/** Words about an open authorization: the operation, the payment and the answer. */
const ATTEMPTS: ReadonlyArray<
  readonly [name: string, outcome: Outcome, terms: object, operation: string, payment: string, answer: unknown]
> = [
  ["approved", approved(), {}, FINAL, "succeeded", [200, "payment_intent succeeded"]],
  [
    "approved, manual",
    approved(),
    { capture_method: "manual" },
    FINAL,
    "requires_capture",
    [200, "payment_intent requires_capture"]
  ],
  ["declined", DECLINED, {}, FINAL, "requires_payment_method", [402, "card_declined"]],
  ["challenge", CHALLENGE, {}, "waiting", "requires_action", [200, "payment_intent requires_action"]],
  ["pending", PENDING, {}, "waiting", "processing", [200, "payment_intent processing"]],
  ["refused", REFUSED, {}, FINAL, "requires_payment_method", [400, "processor_refused"]],
  ["not executed", NOT_EXECUTED, {}, FINAL, "requires_payment_method", "released"],
  ["another amount", approved(2001), {}, "decide", "processing", [200, "payment_intent processing"]],
  ["another currency", approved(2000, "eur"), {}, "decide", "processing", [200, "payment_intent processing"]],
  ["another payment", MISMATCH, {}, "decide", "processing", [200, "payment_intent processing"]],
  ["too late", tooLate("succeeded"), {}, "decide", "processing", [200, "payment_intent processing"]],
  ["authenticated without a challenge", AUTHENTICATED, {}, "decide", "processing", [200, "payment_intent processing"]]
]

// Semantics operations.refused.
describe("an open authorization", () => {
  for (const [name, outcome, terms, operation, payment, answer] of ATTEMPTS) {
    it.effect(`${name}: ${operation}, ${payment}`, () =>
      Effect.gen(function* () {
        const shop = yield* opened
        const made = yield* shop.paid(outcome, terms)
        assert.deepStrictEqual(
          [shop.operation(made.operation).status, shop.payment(made.id).status, shop.answer],
          [operation, payment, answer]
        )
        assert.strictEqual(shop.payment(made.id).pending_operation !== undefined, operation === "decide")
        // The same word again changes nothing.
        const { events, text } = shop
        yield* shop.word(made.operation, outcome)
        assert.strictEqual(shop.events.length, events.length)
        if (operation === FINAL) assert.strictEqual(shop.text, text)
        assert.strictEqual(shop.answers.length, 1)
      })
    )
  }

  it.effect("unknown stays as it is, and after 20 seconds is unresolved: the payment is processing", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id, operation } = yield* shop.paid({ kind: "unknown", why: "reset" })
      yield* shop.advance(19 * SECONDS)
      assert.strictEqual(shop.operation(operation).status, "open")
      yield* shop.advance(1 * SECONDS)
      assert.strictEqual(shop.operation(operation).status, "unresolved")
      assert.strictEqual(shop.payment(id).status, "processing")
      assert.deepStrictEqual(shop.answer, [200, "payment_intent processing"])
      assert.isDefined(shop.payment(id).pending_operation)
      assert.deepStrictEqual(shop.newest.slice(1), [
        "charge.pending",
        "payment_intent.processing",
        "operation.unresolved"
      ])
    })
  )
})

describe("an unresolved authorization", () => {
  for (const [outcome, status, events] of [
    [approved(), "succeeded", ["charge.succeeded", "payment_intent.succeeded"]],
    [DECLINED, "requires_payment_method", ["charge.failed", "payment_intent.payment_failed"]],
    [NOT_EXECUTED, "requires_payment_method", ["charge.failed", "payment_intent.payment_failed"]]
  ] as const) {
    it.effect(`${outcome.kind}: the payment settles as ${status}`, () =>
      Effect.gen(function* () {
        const shop = yield* opened
        const { id, operation } = yield* shop.pay()
        yield* shop.advance(20 * SECONDS)
        const before = shop.events.length
        yield* shop.word(operation, outcome, "look")
        assert.include(shop.operation(operation), { status: FINAL, resolved_by: "look" })
        assert.strictEqual(shop.payment(id).status, status)
        assert.isUndefined(shop.payment(id).pending_operation)
        assert.deepStrictEqual(shop.newest.slice(before), [...events, "operation.resolved"])
        assert.strictEqual(shop.answers.length, 1)
        if (outcome.kind === "not_executed") {
          assert.strictEqual(shop.payment(id).last_payment_error?.decline_code, "processing_error")
        }
      })
    )
  }

  it.effect(
    "operations.looks: is asked about at 30 seconds, 1, 2, 5, 15 and 30 minutes and every hour; after a day a person decides",
    () =>
      Effect.gen(function* () {
        const shop = yield* opened
        const { id, operation } = yield* shop.pay()
        const begun = shop.now
        const looks: Array<number> = []
        for (let due = 0; shop.operation(operation).status !== "decide" && looks.length < 50;) {
          due = [...shop.timers.values()][0]!.dueAt
          yield* shop.advance(due - shop.now)
          looks.push((due - begun) / SECONDS)
        }
        assert.deepStrictEqual(looks.slice(0, 9), [20, 30, 60, 120, 300, 900, 1800, 5400, 9000])
        assert.strictEqual(looks.at(-1)!, DAY / SECONDS)
        assert.strictEqual(shop.payment(id).status, "processing")
        assert.isDefined(shop.payment(id).pending_operation)
      })
  )
})

describe("a pending authorization", () => {
  it.effect("is asked about at 1, 5 and 15 minutes and every hour, whatever word it repeats", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { operation } = yield* shop.paid(PENDING)
      const begun = shop.now
      const looks: Array<number> = []
      for (let look = 0; look < 5; look++) {
        const { dueAt } = [...shop.timers.values()][0]!
        yield* shop.advance(dueAt - shop.now)
        yield* shop.word(operation, PENDING, "look")
        looks.push((dueAt - begun) / SECONDS)
      }
      assert.deepStrictEqual(looks, [60, 300, 900, 4500, 8100])
    })
  )

  for (const [outcome, status] of [
    [approved(), "succeeded"],
    [DECLINED, "requires_payment_method"],
    [NOT_EXECUTED, "requires_payment_method"]
  ] as const) {
    it.effect(`settles: ${outcome.kind}, ${status}`, () =>
      Effect.gen(function* () {
        const shop = yield* opened
        const { id, operation } = yield* shop.paid(PENDING)
        yield* shop.word(operation, outcome, "look")
        assert.deepStrictEqual([shop.payment(id).status, shop.operation(operation).status], [status, FINAL])
      })
    )
  }
})

describe("a challenge", () => {
  const challenged = Effect.gen(function* () {
    const shop = yield* opened
    const made = yield* shop.paid(CHALLENGE)
    return { shop, ...made }
  })

  for (const [outcome, status, operationStatus] of [
    [approved(), "succeeded", FINAL],
    [DECLINED, "requires_payment_method", FINAL],
    [NOT_EXECUTED, "requires_payment_method", FINAL],
    [PENDING, "processing", "waiting"],
    [CHALLENGE, "requires_action", "waiting"]
  ] as const) {
    it.effect(`whose payer returns, ${outcome.kind}: ${status}`, () =>
      Effect.gen(function* () {
        const { id, operation, shop } = yield* challenged
        assert.strictEqual(shop.payment(id).next_action?.redirect_to_url.url.includes("/authenticate/"), true)
        assert.notInclude(shop.text, "https://bank.example")
        yield* shop.word(operation, outcome, "look")
        assert.deepStrictEqual([shop.payment(id).status, shop.operation(operation).status], [status, operationStatus])
      })
    )
  }

  it.effect("of a payment with manual confirmation waits for the second confirmation, which tells of it", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id, operation } = yield* shop.paid(CHALLENGE, { confirmation_method: "manual" })
      yield* shop.word(operation, AUTHENTICATED, "look")
      assert.strictEqual(shop.payment(id).status, "requires_confirmation")
      const second = yield* shop.begun(PaymentIntents.confirm(id, {}))
      assert.isTrue(shop.all(OPERATION).find((document) => document.id === second)!.hidden.request.authenticated)
    })
  )

  it.effect("operations.terms: keeps the terms and the payment method", () =>
    Effect.gen(function* () {
      const { id, shop } = yield* challenged
      for (const change of [{ amount: 1 }, { payment_method: CARD }]) {
        const exit = yield* Effect.exit(shop.run(PaymentIntents.update(id, change)))
        assert.strictEqual(failure(exit), "PaymentIntentUnexpectedState")
      }
      assert.strictEqual(
        failure(yield* Effect.exit(shop.run(PaymentIntents.authenticate(id, "success")))),
        "OperationInProgress"
      )
    })
  )

  it.effect("is superseded by a new attempt that was carried out, and stays after one that was not", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* challenged
      const refused = yield* shop.begun(PaymentIntents.confirm(id, { payment_method: CARD }))
      yield* shop.word(refused, NOT_EXECUTED)
      assert.strictEqual(shop.operation(operation).status, "waiting")
      const second = yield* shop.begun(PaymentIntents.confirm(id, { payment_method: CARD }))
      yield* shop.word(second, approved())
      assert.strictEqual(shop.operation(operation).outcome?.kind, "superseded")
      assert.strictEqual(shop.payment(id).status, "succeeded")
    })
  )

  for (const failed of [REFUSED, DECLINED]) {
    it.effect(`that the payer passes while a later attempt has no outcome wins; then that one is ${failed.kind}`, () =>
      Effect.gen(function* () {
        const { id, operation, shop } = yield* challenged
        const second = yield* shop.begun(PaymentIntents.confirm(id, { payment_method: CARD }))
        yield* shop.advance(20 * SECONDS)
        assert.strictEqual(shop.payment(id).status, "processing")
        yield* shop.word(operation, DECLINED, "look")
        assert.strictEqual(shop.payment(id).status, "processing")
        const other = yield* challenged
        const later = yield* other.shop.begun(PaymentIntents.confirm(other.id, { payment_method: CARD }))
        yield* other.shop.advance(20 * SECONDS)
        yield* other.shop.word(other.operation, approved(), "look")
        assert.strictEqual(other.shop.payment(other.id).status, "succeeded")
        yield* other.shop.word(later, failed, "look")
        assert.strictEqual(other.shop.operation(later).status, FINAL)
        assert.strictEqual(other.shop.operation(other.operation).outcome?.kind, "approved")
        assert.isUndefined(other.shop.payment(other.id).pending_operation)
        assert.strictEqual(shop.operation(second).status, "unresolved")
      })
    )
  }

  it.effect("that the payer passes after a later attempt has failed is given back", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* challenged
      const second = yield* shop.begun(PaymentIntents.confirm(id, { payment_method: CARD }))
      yield* shop.advance(20 * SECONDS)
      yield* shop.word(second, REFUSED, "look")
      assert.strictEqual(shop.payment(id).status, "requires_payment_method")
      yield* shop.word(operation, approved(), "look")
      assert.strictEqual(shop.operation(operation).status, FINAL)
      assert.strictEqual(shop.payment(id).pending_operation?.kind, "refund")
    })
  )

  it.effect("is given up by a void when the payment is canceled", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* challenged
      const released = yield* shop.begun(PaymentIntents.cancel(id, { cancellation_reason: "abandoned" }))
      assert.strictEqual(shop.payment(id).status, "requires_action")
      yield* shop.word(released, approved())
      assert.include(shop.payment(id), { status: "canceled", cancellation_reason: "abandoned" })
      assert.strictEqual(shop.operation(operation).outcome?.kind, "superseded")
      assert.deepStrictEqual(shop.answer, [200, "payment_intent canceled"])
    })
  )

  for (const [outcome, status] of [
    [approved(), "canceled"],
    [NOT_EXECUTED, "requires_payment_method"]
  ] as const) {
    it.effect(
      `that the payer fails while the void is out has failed; then the void is ${outcome.kind}: ${status}`,
      () =>
        Effect.gen(function* () {
          const { id, operation, shop } = yield* challenged
          const released = yield* shop.begun(PaymentIntents.cancel(id, {}))
          yield* shop.word(operation, DECLINED, "look")
          assert.strictEqual(shop.operation(operation).status, FINAL)
          assert.strictEqual(shop.payment(id).status, "requires_payment_method")
          assert.strictEqual(shop.payment(id).pending_operation?.id, released)
          yield* shop.word(released, outcome)
          assert.strictEqual(shop.payment(id).status, status)
          assert.isUndefined(shop.payment(id).pending_operation)
          assert.isUndefined(shop.dueAt(operation))
        })
    )
  }

  it.effect("that the payer passes while an operation is out is asked about once that one has ended in vain", () =>
    Effect.gen(function* () {
      for (const [begins, end] of [
        [cancel, REFUSED],
        [cancel, DECLINED],
        [confirmAgain, REFUSED]
      ] as const) {
        const { id, operation, shop } = yield* challenged
        const other = yield* shop.begun(begins(id))
        yield* shop.word(operation, AUTHENTICATED, "look")
        assert.strictEqual(shop.payment(id).status, "requires_action")
        yield* shop.advance(10 * SECONDS)
        yield* shop.word(other, end)
        assert.strictEqual(shop.operation(operation).status, "waiting")
        assert.strictEqual(shop.dueAt(operation), shop.now)
      }
    })
  )

  it.effect("that the payer passes without the payment is over, and moves nothing", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* challenged
      const other = yield* shop.begun(confirmAgain(id))
      yield* shop.advance(20 * SECONDS)
      assert.strictEqual(shop.payment(id).status, "processing")
      yield* shop.word(operation, AUTHENTICATED, "look")
      assert.strictEqual(shop.operation(operation).status, "waiting")
      yield* shop.word(other, NOT_EXECUTED, "look")
      assert.strictEqual(shop.payment(id).status, "requires_payment_method")
      assert.strictEqual(shop.dueAt(operation), shop.now)
      yield* shop.word(operation, AUTHENTICATED, "look")
      assert.strictEqual(shop.operation(operation).status, FINAL)
      assert.strictEqual(shop.payment(id).status, "requires_payment_method")
      assert.isUndefined(shop.payment(id).pending_operation)
    })
  )

  for (const word of [PENDING, MISMATCH]) {
    it.effect(`without which the payment has gone on is left to a person by the word "${word.kind}"`, () =>
      Effect.gen(function* () {
        const { id, operation, shop } = yield* challenged
        const other = yield* shop.begun(confirmAgain(id))
        yield* shop.advance(20 * SECONDS)
        yield* shop.word(other, NOT_EXECUTED, "look")
        yield* shop.word(operation, word, "look")
        assert.strictEqual(shop.operation(operation).status, "decide")
        // The processor has contradicted itself: that no money has moved is not enough.
        yield* shop.word(operation, AUTHENTICATED, "look")
        assert.strictEqual(shop.operation(operation).status, "decide")
        assert.strictEqual(shop.payment(id).status, "requires_payment_method")
        yield* shop.word(operation, NOT_EXECUTED, "look")
        assert.strictEqual(shop.operation(operation).status, FINAL)
      })
    )
  }

  it.effect("that a later attempt has ended waits for that attempt's outcome", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* challenged
      const second = yield* shop.begun(PaymentIntents.confirm(id, { payment_method: CARD }))
      yield* shop.word(operation, NOT_EXECUTED, "look")
      assert.strictEqual(shop.operation(operation).status, "waiting")
      yield* shop.word(second, REFUSED)
      assert.strictEqual(shop.payment(id).status, "requires_action")
      yield* shop.word(operation, NOT_EXECUTED, "look")
      assert.strictEqual(shop.payment(id).status, "requires_payment_method")
    })
  )

  it.effect("that the payer passes while a later attempt is out stays paid when that one has no answer", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* challenged
      const later = yield* shop.begun(confirmAgain(id))
      yield* shop.word(operation, approved(), "look")
      yield* shop.advance(20 * SECONDS)
      assert.strictEqual(shop.operation(later).status, "unresolved")
      assert.strictEqual(shop.payment(id).status, "succeeded")
    })
  )

  it.effect("of a payer who is not there is declined, and nothing is left at the processor to release", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* accepted(shop.run(PaymentIntents.create({ amount: 2000, currency: "usd" })))
      const operation = yield* shop.begun(PaymentIntents.confirm(id, { payment_method: CARD, off_session: true }))
      yield* shop.word(operation, CHALLENGE)
      assert.strictEqual(shop.operation(operation).status, FINAL)
      assert.strictEqual(shop.payment(id).last_payment_error?.decline_code, "authentication_required")
      yield* shop.run(PaymentIntents.cancel(id, {}))
      assert.strictEqual(shop.payment(id).status, "canceled")
    })
  )

  it.effect("that the payer has passed, and whose void is approved all the same, is left to a person", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* challenged
      const released = yield* shop.begun(cancel(id))
      yield* shop.word(operation, approved(), "look")
      yield* shop.word(released, approved())
      assert.strictEqual(shop.operation(released).status, "decide")
      assert.strictEqual(shop.payment(id).status, "succeeded")
    })
  )

  it.effect("whose void is to be decided is canceled by a person's word", () =>
    Effect.gen(function* () {
      const { id, shop } = yield* challenged
      const released = yield* shop.begun(cancel(id))
      yield* shop.advance(20 * SECONDS)
      yield* shop.word(released, MISMATCH, "look")
      assert.isTrue(yield* shop.decided(released, "ref_1"))
      assert.strictEqual(shop.payment(id).status, "canceled")
      assert.lengthOf(shop.all(OPERATION), 2)
    })
  )

  it.effect("whose void was refused, and carried out after all, is left to a person", () =>
    Effect.gen(function* () {
      const { id, shop } = yield* challenged
      const released = yield* shop.begun(cancel(id))
      yield* shop.word(released, REFUSED)
      yield* shop.word(released, approved(), "look")
      assert.strictEqual(shop.operation(released).status, "decide")
      assert.strictEqual(shop.payment(id).status, "requires_action")
    })
  )

  it.effect("that the payer passes while the void is out wins", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* challenged
      const released = yield* shop.begun(PaymentIntents.cancel(id, {}))
      yield* shop.word(operation, approved(), "look")
      assert.strictEqual(shop.payment(id).status, "succeeded")
      assert.strictEqual(shop.payment(id).pending_operation?.id, released)
      yield* shop.word(released, tooLate("succeeded"))
      assert.deepStrictEqual(shop.answer, [400, "payment_intent_unexpected_state"])
      assert.isUndefined(shop.payment(id).pending_operation)
    })
  )
})

describe("a capture", () => {
  const held = Effect.gen(function* () {
    const shop = yield* opened
    const made = yield* shop.paid(approved(), { capture_method: "manual" })
    const capture = yield* shop.begun(PaymentIntents.capture(made.id, { amount_to_capture: 500 }))
    return { shop, id: made.id, capture }
  })

  for (const [outcome, status, answer] of [
    [approved(500), "succeeded", [200, "payment_intent succeeded"]],
    [REFUSED, "requires_capture", [400, "processor_refused"]],
    [DECLINED, "requires_capture", [400, "processor_refused"]],
    [NOT_EXECUTED, "requires_capture", "released"],
    [tooLate("canceled"), "canceled", [400, "payment_intent_unexpected_state"]],
    [tooLate("succeeded"), "requires_capture", [200, "payment_intent requires_capture"]],
    [approved(2000), "requires_capture", [200, "payment_intent requires_capture"]]
  ] as const) {
    it.effect(`${outcome.kind}: ${status}`, () =>
      Effect.gen(function* () {
        const { capture, id, shop } = yield* held
        yield* shop.word(capture, outcome)
        assert.strictEqual(shop.payment(id).status, status)
        assert.deepStrictEqual(shop.answer, answer)
        if (status === "succeeded") assert.strictEqual(shop.payment(id).amount_received, 500)
      })
    )
  }

  for (const [outcome, status] of [
    [approved(500), "succeeded"],
    [tooLate("canceled"), "canceled"],
    [REFUSED, "requires_capture"],
    [NOT_EXECUTED, "requires_capture"]
  ] as const) {
    it.effect(`without an outcome leaves the payment as it is; then ${outcome.kind}: ${status}`, () =>
      Effect.gen(function* () {
        const { capture, id, shop } = yield* held
        yield* shop.advance(20 * SECONDS)
        assert.deepStrictEqual(shop.answer, [200, "payment_intent requires_capture"])
        assert.strictEqual(shop.payment(id).pending_operation?.id, capture)
        yield* shop.word(capture, outcome, "look")
        assert.strictEqual(shop.payment(id).status, status)
        assert.strictEqual(shop.operation(capture).status, FINAL)
        assert.isUndefined(shop.payment(id).pending_operation)
        assert.strictEqual(shop.answers.length, 2)
      })
    )
  }

  it.effect("without an outcome for a day is left to a person, and the payment stays as it is", () =>
    Effect.gen(function* () {
      const { capture, id, shop } = yield* held
      yield* shop.advance(25 * HOUR)
      assert.strictEqual(shop.operation(capture).status, "decide")
      assert.strictEqual(shop.payment(id).status, "requires_capture")
      assert.isTrue(yield* shop.decided(capture, null))
      assert.isUndefined(shop.payment(id).pending_operation)
      assert.strictEqual(shop.payment(id).status, "requires_capture")
    })
  )
})

describe("a void of a held payment", () => {
  const canceling = Effect.gen(function* () {
    const shop = yield* opened
    const { id } = yield* shop.paid(approved(), { capture_method: "manual" })
    const released = yield* shop.begun(PaymentIntents.cancel(id, {}))
    return { shop, id, released }
  })

  for (const [outcome, status, operation, answer] of [
    [approved(), "canceled", FINAL, [200, "payment_intent canceled"]],
    // A void has no amount of its own.
    [approved(0), "canceled", FINAL, [200, "payment_intent canceled"]],
    [tooLate("canceled"), "canceled", FINAL, [200, "payment_intent canceled"]],
    [tooLate("succeeded"), "requires_capture", "decide", [200, "payment_intent requires_capture"]],
    [REFUSED, "requires_capture", FINAL, [400, "processor_refused"]],
    [NOT_EXECUTED, "requires_capture", FINAL, "released"]
  ] as const) {
    it.effect(`${outcome.kind}: ${status}`, () =>
      Effect.gen(function* () {
        const { id, released, shop } = yield* canceling
        yield* shop.word(released, outcome)
        assert.deepStrictEqual(
          [shop.payment(id).status, shop.operation(released).status, shop.answer],
          [status, operation, answer]
        )
      })
    )
    it.effect(`without an outcome leaves the payment as it is; then ${outcome.kind}: ${status}`, () =>
      Effect.gen(function* () {
        const { id, released, shop } = yield* canceling
        yield* shop.advance(20 * SECONDS)
        assert.deepStrictEqual(shop.answer, [200, "payment_intent requires_capture"])
        yield* shop.word(released, outcome, "look")
        assert.deepStrictEqual([shop.payment(id).status, shop.operation(released).status], [status, operation])
      })
    )
  }
})

describe("the end of a hold", () => {
  it.effect("releases the payment at the processor, and tries again if that was not executed", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* shop.paid(approved(), { capture_method: "manual" })
      yield* shop.advance(shop.config.authorizationHoldSeconds * SECONDS)
      const first = shop.payment(id).pending_operation!
      assert.strictEqual(first.kind, "void")
      yield* shop.word(first.id, NOT_EXECUTED)
      assert.strictEqual(shop.payment(id).status, "requires_capture")
      yield* shop.advance(60 * SECONDS)
      yield* shop.word(shop.payment(id).pending_operation!.id, approved())
      assert.include(shop.payment(id), { status: "canceled", cancellation_reason: "automatic" })
      assert.include(shop.newest, "charge.expired")
    })
  )

  it.effect("is that of the processor, if it is earlier, and waits for an operation of the payment", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* shop.paid({ ...approved(), captureBefore: shop.now + HOUR } as Outcome, {
        capture_method: "manual"
      })
      yield* shop.advance(HOUR - SECONDS)
      const capture = yield* shop.begun(PaymentIntents.capture(id, {}))
      yield* shop.advance(10 * SECONDS)
      assert.strictEqual(shop.payment(id).pending_operation?.id, capture)
      yield* shop.word(capture, approved())
      yield* shop.advance(DAY)
      assert.strictEqual(shop.payment(id).status, "succeeded")
    })
  )

  for (const wait of [0, 20 * SECONDS]) {
    it.effect(`that the processor has named is by its own clock: ${wait === 0 ? "an answer" : "a late one"}`, () =>
      Effect.gen(function* () {
        const shop = yield* opened
        shop.clockOffset = DAY
        const { id, operation } = yield* shop.pay({ capture_method: "manual" })
        yield* shop.advance(wait)
        const captureBefore = shop.now - DAY + HOUR
        yield* shop.word(operation, { ...approved(), captureBefore } as Outcome, "look")
        assert.strictEqual(shop.payment(id).status, "requires_capture")
        yield* shop.advance(HOUR - SECONDS)
        assert.isUndefined(shop.payment(id).pending_operation)
        yield* shop.advance(SECONDS)
        assert.strictEqual(shop.payment(id).pending_operation?.kind, "void")
      })
    )
  }
})

describe("a refund", () => {
  const begun = Effect.gen(function* () {
    const shop = yield* opened
    const { id } = yield* shop.paid(approved())
    const refund = yield* shop.begun(Refunds.create({ payment_intent: id, amount: 500, metadata: { a: "1" } }))
    return { shop, id, refund }
  })

  for (const [outcome, refundStatus, answer] of [
    [approved(500), "succeeded", [200, "refund succeeded"]],
    [PENDING, "pending", [200, "refund pending"]],
    [REFUSED, undefined, [400, "processor_refused"]],
    [DECLINED, undefined, [400, "processor_refused"]],
    [NOT_EXECUTED, undefined, "released"]
  ] as const) {
    it.effect(`${outcome.kind}: ${refundStatus ?? "none"}`, () =>
      Effect.gen(function* () {
        const { id, refund, shop } = yield* begun
        assert.isEmpty(shop.all(REFUND))
        yield* shop.word(refund, outcome)
        assert.strictEqual(shop.all(REFUND)[0]?.value.status, refundStatus)
        assert.deepStrictEqual(shop.answer, answer)
        assert.strictEqual(shop.payment(id).charges.data[0]!.amount_refunded, refundStatus === undefined ? 0 : 500)
        assert.isUndefined(shop.payment(id).pending_operation)
      })
    )
  }

  for (const [outcome, status, reserved] of [
    [approved(500), "succeeded", 500],
    [REFUSED, "failed", 0],
    [NOT_EXECUTED, "failed", 0]
  ] as const) {
    it.effect(`without an outcome reserves its amount; then ${outcome.kind}: ${status}`, () =>
      Effect.gen(function* () {
        const { id, refund, shop } = yield* begun
        yield* shop.advance(20 * SECONDS)
        assert.deepStrictEqual(shop.answer, [200, "refund pending"])
        assert.strictEqual(shop.payment(id).charges.data[0]!.amount_refunded, 500)
        yield* shop.word(refund, outcome, "look")
        assert.strictEqual(shop.all(REFUND)[0]!.value.status, status)
        assert.strictEqual(shop.payment(id).charges.data[0]!.amount_refunded, reserved)
      })
    )
  }

  /** A refund that a person has said has not happened, while the processor says that it has. */
  const contradicted = Effect.gen(function* () {
    const made = yield* begun
    const { refund, shop } = made
    yield* shop.advance(20 * SECONDS)
    yield* shop.word(refund, MISMATCH, "look")
    assert.isTrue(yield* shop.decided(refund, null))
    assert.include(shop.all(REFUND)[0]!.value, { status: "failed", failure_reason: "unknown" })
    return made
  })

  it.effect("refunds.states: that has failed by a person's word succeeds by the processor's", () =>
    Effect.gen(function* () {
      const { id, refund, shop } = yield* contradicted
      const { length } = shop.newest
      yield* shop.word(refund, approved(500), "look")
      assert.strictEqual(shop.operation(refund).status, "decide")
      yield* shop.word(refund, approved(500), "look")
      assert.strictEqual(shop.operation(refund).status, FINAL)
      const { value } = shop.all(REFUND)[0]!
      assert.strictEqual(value.status, "succeeded")
      assert.notProperty(value, "failure_reason")
      assert.strictEqual(shop.payment(id).charges.data[0]!.amount_refunded, 500)
      assert.deepStrictEqual(shop.newest.slice(length), [
        "operation.unresolved",
        "refund.updated",
        "charge.refunded",
        "operation.resolved"
      ])
    })
  )

  it.effect("operations.decide: of more than what is left by now changes nothing, and is left to a person", () =>
    Effect.gen(function* () {
      const { id, refund, shop } = yield* contradicted
      const other = yield* shop.begun(Refunds.create({ payment_intent: id, amount: 1800 }))
      yield* shop.word(other, approved(1800))
      for (let look = 0; look < 3; look++) yield* shop.word(refund, approved(500), "look")
      assert.strictEqual(shop.operation(refund).status, "decide")
      assert.strictEqual(shop.payment(id).charges.data[0]!.amount_refunded, 1800)
      assert.isTrue(yield* shop.decided(refund, "ref_1"))
      assert.strictEqual(shop.operation(refund).status, FINAL)
      assert.strictEqual(shop.payment(id).charges.data[0]!.amount_refunded, 1800)
    })
  )
})

describe("a pending refund", () => {
  for (const [outcome, status, reserved] of [
    [approved(500), "succeeded", 500],
    [DECLINED, "failed", 0],
    [NOT_EXECUTED, "failed", 0]
  ] as const) {
    it.effect(`waits; then ${outcome.kind}: ${status}`, () =>
      Effect.gen(function* () {
        const shop = yield* opened
        const { id } = yield* shop.paid(approved())
        const refund = yield* shop.begun(Refunds.create({ payment_intent: id, amount: 500 }))
        yield* shop.word(refund, PENDING)
        assert.strictEqual(shop.operation(refund).status, "waiting")
        yield* shop.word(refund, outcome, "look")
        assert.strictEqual(shop.all(REFUND)[0]!.value.status, status)
        assert.strictEqual(shop.operation(refund).status, FINAL)
        assert.strictEqual(shop.payment(id).charges.data[0]!.amount_refunded, reserved)
      })
    )
  }
})

describe("a pending refund of the whole payment", () => {
  it.effect("succeeds, although nothing is left beside it", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* shop.paid(approved())
      const refund = yield* shop.begun(Refunds.create({ payment_intent: id }))
      yield* shop.word(refund, PENDING)
      yield* shop.word(refund, approved(), "look")
      assert.strictEqual(shop.operation(refund).status, FINAL)
      assert.deepInclude(shop.payment(id).charges.data[0], { amount_refunded: 2000, refunded: true })
    })
  )
})

describe("operations.events: an operation without an outcome", () => {
  const ofOperation = (shop: Shop) => shop.newest.filter((type) => type.startsWith("operation."))

  it.effect("is announced once, and once more when it has one, after the events of its payment", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { operation } = yield* shop.pay()
      yield* shop.advance(20 * SECONDS)
      yield* shop.advance(2 * DAY)
      assert.strictEqual(shop.operation(operation).status, "decide")
      assert.deepStrictEqual(ofOperation(shop), ["operation.unresolved"])
      yield* shop.word(operation, PENDING, "look")
      assert.strictEqual(shop.operation(operation).status, "waiting")
      assert.deepStrictEqual(ofOperation(shop), ["operation.unresolved"])
      yield* shop.word(operation, approved(), "look")
      assert.deepStrictEqual(shop.newest.slice(-2), ["payment_intent.succeeded", "operation.resolved"])
      assert.deepStrictEqual(ofOperation(shop), ["operation.unresolved", "operation.resolved"])
    })
  )

  it.effect("is not, if the answer came in time, or the payer authenticates", () =>
    Effect.gen(function* () {
      for (const outcome of [approved(), DECLINED, REFUSED, NOT_EXECUTED]) {
        const shop = yield* opened
        yield* shop.paid(outcome)
        assert.isEmpty(ofOperation(shop))
      }
      const shop = yield* opened
      const { operation } = yield* shop.paid(CHALLENGE)
      yield* shop.advance(2 * DAY)
      yield* shop.word(operation, approved(), "look")
      assert.isEmpty(ofOperation(shop))
    })
  )

  it.effect("is announced again if the processor contradicts a decision", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { operation } = yield* shop.paid(MISMATCH)
      yield* shop.decided(operation, null)
      yield* shop.word(operation, approved(), "look")
      yield* shop.decided(operation, "ref_1")
      const [unresolved, resolved] = ["operation.unresolved", "operation.resolved"]
      assert.deepStrictEqual(ofOperation(shop), [unresolved, resolved, unresolved, resolved])
    })
  )
})

describe("a decision", () => {
  const undecided = Effect.gen(function* () {
    const shop = yield* opened
    const made = yield* shop.paid(MISMATCH)
    return { shop, ...made }
  })

  it.effect("operations.decide: that it happened settles the payment", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* undecided
      assert.isTrue(yield* shop.decided(operation, "ref_1"))
      assert.include(shop.operation(operation), { status: FINAL, resolved_by: "operator", reference: "ref_1" })
      assert.strictEqual(shop.payment(id).status, "succeeded")
      assert.isFalse(yield* shop.decided(operation, null))
    })
  )

  it.effect("that it did not lets the payer try again", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* undecided
      assert.isTrue(yield* shop.decided(operation, null))
      assert.strictEqual(shop.payment(id).status, "requires_payment_method")
    })
  )

  it.effect("that the processor contradicts later is open again", () =>
    Effect.gen(function* () {
      const { operation, shop } = yield* undecided
      yield* shop.decided(operation, null)
      yield* shop.word(operation, approved(), "look")
      assert.strictEqual(shop.operation(operation).status, "decide")
      // A repetition of the word does not overrule the person, and does not push out what was said before.
      for (let day = 0; day < 30; day++) {
        yield* shop.advance(DAY)
        yield* shop.word(operation, approved(), "look")
      }
      assert.strictEqual(shop.operation(operation).status, "decide")
      assert.deepStrictEqual(
        shop.evidence(operation).map(({ by, outcome }) => `${by} ${outcome}`),
        ["answer mismatch", "operator not_executed", "look approved"]
      )
    })
  )

  it.effect("operations.decide: is open to a person again after a contradiction, and gives back what was taken", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* undecided
      yield* shop.decided(operation, null)
      yield* shop.word(operation, approved(), "look")
      assert.isTrue(yield* shop.decided(operation, "ref_1"))
      assert.include(shop.operation(operation), { status: FINAL, resolved_by: "operator" })
      const reversal = shop.payment(id).pending_operation!
      assert.strictEqual(reversal.kind, "refund")
      yield* shop.word(reversal.id, approved())
      assert.isUndefined(shop.payment(id).pending_operation)
      assert.strictEqual(shop.payment(id).status, "requires_payment_method")
    })
  )

  it.effect("operations.looks: is asked about daily for 30 days, while the processor says neither", () =>
    Effect.gen(function* () {
      const { operation, shop } = yield* undecided
      yield* shop.decided(operation, null)
      assert.isTrue(shop.hidden(operation).asks)
      const decided = shop.now
      const looks: Array<number> = []
      for (let due = shop.dueAt(operation); due !== undefined; due = shop.dueAt(operation)) {
        yield* shop.advance(due - shop.now)
        yield* shop.word(operation, PENDING, "look")
        looks.push((due - decided) / DAY)
      }
      assert.deepStrictEqual(
        looks,
        Array.from({ length: 30 }, (_, i) => i + 1)
      )
      assert.include(shop.operation(operation), { status: FINAL, resolved_by: "operator" })
    })
  )

  for (const [says, reference, word] of [
    ["happened", "ref_1", approved()],
    ["not happened", null, NOT_EXECUTED],
    ["not happened", null, DECLINED],
    ["not happened", null, AUTHENTICATED],
    ["not happened", null, tooLate("succeeded")]
  ] as const) {
    it.effect(`operations.decide: that it has ${says} is confirmed by the word "${word.kind}", once`, () =>
      Effect.gen(function* () {
        const { operation, shop } = yield* undecided
        yield* shop.decided(operation, reference)
        const [before, events] = [shop.operation(operation), shop.newest.length]
        yield* shop.word(operation, word, "look")
        assert.isFalse(shop.hidden(operation).asks)
        assert.isUndefined(shop.dueAt(operation))
        assert.deepStrictEqual(shop.operation(operation), before)
        assert.strictEqual(shop.newest.length, events)
        assert.strictEqual(shop.evidence(operation).at(-1)!.outcome, word.kind)
        const length = shop.evidence(operation).length
        yield* shop.word(operation, approved(), "look")
        const isContradicted = reference === null
        assert.strictEqual(shop.operation(operation).status, isContradicted ? "decide" : FINAL)
        assert.strictEqual(shop.evidence(operation).length, length + (isContradicted ? 1 : 0))
      })
    )
  }

  for (const [kind, begins, same, other] of [
    ["capture", (id: string) => PaymentIntents.capture(id, {}), "succeeded", "canceled"],
    ["void", cancel, "canceled", "succeeded"]
  ] as const) {
    it.effect(`operations.decide: that a ${kind} has happened is confirmed by a payment that is ${same}`, () =>
      Effect.gen(function* () {
        for (const [now, asks] of [
          [same, false],
          [other, true]
        ] as const) {
          const shop = yield* opened
          const { id } = yield* shop.paid(approved(), { capture_method: "manual" })
          const operation = yield* shop.begun<{ readonly _tag: string }>(begins(id))
          yield* shop.word(operation, MISMATCH)
          assert.isTrue(yield* shop.decided(operation, "ref_1"))
          yield* shop.word(operation, tooLate(now), "look")
          assert.strictEqual(shop.operation(operation).status, asks ? "decide" : FINAL)
          assert.isFalse(shop.hidden(operation).asks)
        }
      })
    )
  }

  it.effect("operations.decide: that it happened is open again if it did not, and the payment stays as it is", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* undecided
      yield* shop.decided(operation, "ref_1")
      yield* shop.word(operation, NOT_EXECUTED, "look")
      assert.strictEqual(shop.operation(operation).status, "decide")
      assert.isTrue(yield* shop.decided(operation, null))
      assert.include(shop.operation(operation), { status: FINAL, resolved_by: "operator" })
      assert.strictEqual(shop.payment(id).status, "succeeded")
    })
  )

  it.effect("is not needed where the processor's word comes after all", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* undecided
      yield* shop.word(operation, approved(), "look")
      assert.strictEqual(shop.operation(operation).status, FINAL)
      assert.strictEqual(shop.payment(id).status, "succeeded")
    })
  )
})

describe("an approval after its payment was told otherwise", () => {
  const returning = Effect.gen(function* () {
    const shop = yield* opened
    const { id, operation } = yield* shop.paid(DECLINED)
    yield* shop.word(operation, approved(), "look")
    return { shop, id, operation, returned: shop.payment(id).pending_operation!.id }
  })

  for (const [terms, kind] of [
    [{}, "refund"],
    [{ capture_method: "manual" }, "void"]
  ] as const) {
    it.effect(`is given back by a ${kind}`, () =>
      Effect.gen(function* () {
        const shop = yield* opened
        const { id, operation } = yield* shop.paid(DECLINED, terms)
        yield* shop.word(operation, approved(), "look")
        const reversal = shop.payment(id).pending_operation!
        assert.strictEqual(reversal.kind, kind)
        assert.strictEqual(shop.payment(id).status, "requires_payment_method")
        yield* shop.word(reversal.id, approved())
        assert.strictEqual(shop.operation(reversal.id).status, FINAL)
        assert.isUndefined(shop.payment(id).pending_operation)
        assert.isEmpty(shop.all(REFUND))
        // The same word again gives nothing back.
        yield* shop.word(operation, approved(), "look")
        assert.isUndefined(shop.payment(id).pending_operation)
      })
    )
  }

  it.effect("operations.late: is given back once the return, not executed at first, is no longer pending", () =>
    Effect.gen(function* () {
      const { returned, shop } = yield* returning
      yield* shop.advance(20 * SECONDS)
      yield* shop.word(returned, NOT_EXECUTED, "look")
      assert.strictEqual(shop.operation(returned).status, "unresolved")
      yield* shop.word(returned, PENDING, "look")
      assert.strictEqual(shop.operation(returned).status, "waiting")
      yield* shop.word(returned, approved(), "look")
      assert.strictEqual(shop.operation(returned).status, FINAL)
    })
  )

  it.effect(
    "operations.late: is given back by no second return once a person says that the first has not happened",
    () =>
      Effect.gen(function* () {
        const shop = yield* opened
        const { id, operation } = yield* shop.paid(DECLINED)
        yield* shop.word(operation, approved(), "look")
        const reversal = shop.payment(id).pending_operation!.id
        yield* shop.word(reversal, MISMATCH)
        assert.strictEqual(shop.operation(reversal).status, "decide")
        assert.isTrue(yield* shop.decided(reversal, null))
        assert.strictEqual(shop.operation(reversal).status, FINAL)
        yield* shop.word(operation, approved(), "look")
        assert.isUndefined(shop.payment(id).pending_operation)
        // The person was wrong: the money may have been returned twice.
        yield* shop.word(reversal, approved(), "look")
        assert.strictEqual(shop.operation(reversal).status, "decide")
      })
  )

  it.effect("is no contradiction of its return, if that came too late", () =>
    Effect.gen(function* () {
      const { returned, shop } = yield* returning
      for (const word of [tooLate("canceled"), approved()]) {
        yield* shop.word(returned, word, "look")
        assert.strictEqual(shop.operation(returned).status, FINAL)
      }
    })
  )

  it.effect("operations.states: is left to a person if its return is declined after all", () =>
    Effect.gen(function* () {
      const { returned, shop } = yield* returning
      yield* shop.word(returned, approved())
      yield* shop.word(returned, DECLINED, "look")
      assert.strictEqual(shop.operation(returned).status, "decide")
    })
  )

  it.effect("operations.late: is left to a person if the payment was paid since", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id, operation } = yield* shop.paid(DECLINED)
      const second = yield* shop.begun(PaymentIntents.confirm(id, { payment_method: CARD }))
      yield* shop.word(second, approved())
      yield* shop.word(operation, approved(), "look")
      assert.strictEqual(shop.operation(operation).status, "decide")
      assert.strictEqual(shop.payment(id).status, "succeeded")
    })
  )
})

describe("operations.states: a word about what the processor has approved", () => {
  const none = Effect.succeed<string | undefined>(undefined)
  const KINDS: ReadonlyArray<
    readonly [
      name: string,
      terms: object,
      begins: (shop: Shop, id: string) => Effect.Effect<string | undefined, unknown>
    ]
  > = [
    ["authorize", {}, () => none],
    ["capture", { capture_method: "manual" }, (shop, id) => shop.begun(PaymentIntents.capture(id, {}))],
    ["void", { capture_method: "manual" }, (shop, id) => shop.begun(cancel(id))],
    ["refund", {}, (shop, id) => shop.begun(Refunds.create({ payment_intent: id }))]
  ]
  for (const [name, terms, begins] of KINDS) {
    const carriedOut = Effect.gen(function* () {
      const shop = yield* opened
      const { id, operation: paid } = yield* shop.paid(approved(), terms)
      const operation = (yield* Effect.orDie(begins(shop, id))) ?? paid
      yield* shop.word(operation, approved())
      assert.strictEqual(shop.operation(operation).status, FINAL)
      return { shop, id, operation, status: shop.payment(id).status }
    })

    for (const word of [NOT_EXECUTED, REFUSED, PENDING, approved(1)]) {
      it.effect(`${name}: "${word.kind}" counts no more`, () =>
        Effect.gen(function* () {
          const { operation, shop } = yield* carriedOut
          const { text } = shop
          yield* shop.word(operation, word, "look")
          assert.strictEqual(shop.text, text)
        })
      )
    }

    if (name === "refund") continue
    it.effect(`${name}: "declined" is left to a person, whatever the processor repeats`, () =>
      Effect.gen(function* () {
        const { id, operation, shop, status } = yield* carriedOut
        yield* shop.word(operation, DECLINED, "webhook")
        assert.strictEqual(shop.operation(operation).status, "decide")
        assert.strictEqual(shop.payment(id).status, status)
        assert.strictEqual(shop.payment(id).pending_operation?.id, operation)
        assert.strictEqual(shop.newest.at(-1), "operation.unresolved")
        for (const again of [DECLINED, NOT_EXECUTED]) yield* shop.word(operation, again, "look")
        assert.strictEqual(shop.operation(operation).status, "decide")
        assert.isTrue(yield* shop.decided(operation, null))
        assert.strictEqual(shop.payment(id).status, status)
        assert.isUndefined(shop.payment(id).pending_operation)
      })
    )
  }

  it.effect("refunds.states: a declined refund is left to a person, and fails by the next word, or the person's", () =>
    Effect.gen(function* () {
      for (const isDecided of [true, false]) {
        const shop = yield* opened
        const { id } = yield* shop.paid(approved())
        const operation = yield* shop.begun(Refunds.create({ payment_intent: id }))
        yield* shop.word(operation, approved())
        yield* shop.word(operation, DECLINED, "webhook")
        assert.strictEqual(shop.operation(operation).status, "decide")
        assert.strictEqual(shop.all(REFUND)[0]!.value.status, "succeeded")
        const before = shop.events.length
        if (isDecided) yield* shop.decided(operation, null)
        else yield* shop.word(operation, DECLINED, "look")
        assert.strictEqual(shop.operation(operation).status, FINAL)
        assert.include(shop.all(REFUND)[0]!.value, { status: "failed", failure_reason: "unknown" })
        assert.strictEqual(shop.payment(id).charges.data[0]!.amount_refunded, 0)
        assert.isUndefined(shop.payment(id).pending_operation)
        assert.deepStrictEqual(shop.newest.slice(before), ["refund.updated", "refund.failed", "operation.resolved"])
      }
    })
  )
})

describe("the evidence of an operation", () => {
  it.effect("is kept with the last twenty that differ", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { operation } = yield* shop.paid(PENDING)
      for (let i = 0; i < 30; i++) {
        yield* shop.word(operation, { kind: "mismatch", why: `Another payment ${i}.` }, "look")
      }
      assert.deepStrictEqual(
        shop.evidence(operation).map(({ detail }) => detail),
        Array.from({ length: 20 }, (_, i) => `Another payment ${i + 10}.`)
      )
    })
  )
})

describe("an operation to be decided, beside another one that the payment waits for,", () => {
  const beside = Effect.gen(function* () {
    const shop = yield* opened
    const { id, operation: first } = yield* shop.paid(DECLINED)
    const second = yield* shop.begun(PaymentIntents.confirm(id, { payment_method: CARD }))
    return { shop, id, first, second }
  })

  it.effect("operations.one: frees nothing but itself", () =>
    Effect.gen(function* () {
      const { first, id, second, shop } = yield* beside
      yield* shop.word(first, approved(), "look")
      assert.strictEqual(shop.operation(first).status, "decide")
      assert.strictEqual(shop.payment(id).pending_operation?.id, second)
      yield* shop.word(second, PENDING)
      assert.isTrue(yield* shop.decided(first, null))
      assert.strictEqual(shop.payment(id).status, "processing")
      yield* shop.word(second, approved(), "look")
      assert.strictEqual(shop.payment(id).status, "succeeded")
      assert.strictEqual(shop.operation(second).status, "final")
    })
  )

  it.effect("does not keep the payment from the other's outcome", () =>
    Effect.gen(function* () {
      const { first, id, second, shop } = yield* beside
      yield* shop.word(second, PENDING)
      yield* shop.word(first, approved(1), "look")
      assert.strictEqual(shop.operation(first).status, "decide")
      assert.isUndefined(shop.payment(id).pending_operation)
      yield* shop.word(second, DECLINED, "look")
      assert.strictEqual(shop.payment(id).status, "requires_payment_method")
      assert.isTrue(yield* shop.decided(first, null))
      assert.strictEqual(shop.payment(id).status, "requires_payment_method")
    })
  )

  for (const [word, outcome] of [
    ["declined", DECLINED],
    ["refused", REFUSED]
  ] as const) {
    it.effect(`operations.late: is given back after the other was ${word}, by a person's word or the next look`, () =>
      Effect.gen(function* () {
        for (const says of ["person", "look"]) {
          const { first, id, second, shop } = yield* beside
          yield* shop.word(first, approved(), "look")
          yield* shop.word(second, outcome)
          assert.strictEqual(shop.payment(id).status, "requires_payment_method")
          if (says === "person") assert.isTrue(yield* shop.decided(first, "ref_1"))
          else yield* shop.word(first, approved(), "look")
          assert.strictEqual(shop.operation(first).status, FINAL)
          const reversal = shop.payment(id).pending_operation!
          assert.strictEqual(reversal.kind, "refund")
          yield* shop.word(reversal.id, approved())
          assert.isUndefined(shop.payment(id).pending_operation)
        }
      })
    )
  }

  it.effect("operations.decide: has not happened for a person until the other has its outcome", () =>
    Effect.gen(function* () {
      const { first, id, second, shop } = yield* beside
      yield* shop.word(first, approved(), "look")
      const before = shop.operation(first)
      assert.isFalse(yield* shop.decided(first, "ref_1"))
      assert.deepStrictEqual(shop.operation(first), before)
      yield* shop.word(second, approved())
      assert.strictEqual(shop.payment(id).status, "succeeded")
      // The payment is paid by the other: what was taken twice is noted in the operation alone.
      assert.isTrue(yield* shop.decided(first, "ref_1"))
      assert.isUndefined(shop.payment(id).pending_operation)
    })
  )
})

describe("a session's payment", () => {
  const customer_details = { email: "jane@example.com" }
  const confirming = Effect.gen(function* () {
    const shop = yield* opened
    const { id: product } = yield* shop.run(Products.create({ name: "Tea" }))
    const { id: price } = yield* shop.run(Prices.create({ product, currency: "usd", unit_amount: 2000 }))
    const line_items = [{ price, quantity: 1 }]
    const created = CheckoutSessions.create({
      mode: "payment",
      success_url: "https://shop.example",
      line_items
    } as never)
    const { id } = yield* shop.run(created)
    const operation = yield* shop.begun(
      CheckoutSessions.confirm(id, { payment_method: CARD, customer_details } as never)
    )
    return { shop, id, operation }
  })

  it.effect("answers with the session", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* confirming
      assert.strictEqual(shop.value(CHECKOUT_SESSION, id)!.status, "open")
      yield* shop.word(operation, approved())
      assert.include(shop.value(CHECKOUT_SESSION, id), { status: "complete", payment_status: "paid" })
      assert.deepStrictEqual(shop.answer, [200, "checkout.session complete"])
    })
  )

  it.effect("without an outcome completes the session unpaid", () =>
    Effect.gen(function* () {
      const { id, shop } = yield* confirming
      yield* shop.advance(20 * SECONDS)
      assert.include(shop.value(CHECKOUT_SESSION, id), { status: "complete", payment_status: "unpaid" })
    })
  )

  it.effect("is given up by a void before a challenged session expires, by request", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* confirming
      yield* shop.word(operation, CHALLENGE)
      const released = yield* shop.begun(CheckoutSessions.expire(id))
      assert.strictEqual(shop.value(CHECKOUT_SESSION, id)!.status, "open")
      yield* shop.word(released, approved())
      assert.deepStrictEqual(shop.answer, [200, "checkout.session expired"])
      assert.strictEqual(shop.value(CHECKOUT_SESSION, id)!.status, "expired")
    })
  )

  it.effect("operations.adopted: expires with a void that was lost", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* confirming
      yield* shop.word(operation, CHALLENGE)
      const { payment_intent: payment } = shop.value(CHECKOUT_SESSION, id)!
      const lost = { id: "op_000000000000000000000001", isLost: true, kind: "void", amount: 2000 } as const
      const adopted = OperationOutcomes.adopt(PROCESSOR, { ...lost, payment: payment! }, approved(), "webhook")
      assert.isTrue(yield* shop.run(adopted, null))
      assert.strictEqual(shop.value(CHECKOUT_SESSION, id)!.status, "expired")
      assert.strictEqual(shop.payment(payment!).status, "canceled")
    })
  )

  it.effect("and by the timer, which tries again until the processor has given it up", () =>
    Effect.gen(function* () {
      const { id, operation, shop } = yield* confirming
      yield* shop.word(operation, CHALLENGE)
      yield* shop.advance(DAY)
      const { payment_intent } = shop.value(CHECKOUT_SESSION, id)!
      const pending = () => shop.payment(payment_intent!).pending_operation!.id
      yield* shop.word(pending(), NOT_EXECUTED)
      assert.strictEqual(shop.value(CHECKOUT_SESSION, id)!.status, "open")
      yield* shop.advance(60 * SECONDS)
      yield* shop.word(pending(), approved())
      assert.strictEqual(shop.value(CHECKOUT_SESSION, id)!.status, "expired")
      assert.strictEqual(shop.payment(payment_intent!).status, "canceled")
    })
  )
})

describe("operations.adopted: an operation that the processor has carried out by itself, or that was lost", () => {
  const LOST = "op_000000000000000000000001"

  const adopt = (
    shop: Shop,
    payment: string,
    part: Partial<Parameters<typeof OperationOutcomes.adopt>[1]> = {},
    outcome: Outcome = approved(part.amount ?? 500),
    processor: string = PROCESSOR
  ): Effect.Effect<boolean> => {
    const made = { id: "rf_1", isLost: part.id === LOST, kind: "refund", amount: 500, payment, ...part } as const
    return shop.run(OperationOutcomes.adopt(processor, made, outcome, "webhook"), null)
  }

  it.effect("a refund is one of Till's, once, with its events and the processor's reference", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* shop.paid(approved())
      const before = shop.events.length
      assert.isTrue(yield* adopt(shop, id, {}, { ...approved(500), reference: "rf_1" } as Outcome))
      assert.deepStrictEqual(shop.newest.slice(before), ["refund.created", "charge.refunded"])
      const [refund] = shop.all(REFUND)
      assert.deepInclude(refund!.value, { amount: 500, status: "succeeded", payment_intent: id, metadata: {} })
      assert.isFalse("reason" in refund!.value)
      const payment = shop.payment(id)
      assert.deepStrictEqual(
        [payment.status, payment.charges.data[0]!.amount_refunded, payment.amount_received],
        ["succeeded", 500, 2000]
      )
      const operation = shop.all(OPERATION).find(({ value }) => value.kind === "refund")!
      assert.deepInclude(operation.value, {
        status: FINAL,
        resolved_by: "webhook",
        reference: "rf_1",
        refund: refund!.value.id
      })
      assert.strictEqual(requestOf(operation).id, "rf_1")
      assert.isFalse(shop.timers.has(`operation:${operation.id}`))
      const { text } = shop
      assert.isFalse(yield* adopt(shop, id))
      assert.strictEqual(shop.text, text)
    })
  )

  it.effect("a pending refund reserves its amount, and settles by a later word", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* shop.paid(approved())
      yield* adopt(shop, id, {}, PENDING)
      const operation = shop.all(OPERATION).find(({ value }) => value.kind === "refund")!
      assert.deepStrictEqual([operation.value.status, shop.all(REFUND)[0]!.value.status], ["waiting", "pending"])
      assert.strictEqual(shop.payment(id).charges.data[0]!.amount_refunded, 500)
      yield* shop.word(operation.id, NOT_EXECUTED, "look")
      assert.deepStrictEqual(
        [shop.operation(operation.id).status, shop.all(REFUND)[0]!.value.status],
        [FINAL, "failed"]
      )
      assert.strictEqual(shop.payment(id).charges.data[0]!.amount_refunded, 0)
    })
  )

  it.effect("a refund of more than is left changes no amount: a person decides, and nothing begins before", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* shop.paid(approved())
      yield* adopt(shop, id, { amount: 1500 })
      yield* adopt(shop, id, { id: "rf_2", amount: 501 })
      const operation = shop.all(OPERATION).find(({ value }) => value.status === "decide")!
      assert.strictEqual(
        operation.value.outcome!.message,
        "The processor has refunded 501 usd, which is more than what is left."
      )
      assert.strictEqual(shop.payment(id).charges.data[0]!.amount_refunded, 1500)
      assert.strictEqual(shop.newest.at(-1), "operation.unresolved")
      const exit = yield* Effect.exit(shop.run(Refunds.create({ payment_intent: id })))
      assert.strictEqual(failure(exit), "OperationInProgress")
      assert.isTrue(yield* shop.decided(operation.id, "rf_2"))
      assert.isUndefined(shop.payment(id).pending_operation)
      assert.lengthOf(shop.all(REFUND), 1)
    })
  )

  it.effect("is not taken in from a processor that is not the payment's", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* shop.paid(approved())
      const { text } = shop
      assert.isFalse(yield* adopt(shop, id, {}, approved(500), "prc_000000000000000000000009"))
      assert.strictEqual(shop.text, text)
    })
  )

  it.effect("waits while another operation of the payment has no outcome", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* shop.paid(approved())
      const refund = yield* shop.begun(Refunds.create({ payment_intent: id, amount: 2000 }))
      const { text } = shop
      assert.isFalse(yield* adopt(shop, id))
      assert.strictEqual(shop.text, text)
      yield* shop.word(refund, REFUSED)
      assert.isTrue(yield* adopt(shop, id))
    })
  )

  it.effect("a capture that was lost keeps its id, and captures", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* shop.paid(approved(), { capture_method: "manual" })
      assert.isTrue(yield* adopt(shop, id, { id: LOST, kind: "capture", amount: 1200 }))
      assert.deepInclude(shop.operation(LOST), { kind: "capture", status: FINAL, amount: 1200 })
      assert.deepInclude(shop.payment(id), { status: "succeeded", amount_received: 1200 })
      assert.isFalse(yield* adopt(shop, id, { id: LOST, kind: "capture", amount: 1200 }))
      // A second one contradicts the payment.
      const other = LOST.replace("1", "2")
      yield* adopt(shop, id, { id: other, isLost: true, kind: "capture", amount: 1200 })
      assert.strictEqual(shop.operation(other).status, "decide")
    })
  )

  it.effect("a void that was lost cancels the payment", () =>
    Effect.gen(function* () {
      const shop = yield* opened
      const { id } = yield* shop.paid(approved(), { capture_method: "manual" })
      assert.isTrue(yield* adopt(shop, id, { id: LOST, kind: "void", amount: 2000 }))
      assert.strictEqual(shop.payment(id).status, "canceled")
      assert.strictEqual(shop.operation(LOST).status, FINAL)
    })
  )

  it.effect.prop(
    "whatever Till and the processor refund in turn, no more than the payment, and each reference once",
    [
      Schema.Array(
        Schema.Struct({
          by: Schema.Literals(["till", "processor"]),
          reference: Schema.Literals(["rf_1", "rf_2", "rf_3"]),
          amount: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1500 })),
          outcome: Schema.Literals(["approved", "pending", "refused"])
        })
      )
    ],
    ([deeds]) =>
      Effect.gen(function* () {
        const shop = yield* opened
        const { id } = yield* shop.paid(approved())
        for (const { amount, by, outcome, reference } of deeds) {
          const word = outcome === "approved" ? approved(amount) : outcome === "pending" ? PENDING : REFUSED
          if (by === "processor") {
            if (outcome !== "refused") yield* adopt(shop, id, { id: reference, amount }, word)
            continue
          }
          const begun = yield* Effect.exit(shop.run(Refunds.create({ payment_intent: id, amount }), shop.request()))
          if (Exit.isSuccess(begun)) yield* shop.word((begun.value as Begun).operation, word)
        }
        const refunds = shop.all(REFUND).map(({ value }) => value)
        const [charge] = shop.payment(id).charges.data
        const standing = refunds.filter(({ status }) => status !== "failed")
        assert.strictEqual(
          standing.reduce((sum, { amount }) => sum + amount, 0),
          charge!.amount_refunded
        )
        assert.isAtMost(charge!.amount_refunded, 2000)
        const references = shop.all(OPERATION).flatMap(({ hidden }) => hidden.idAtProcessor ?? [])
        assert.strictEqual(new Set(references).size, references.length)
      })
  )
})
