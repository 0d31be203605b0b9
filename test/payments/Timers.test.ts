/** Settlement and expiry on the real engine: the scheduler turns due timers into commands, each on time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import type { ApiKey } from "../../src/domain/ApiKey.ts"
import type { Refund } from "../../src/domain/Refund.ts"
import { testCardOf } from "../../src/domain/TestCards.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import type { Document } from "../../src/engine/log/Document.ts"
import type { Transaction } from "../../src/engine/actor/Transaction.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as ApiKeys from "../../src/payments/merchants/ApiKeys.ts"
import * as CheckoutSessions from "../../src/payments/lifecycles/CheckoutSessions.ts"
import * as Merchants from "../../src/payments/merchants/Merchants.ts"
import * as PaymentIntents from "../../src/payments/lifecycles/PaymentIntents.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import { isLive } from "../../src/payments/shared/AccountIds.ts"
import { type CardProcessor, Processors } from "../../src/payments/processing/Processor.ts"
import * as Products from "../../src/payments/lifecycles/Products.ts"
import * as Refunds from "../../src/payments/lifecycles/Refunds.ts"
import { simulator } from "../../src/payments/processing/Simulator.ts"
import { tokenized } from "../support/fixtures/CardData.ts"
import * as MemoryEngine from "../support/MemoryEngine.ts"
import { accepted, atOnce } from "../support/Outcomes.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"

const ACCOUNT = "mer_000000000000000000000000:test"

const Till = Layer.provideMerge(
  MemoryEngine.engine(),
  Layer.succeed(PaymentsConfig, paymentsConfig({ authorizationHoldSeconds: 60 }))
)

const run = <A, E>(command: Effect.Effect<A, E, Transaction | PaymentsConfig | Processors>) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const services = yield* Effect.context<PaymentsConfig | Processors>()
    return yield* accounts.run(ACCOUNT, Effect.provideContext(command, services))
  })

const create = (parameters: Partial<Parameters<typeof PaymentIntents.create>[0]>) =>
  Effect.map(
    accepted(run(PaymentIntents.create({ amount: 2000, currency: "usd", confirm: true, ...parameters }))),
    ({ id }) => id
  )

/** Returns the status that a client sees, and the types of all events since the first. */
const seen = Effect.fnUntraced(function* (id: string) {
  const accounts = yield* Accounts
  const document = yield* accounts.read(ACCOUNT, id)
  const { events } = yield* accounts.events(ACCOUNT, { limit: 100 })
  const status =
    document?.deleted === false ? (document.value as unknown as { readonly status: string }).status : undefined
  return [status, ...events.map(({ type }) => type).toReversed()]
})

