/**
 * The last check of the lifecycles (semantics payment_intents.invariants): an object that violates an invariant is not
 * written.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Charge } from "../../src/domain/Charge.ts"
import type { CheckoutSession } from "../../src/domain/CheckoutSession.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import * as CheckoutSessions from "../../src/payments/lifecycles/CheckoutSessions.ts"
import * as CheckoutSessionTransitions from "../../src/payments/lifecycles/CheckoutSessionTransitions.ts"
import { CHECKOUT_SESSION, PAYMENT_INTENT } from "../../src/payments/shared/Documents.ts"
import * as PaymentIntents from "../../src/payments/lifecycles/PaymentIntents.ts"
import * as PaymentIntentTransitions from "../../src/payments/lifecycles/PaymentIntentTransitions.ts"
import * as Prices from "../../src/payments/lifecycles/Prices.ts"
import * as Products from "../../src/payments/lifecycles/Products.ts"
import { MemoryAccount } from "../support/MemoryAccount.ts"

/** Writes `value`; fails with the message of the defect if the write dies. */
const written = <A>(account: MemoryAccount, value: A, save: (transaction: Transaction, value: A) => void) =>
  account.run(Effect.map(Transaction, (transaction) => save(transaction, value))).pipe(
    Effect.catchDefect((defect) => Effect.fail((defect as Error).message)),
    Effect.result
  )

/** A PaymentIntent over 2000 in each of the situations that the table starts from. */
const PAYMENTS = {
  bare: {},
  confirmable: { payment_method: "pm_card_visa" },
  challenged: { payment_method: "pm_card_3ds_required", confirm: true },
  processing: { payment_method: "pm_card_processing_success", confirm: true },
  held: { payment_method: "pm_card_visa", confirm: true, capture_method: "manual" },
  paid: { payment_method: "pm_card_visa", confirm: true },
  canceled: {}
} as const

const TAKEN_IFF_SUCCEEDED = "it has succeeded if and only if its latest charge is captured"
const RECEIVED = "what it received is what was captured"
const AUTHORIZED = "no more is captured than was authorized"
const REFUNDED = "no more is refunded than was captured"
const CAPTURABLE = "its whole amount can be captured if and only if it requires capture"
const PENDING = "its latest charge is pending if and only if it is processing"
const CANCELED = "it has a time of cancellation if and only if it is canceled"
const NEXT_ACTION = "it has a next action if and only if it requires one"
const HOLDER = "it has a customer to attach its payment method to if it is to do that"
const PAYMENT_METHOD = "it lacks a payment method if it requires one, and has one if it got further"

type PaymentRow = readonly [
  from: keyof typeof PAYMENTS,
  changes: Partial<PaymentIntent>,
  charge: Partial<Charge>,
  violated: string | null
]

/** Changes to a sound PaymentIntent and its latest charge, with the invariant that they violate, if any. */
const PAYMENT_ROWS: ReadonlyArray<PaymentRow> = [
  ["bare", { status: "succeeded" }, {}, TAKEN_IFF_SUCCEEDED],
  ["paid", {}, { captured: false }, TAKEN_IFF_SUCCEEDED],
  ["held", {}, { captured: true }, TAKEN_IFF_SUCCEEDED],
  ["bare", { amount_received: 1 }, {}, RECEIVED],
  ["paid", { amount_received: 1999 }, {}, RECEIVED],
  ["paid", {}, { amount_captured: 2001 }, RECEIVED],
  ["paid", { amount_received: 2001 }, { amount_captured: 2001 }, AUTHORIZED],
  ["paid", { amount_received: 1999 }, { amount_captured: 1999 }, null],
  ["paid", {}, { amount_refunded: -1 }, REFUNDED],
  ["paid", {}, { amount_refunded: 2001, refunded: true }, REFUNDED],
  ["paid", {}, { amount_refunded: 2001 }, REFUNDED],
  ["paid", {}, { amount_refunded: 2000 }, REFUNDED],
  ["paid", {}, { amount_refunded: 1999, refunded: true }, REFUNDED],
  ["held", {}, { refunded: true }, REFUNDED],
  ["paid", {}, { amount_refunded: 2000, refunded: true }, null],
  ["held", { amount_capturable: 1999 }, {}, CAPTURABLE],
  ["held", { amount: 1999 }, {}, CAPTURABLE],
  ["paid", { amount_capturable: 1 }, {}, CAPTURABLE],
  ["processing", { status: "requires_confirmation" }, {}, PENDING],
  ["confirmable", { status: "processing" }, {}, PENDING],
  ["processing", {}, { status: "failed" }, PENDING],
  ["canceled", { canceled_at: null }, {}, CANCELED],
  ["bare", { canceled_at: 1 }, {}, CANCELED],
  ["challenged", { next_action: null }, {}, NEXT_ACTION],
  ["challenged", { status: "requires_confirmation" }, {}, NEXT_ACTION],
  ["paid", { setup_future_usage: "off_session" }, {}, HOLDER],
  ["paid", { setup_future_usage: "off_session", customer: "cus_1" }, {}, null],
  ["confirmable", { status: "requires_payment_method" }, {}, PAYMENT_METHOD],
  ["bare", { status: "requires_confirmation" }, {}, PAYMENT_METHOD],
  ["paid", { payment_method: null }, {}, PAYMENT_METHOD],
  ["canceled", { payment_method: "pm_card_visa" }, {}, null]
]

