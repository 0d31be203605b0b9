/**
 * Payments keeps these kinds of documents in an account. Each says what lists filter it by, and what it hides.
 *
 * A field is added, renamed, dropped or retyped as follows (semantics 9.27); what was written stays as it is.
 * 1. Change the schema in `src/domain`, or that of the hidden part here, and whatever writes such documents.
 * 2. Give the kind one more step, which adds what older documents lack. If Customer gets `tax_id: string | null`, it is
 *    `steps: [{ value: adding({ tax_id: null }) }]`; `src/engine/views/DocumentFormats.ts` has `renaming` and `inside`,
 *    and any pure function will do. All changes between two releases can share one step. A released step never changes.
 * 3. Give a step to every kind that holds copies of the document, too: to PAYMENT_INTENT for a change of Charge,
 *    `{ value: inside("charges", inside("data", adding({ fee: null }))) }`.
 * 4. Keep steps from what `labels` derives from, and labels from changing: lists find documents by those that were
 *    written.
 * 5. Run `npm test -- test/payments/Formats.prop.test.ts test/corpus`. It fails until each document that a release may
 *    have written fits today's schemas, and until there is a migration, maybe an empty one, by which that release
 *    refuses what this one has written.
 */
import { Effect, Schema } from "effect"
import type { Address } from "../domain/Address.ts"
import { addressOf, billingDetailsOf } from "../domain/Address.ts"
import { Charge } from "../domain/Charge.ts"
import { CheckoutSession, CustomerDetails, LineItem, PaymentIntentData } from "../domain/CheckoutSession.ts"
import { Customer } from "../domain/Customer.ts"
import type { ResourceKind } from "../domain/Errors.ts"
import { ResourceMissing } from "../domain/Errors.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { PaymentIntent } from "../domain/PaymentIntent.ts"
import { PaymentMethod } from "../domain/PaymentMethod.ts"
import { Price } from "../domain/Price.ts"
import { Product } from "../domain/Product.ts"
import { Refund } from "../domain/Refund.ts"
import { WebhookEndpoint } from "../domain/WebhookEndpoint.ts"
import type { Document, Identified, JsonObject, Kind } from "../engine/log/Document.ts"
import { inside } from "../engine/views/DocumentFormats.ts"
import { Transaction } from "../engine/actor/Transaction.ts"
import { FILTERED_PAYMENT_INTENT, searchable, SEARCHED_CUSTOMER } from "./Search.ts"
import * as Tallies from "./Tallies.ts"

/** Such a kind says what its documents are made of. */
export interface Kept<Value extends Identified, Hidden = undefined> extends Kind<Value, Hidden> {
  readonly shape: {
    readonly value: Schema.Codec<Value>
    /** Absent if nothing is hidden. */
    readonly hidden?: Schema.Codec<Hidden>
  }
}

/** Requests name documents of such a kind by their ids. */
export interface Resource<Value extends Identified, Hidden = undefined> extends Kept<Value, Hidden> {
  /** Messages call it so. */
  readonly resourceKind: ResourceKind
}

/**
 * Finds the document that a parameter refers to; `id` for the object of the path. Fails with `ResourceMissing`, which
 * names the parameter (semantics T17).
 */
export const findDocument = Effect.fnUntraced(function* <A extends Identified, H>(
  kind: Resource<A, H>,
  id: string,
  param: string = "id"
): Effect.fn.Return<Document<A, H>, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const document = yield* transaction.get(kind, id)
  if (document === undefined) return yield* new ResourceMissing({ kind: kind.resourceKind, id, param })
  return document
})

export const CUSTOMER: Resource<Customer> = {
  name: "customer",
  resourceKind: "Customer",
  shape: { value: Customer },
  prefix: PREFIXES.customer,
  labels: ({ email }) => (email === null ? {} : { email: email.toLowerCase() }),
  search: searchable(SEARCHED_CUSTOMER)
}

/** A payer agreed to this by passing an authentication, which holds for nothing else (semantics 9.3). */
export const PassedAuthentication = Schema.Struct({
  paymentMethod: Schema.String,
  /** At most this may be charged by it. Minor units. */
  amount: Schema.Int,
  /** In lower case. */
  currency: Schema.String
})
export type PassedAuthentication = typeof PassedAuthentication.Type

/** A PaymentIntent keeps this beside what it shows. */
export const PaymentIntentHidden = Schema.Struct({
  /**
   * The authentication that the payer has passed, while the server has yet to confirm again (semantics I-12). Terms
   * that it does not cover void it for good.
   */
  authentication: Schema.optionalKey(PassedAuthentication),
  /** The Checkout Session that it belongs to (semantics I-18). Lasts. */
  checkoutSession: Schema.optionalKey(Schema.String)
})
export type PaymentIntentHidden = typeof PaymentIntentHidden.Type

