/** Metadata of all objects that have it: an update merges, and the result has a bound (semantics metadata.limits). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { MetadataParameter } from "../../src/domain/Metadata.ts"
import type { Transaction } from "../../src/engine/actor/Transaction.ts"
import * as CheckoutSessions from "../../src/payments/lifecycles/CheckoutSessions.ts"
import * as Customers from "../../src/payments/lifecycles/Customers.ts"
import * as PaymentIntents from "../../src/payments/lifecycles/PaymentIntents.ts"
import type { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import * as Prices from "../../src/payments/lifecycles/Prices.ts"
import type { Processors } from "../../src/payments/processing/Processor.ts"
import * as Products from "../../src/payments/lifecycles/Products.ts"
import * as Refunds from "../../src/payments/lifecycles/Refunds.ts"
import * as WebhookEndpoints from "../../src/payments/webhooks/WebhookEndpoints.ts"
import { MemoryAccount } from "../support/MemoryAccount.ts"
import { accepted, atOnce } from "../support/Outcomes.ts"

type Lifecycle<A> = Effect.Effect<A, object, Transaction | PaymentsConfig | Processors>

interface Kind {
  readonly create: (metadata: MetadataParameter) => Lifecycle<{ readonly id: string }>
  readonly update: (
    id: string,
    parameters: { readonly metadata: MetadataParameter }
  ) => Lifecycle<{
    readonly metadata: Readonly<Record<string, string>>
  }>
}

const product = Products.create({ name: "Book" })

const KINDS: Readonly<Record<string, Kind>> = {
  customer: { create: (metadata) => Customers.create({ metadata }), update: Customers.update },
  payment_intent: {
    create: (metadata) => accepted(PaymentIntents.create({ amount: 1, currency: "usd", metadata })),
    update: PaymentIntents.update
  },
  refund: {
    create: Effect.fnUntraced(function* (metadata) {
      const payment = { amount: 1, currency: "usd", payment_method: "pm_card_visa", confirm: true }
      const { id } = yield* accepted(PaymentIntents.create(payment))
      return yield* atOnce(Refunds.create({ payment_intent: id, metadata }))
    }),
    update: Refunds.update
  },
  "checkout.session": {
    create: Effect.fnUntraced(function* (metadata) {
      const price_data = { currency: "usd", product: (yield* product).id, unit_amount: 500 }
      const success_url = "https://shop.example/thanks"
      return yield* CheckoutSessions.create({ mode: "payment", line_items: [{ price_data }], success_url, metadata })
    }),
    update: CheckoutSessions.update
  },
  product: { create: (metadata) => Products.create({ name: "Book", metadata }), update: Products.update },
  price: {
    create: (metadata) =>
      Effect.flatMap(product, ({ id }) => Prices.create({ product: id, currency: "usd", unit_amount: 500, metadata })),
    update: Prices.update
  },
  webhook_endpoint: {
    create: (metadata) =>
      Effect.map(
        WebhookEndpoints.create({ url: "https://shop.example", enabled_events: ["*"], metadata }, "2026-03-09"),
        ({ value }) => value
      ),
    update: WebhookEndpoints.update
  }
}

const fifty = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, "v"]))

describe("Metadata", () => {
  it.effect.each(Object.keys(KINDS))("has fifty keys at most, after an update too: %s", (name) =>
    Effect.gen(function* () {
      const { create, update } = KINDS[name]!
      const account = new MemoryAccount()
      const { id } = yield* account.run(create({ ...fifty, dropped: null }))
      const before = account.text
      const error = yield* Effect.flip(account.run(update(id, { metadata: { k50: "v" } })))
      assert.include(error, { _tag: "ParameterInvalid", param: "metadata" })
      assert.strictEqual(account.text, before)
      const { metadata } = yield* account.run(update(id, { metadata: { k0: null, k50: "v" } }))
      assert.lengthOf(Object.keys(metadata), 50)
    })
  )
})