describe("A PaymentIntent is written", () => {
  const paymentIn = Effect.fnUntraced(function* (account: MemoryAccount, from: keyof typeof PAYMENTS) {
    yield* account.run(PaymentIntents.create({ amount: 2000, currency: "usd", ...PAYMENTS[from] }))
    const { id } = account.all(PAYMENT_INTENT)[0]!
    if (from === "canceled") yield* account.run(PaymentIntents.cancel(id, {}))
    return account.value(PAYMENT_INTENT, id)!
  })
  const save = (account: MemoryAccount, paymentIntent: PaymentIntent) =>
    written(account, paymentIntent, PaymentIntentTransitions.save)

  it.effect.each(PAYMENT_ROWS)(
    "only if it is sound: %s with %j and a charge with %j",
    ([from, changes, charge, name]) =>
      Effect.gen(function* () {
        const account = new MemoryAccount()
        const sound = yield* paymentIn(account, from)
        const [latest] = sound.charges.data
        const charges = { ...sound.charges, data: latest === undefined ? [] : [{ ...latest, ...charge }] }
        const before = account.text
        const outcome = yield* save(account, { ...sound, charges, ...changes })
        if (name === null) return assert.strictEqual(outcome._tag, "Success")
        assert.deepInclude(outcome, { _tag: "Failure", failure: `${sound.id} would not be sound: ${name}` })
        assert.strictEqual(account.text, before)
      })
  )

  it.effect("only if no two of its charges have succeeded", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const paid = yield* paymentIn(account, "paid")
      const [charge] = paid.charges.data
      const again = { ...paid, charges: { ...paid.charges, data: [charge!, { ...charge!, id: "ch_another" }] } }
      assert.deepInclude(yield* save(account, again), {
        failure: `${paid.id} would not be sound: at most one of its charges has succeeded`
      })
    })
  )
})

/** Sessions over 500, nothing, or an amount not chosen yet, in each situation of the table. */
const SESSIONS = {
  open: { total: 500, ui_mode: "hosted", pay: false },
  paid: { total: 500, ui_mode: "hosted", pay: true },
  embedded: { total: 500, ui_mode: "embedded", pay: false },
  free: { total: 0, ui_mode: "hosted", pay: false },
  given: { total: 0, ui_mode: "hosted", pay: true },
  undecided: { total: null, ui_mode: "hosted", pay: false }
} as const

const PAGE = "it has a page if and only if it is hosted and open"
const CLIENT_SECRET = "it has a client secret if and only if it is not hosted"
const PAYMENT_INTENT_IFF = "it has a PaymentIntent if and only if there is something to pay, and it is known how much"
const NO_PAYMENT = "it needs no payment if and only if it is complete and nothing was to be paid"

const SESSION_ROWS: ReadonlyArray<readonly [keyof typeof SESSIONS, Partial<CheckoutSession>, string]> = [
  ["open", { url: null }, PAGE],
  ["paid", { url: "https://till.example/checkout" }, PAGE],
  ["embedded", { url: "https://till.example/checkout" }, PAGE],
  ["open", { client_secret: "cs_secret" }, CLIENT_SECRET],
  ["embedded", { client_secret: null }, CLIENT_SECRET],
  ["open", { payment_intent: null }, PAYMENT_INTENT_IFF],
  ["free", { payment_intent: "pi_1" }, PAYMENT_INTENT_IFF],
  ["undecided", { payment_intent: "pi_1" }, PAYMENT_INTENT_IFF],
  [
    "undecided",
    { status: "complete", payment_status: "no_payment_required", url: null },
    "it completes with a payment if the payer chooses an amount"
  ],
  ["open", { payment_status: "no_payment_required" }, NO_PAYMENT],
  ["free", { payment_status: "no_payment_required" }, NO_PAYMENT],
  ["paid", { payment_status: "no_payment_required" }, NO_PAYMENT],
  ["given", { payment_status: "paid" }, NO_PAYMENT],
  ["open", { payment_status: "paid" }, "it is paid only if it is complete"],
  ["open", { amount_subtotal: 501 }, "there are no discounts, taxes and costs of shipping"],
  ["paid", { customer_creation: "always" }, "it has a customer if it is complete and was to create one"]
]

describe("A Checkout Session is written", () => {
  it.effect.each(SESSION_ROWS)("only if it is sound: %s with %j", ([from, changes, name]) =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const { pay, total, ui_mode } = SESSIONS[from]
      const product = yield* account.run(Products.create({ name: "Book" }))
      const terms = { currency: "usd", product: product.id }
      const { id: price } = yield* account.run(Prices.create({ ...terms, custom_unit_amount: { enabled: true } }))
      const { id } = yield* account.run(
        CheckoutSessions.create({
          mode: "payment",
          line_items: [total === null ? { price } : { price_data: { ...terms, unit_amount: total } }],
          success_url: "https://shop.example/thanks",
          ui_mode
        })
      )
      const payment = { payment_method: "pm_card_visa", customer_details: { email: "payer@example.com" } }
      if (pay) yield* account.run(CheckoutSessions.confirm(id, payment))
      const { hidden, value } = account.all(CHECKOUT_SESSION)[0]!
      const save = (transaction: Transaction, session: CheckoutSession) =>
        CheckoutSessionTransitions.save(transaction, session, hidden)
      assert.strictEqual((yield* written(account, value, save))._tag, "Success")
      assert.deepInclude(yield* written(account, { ...value, ...changes }, save), {
        _tag: "Failure",
        failure: `${id} would not be sound: ${name}`
      })
    })
  )
})