describe("Timers", () => {
  it.effect("payment_intents.processing: settle a payment two seconds after it started", () =>
    Effect.gen(function* () {
      const id = yield* create({ payment_method: "pm_card_processing_success" })
      const started = ["payment_intent.created", "charge.pending", "payment_intent.processing"]
      yield* TestClock.adjust("1999 millis")
      assert.deepStrictEqual(yield* seen(id), ["processing", ...started])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* seen(id), ["succeeded", ...started, "charge.succeeded", "payment_intent.succeeded"])
    }).pipe(Effect.provide(Till))
  )

  it.effect("release a held amount when the hold expires", () =>
    Effect.gen(function* () {
      const id = yield* create({ payment_method: "pm_card_visa", capture_method: "manual" })
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual((yield* seen(id))[0], "requires_capture")
      yield* TestClock.adjust("1 seconds")
      assert.deepStrictEqual((yield* seen(id)).slice(4), ["charge.expired", "payment_intent.canceled"])
    }).pipe(Effect.provide(Till))
  )

  it.effect("settle refunds two seconds after they started, each by its card", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const refund = Effect.fnUntraced(function* (payment_method: string) {
        const payment_intent = yield* create({ payment_method })
        return (yield* atOnce(run(Refunds.create({ payment_intent })))).id
      })
      const statusOf = (id: string) =>
        Effect.map(accounts.read(ACCOUNT, id), (document) =>
          document?.deleted === false ? (document.value as Refund).status : undefined
        )
      const ids = [yield* refund("pm_card_pendingRefund"), yield* refund("pm_card_refundFail")]
      const statuses = Effect.forEach(ids, statusOf)
      yield* TestClock.adjust("1999 millis")
      assert.deepStrictEqual(yield* statuses, ["pending", "succeeded"])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* statuses, ["succeeded", "failed"])
      const { events } = yield* accounts.events(ACCOUNT, { limit: 4 })
      assert.deepStrictEqual(events.map(({ type }) => type).toReversed(), [
        "refund.updated",
        "charge.refunded",
        "refund.updated",
        "refund.failed"
      ])
    }).pipe(Effect.provide(Till))
  )

  // Semantics keys.live_processor.
  it.effect("leave live payments and refunds as they are while their processor is gone, without a word", () => {
    // As from one start of the service to the next.
    let configured: CardProcessor | null = simulator
    const of = (account: string) => (isLive(account) ? configured : simulator)
    const processors = { of, atOnce: of, byId: () => null, mayBegin: () => true }
    const logged: Array<unknown> = []
    const Live = MemoryEngine.engineWith(Layer.succeed(Processors, processors)).pipe(
      Layer.provideMerge(Layer.succeed(PaymentsConfig, paymentsConfig({ liveProcessor: "simulator" }))),
      Layer.provideMerge(Logger.layer([Logger.make(({ message }) => logged.push(message))]))
    )
    return Effect.gen(function* () {
      const accounts = yield* Accounts
      const live = "mer_000000000000000000000000:live"
      const services = yield* Effect.context<PaymentsConfig | Processors>()
      const runLive = <A, E>(command: Effect.Effect<A, E, Transaction | PaymentsConfig | Processors>) =>
        accounts.run(live, Effect.provideContext(command, services))
      const pay = (number: string) => {
        const payment_method_data = tokenized({ type: "card", card: { number, exp_month: 12, exp_year: 2034 } })
        const payment = { amount: 2000, currency: "usd", confirm: true, payment_method_data }
        return Effect.map(accepted(runLive(PaymentIntents.create(payment))), ({ id }) => id)
      }
      const statuses = (ids: ReadonlyArray<string>) =>
        Effect.forEach(ids, (id) =>
          Effect.map(accounts.read(live, id), (document) => (document as Document<Refund>).value.status)
        )
      const failing = yield* pay("4000000000006025")
      const paying = yield* pay("4000000000006017")
      const payment_intent = yield* pay(testCardOf("pm_card_pendingRefund")!.numbers[0])
      const { id: refund } = yield* atOnce(runLive(Refunds.create({ payment_intent })))
      const all = [failing, paying, refund]
      configured = null
      yield* TestClock.adjust("2 days")
      assert.deepStrictEqual(yield* statuses(all), ["processing", "processing", "pending"])
      // Other payments are served while these wait.
      const id = yield* create({ payment_method: "pm_card_processing_success" })
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* seen(id))[0], "succeeded")
      configured = simulator
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* statuses(all), ["requires_payment_method", "succeeded", "succeeded"])
      assert.deepStrictEqual(logged, [])
    }).pipe(Effect.provide(Live))
  })

  it.effect("leave a captured payment alone", () =>
    Effect.gen(function* () {
      const id = yield* create({ payment_method: "pm_card_visa", capture_method: "manual" })
      yield* run(PaymentIntents.capture(id, {}))
      const before = yield* seen(id)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* seen(id), before)
      // Timers that fire late change nothing.
      yield* run(PaymentIntents.expireHold(id))
      yield* run(PaymentIntents.settle(id))
      assert.deepStrictEqual(yield* seen(id), before)
    }).pipe(Effect.provide(Till))
  )

  const openSession = Effect.gen(function* () {
    const product = yield* run(Products.create({ name: "Book" }))
    const price_data = { currency: "usd", product: product.id, unit_amount: 500 }
    const success_url = "https://shop.example/thanks"
    return yield* run(CheckoutSessions.create({ mode: "payment", line_items: [{ price_data }], success_url }))
  })

  it.effect("expire a Checkout Session and its payment when they are due", () =>
    Effect.gen(function* () {
      const { id, payment_intent } = yield* openSession
      const before = ["product.created", "payment_intent.created"]
      yield* TestClock.adjust("86399 seconds")
      assert.deepStrictEqual(yield* seen(id), ["open", ...before])
      yield* TestClock.adjust("1 seconds")
      const after = [...before, "payment_intent.canceled", "checkout.session.expired"]
      assert.deepStrictEqual(yield* seen(id), ["expired", ...after])
      assert.deepStrictEqual((yield* seen(payment_intent!))[0], "canceled")
    }).pipe(Effect.provide(Till))
  )

  it.effect("leave a completed Checkout Session alone", () =>
    Effect.gen(function* () {
      const { id } = yield* openSession
      const customer_details = { email: "a@b.co" }
      yield* run(CheckoutSessions.confirm(id, { payment_method: "pm_card_visa", customer_details }))
      const before = yield* seen(id)
      yield* TestClock.adjust("2 days")
      assert.deepStrictEqual(yield* seen(id), before)
    }).pipe(Effect.provide(Till))
  )

  it.effect("end the grace period of a rolled API key, also in the key's entry (semantics keys.roll)", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const { merchant } = yield* accounts.run(INSTALLATION, Merchants.createWithKeys("A merchant"))
      const { value: apiKey } = yield* accounts.run(
        INSTALLATION,
        ApiKeys.issue(merchant.id, { type: "secret", livemode: true })
      )
      yield* accounts.run(INSTALLATION, ApiKeys.roll(apiKey.id, { expiresIn: 60 }))
      const status = Effect.map(accounts.read(INSTALLATION, apiKey.id), (document) =>
        document?.deleted === false ? (document.value as ApiKey).status : undefined
      )
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(yield* status, "rolling")
      yield* TestClock.adjust("1 seconds")
      assert.strictEqual(yield* status, "expired")
    }).pipe(Effect.provide(Till))
  )
})