/**
 * People's details as they were before semantics 9.6: an unknown address could be one of six nulls, and a country was
 * kept in the letters that it was sent in.
 */
const withAddressOf96 = (older: JsonObject): JsonObject => {
  const address = older["address"] as Address | null | undefined
  return address == null ? older : { ...older, address: addressOf(address) }
}

/** Charges of that time had no billing details at all where none were known. */
const withBillingDetailsOf96 = (older: JsonObject): JsonObject =>
  older["billing_details"] === null
    ? { ...older, billing_details: billingDetailsOf({}) }
    : inside("billing_details", withAddressOf96)(older)

export const PAYMENT_INTENT: Resource<PaymentIntent, PaymentIntentHidden | undefined> = {
  name: "payment_intent",
  steps: [
    {
      value: (older) => ({
        ...inside("charges", inside("data", withBillingDetailsOf96))(older),
        application_fee_amount: null,
        setup_future_usage: null
      }),
      // Of an authentication only the payment method was kept, without the amount: it counts for nothing (semantics
      // 9.3).
      hidden: (older) => {
        const { checkoutSession } = (older ?? {}) as PaymentIntentHidden
        return checkoutSession === undefined ? undefined : { checkoutSession }
      }
    }
  ],
  resourceKind: "PaymentIntent",
  shape: { value: PaymentIntent, hidden: Schema.UndefinedOr(PaymentIntentHidden) },
  prefix: PREFIXES.payment_intent,
  foundById: true,
  labels: ({ customer }) => (customer === null ? {} : { customer }),
  search: searchable(FILTERED_PAYMENT_INTENT),
  tallies: Tallies.ofPaymentIntent
}

export const CHARGE: Resource<Charge> = {
  name: "charge",
  steps: [{ value: withBillingDetailsOf96 }],
  resourceKind: "Charge",
  shape: { value: Charge },
  prefix: PREFIXES.charge,
  labels: ({ customer, payment_intent }) => (customer === null ? { payment_intent } : { payment_intent, customer }),
  tallies: Tallies.ofCharge
}

export const REFUND: Resource<Refund> = {
  name: "refund",
  resourceKind: "Refund",
  shape: { value: Refund },
  prefix: PREFIXES.refund,
  labels: ({ payment_intent }) => ({ payment_intent }),
  tallies: Tallies.ofRefund
}

export const PaymentMethodHidden = Schema.Struct({
  /** The processor knows the card by it; it is never the card's number. */
  token: Schema.String,
  /** Whether it was a customer's, and is of no use any more (semantics §2.7). */
  detached: Schema.Boolean
})
export type PaymentMethodHidden = typeof PaymentMethodHidden.Type

export const PAYMENT_METHOD: Resource<PaymentMethod, PaymentMethodHidden> = {
  name: "payment_method",
  steps: [
    {
      value: withBillingDetailsOf96,
      // Nobody could attach one, let alone detach it.
      hidden: (older) => ({ ...(older as PaymentMethodHidden), detached: false })
    }
  ],
  resourceKind: "PaymentMethod",
  shape: { value: PaymentMethod, hidden: PaymentMethodHidden },
  prefix: PREFIXES.payment_method,
  labels: ({ customer }) => (customer === null ? {} : { customer })
}

/** All that one customer holds, in the order in which it was attached (semantics 9.18). */
export const HeldPaymentMethods = Schema.Struct({
  /** `<customer>_payment_methods` */
  id: Schema.String,
  data: Schema.Array(Schema.String)
})
export type HeldPaymentMethods = typeof HeldPaymentMethods.Type

export const HELD_PAYMENT_METHODS: Kept<HeldPaymentMethods> = {
  name: "customer.payment_methods",
  shape: { value: HeldPaymentMethods }
}

export const heldPaymentMethodsId = (customerId: string): string => `${customerId}_payment_methods`

/** A product keeps this beside what it shows. */
export const ProductHidden = Schema.Struct({
  /** Whether it ever got a price. Prices are never deleted, so it has one from then on (semantics PR2, PR3). */
  hasPrice: Schema.Boolean
})
export type ProductHidden = typeof ProductHidden.Type

export const PRODUCT: Resource<Product, ProductHidden> = {
  name: "product",
  resourceKind: "Product",
  shape: { value: Product, hidden: ProductHidden },
  prefix: PREFIXES.product,
  labels: ({ active }) => ({ active: String(active) })
}

export const PRICE: Resource<Price> = {
  name: "price",
  resourceKind: "Price",
  shape: { value: Price },
  prefix: PREFIXES.price,
  labels: ({ active, currency, product, type }) => ({ active: String(active), currency, product, type })
}

/** Who has a lookup key: found by the key, because a key belongs to one price at most (semantics PR17). */
export const LookupKeyEntry = Schema.Struct({
  /** `lookup_key:<key>` */
  id: Schema.String,
  price: Schema.String
})
export type LookupKeyEntry = typeof LookupKeyEntry.Type

export const LOOKUP_KEY: Kept<LookupKeyEntry> = { name: "lookup_key", shape: { value: LookupKeyEntry } }

/** The amount that the payer of a session chooses, of one of its lines (semantics 9.14). In minor units. */
export const CustomAmount = Schema.Struct({
  /** The line's place in the cart, from 0. */
  line: Schema.Int,
  /** The other lines come to this. */
  others: Schema.Int,
  /** The payer chooses at least this, which is more than 0. */
  minimum: Schema.Int,
  /** And at most this; null if only the cap of one payment counts. */
  maximum: Schema.NullOr(Schema.Int),
  /** The PaymentIntent that is yet to be created begins with this; null if there is one. */
  paymentIntentData: Schema.NullOr(PaymentIntentData)
})
export type CustomAmount = typeof CustomAmount.Type

/** A Checkout Session keeps this beside what it shows. */
export const CheckoutSessionHidden = Schema.Struct({
  /** The payer has entered this, and the payment has yet to go through. */
  collected: Schema.NullOr(CustomerDetails),
  /** Whether the payment that completed it is still processing. */
  awaitsSettlement: Schema.Boolean,
  /** How many attempts to pay have failed, since it last began to take payments (semantics 9.29). */
  failedAttempts: Schema.Int,
  /** It takes no payments until then, in milliseconds of the account's clock; null while it does. */
  closedUntil: Schema.NullOr(Schema.Int),
  /** Null if the payer has no amount to choose. */
  customAmount: Schema.NullOr(CustomAmount)
})
export type CheckoutSessionHidden = typeof CheckoutSessionHidden.Type

export const CHECKOUT_SESSION: Resource<CheckoutSession, CheckoutSessionHidden> = {
  name: "checkout.session",
  steps: [
    {
      value: inside("customer_details", withAddressOf96),
      // The fee has moved to the PaymentIntent of later sessions (semantics 9.16). No payer chose an amount (9.14).
      hidden: (older) => {
        const { awaitsSettlement, collected } = older as CheckoutSessionHidden
        const kept = collected && { ...collected, address: addressOf(collected.address) }
        return { collected: kept, awaitsSettlement, failedAttempts: 0, closedUntil: null, customAmount: null }
      }
    }
  ],
  resourceKind: "Checkout Session",
  shape: { value: CheckoutSession, hidden: CheckoutSessionHidden },
  prefix: PREFIXES["checkout.session"],
  foundById: true,
  labels: ({ status }) => ({ status })
}

/**
 * All lines of one Checkout Session, in their order: always read together, as a part of it. Written once, but for the
 * amount that the payer chooses (semantics 9.14).
 */
export const LineItems = Schema.Struct({ id: Schema.String, data: Schema.Array(LineItem) })
export type LineItems = typeof LineItems.Type

export const LINE_ITEMS: Resource<LineItems> = {
  name: "checkout.session.line_items",
  resourceKind: "Checkout Session",
  shape: { value: LineItems }
}

export const lineItemsId = (checkoutSessionId: string): string => `${checkoutSessionId}_line_items`

export const WebhookEndpointHidden = Schema.Struct({
  /** The signing secret, encrypted (semantics W2). */
  sealedSecret: Schema.String,
  /** The secret that was in its place before, if it was rolled with a grace. */
  previous: Schema.optionalKey(
    Schema.Struct({
      sealedSecret: Schema.String,
      /** From then on it does not sign any more. Milliseconds, by the wall clock (semantics §8.25). */
      expiresAt: Schema.Int
    })
  )
})
export type WebhookEndpointHidden = typeof WebhookEndpointHidden.Type

export const WEBHOOK_ENDPOINT: Resource<WebhookEndpoint, WebhookEndpointHidden> = {
  name: "webhook_endpoint",
  resourceKind: "WebhookEndpoint",
  shape: { value: WebhookEndpoint, hidden: WebhookEndpointHidden },
  prefix: PREFIXES.webhook_endpoint
}
