/**
 * The kinds of documents that payments stores in an account. Each defines its list filters (`labels`) and its hidden
 * part.
 *
 * To add, rename, drop or retype a field (semantics versions.documents), without rewriting stored documents:
 * 1. Change the schema in `src/domain`, or that of the hidden part here, and the code that writes such documents.
 * 2. Give the kind one more step, which adds the fields that older documents lack. If Customer gets `tax_id: string |
 *    null`, it is `steps: [{ value: adding({ tax_id: null }) }]`; `src/engine/views/DocumentFormats.ts` has `renaming`
 *    and `inside`, and any pure function works. All changes between two releases can share one step. A released step
 *    never changes.
 * 3. Give a step to every kind that holds copies of the document, too: to PAYMENT_INTENT for a change of Charge, `{
 *    value: inside("charges", inside("data", adding({ fee: null }))) }`.
 * 4. Do not let a step change a field from which `labels` derives: lists find documents by the labels that were
 *    written.
 * 5. Run `npm test -- test/payments/Formats.prop.test.ts test/corpus`. It fails until each document that a release may
 *    have written fits today's schemas, and until there is a migration, maybe an empty one, by which that release
 *    refuses what this one has written.
 */
import { Effect, Schema } from "effect"
import { Charge } from "../domain/Charge.ts"
import { CheckoutSession, CustomerDetails, LineItem, PaymentIntentData } from "../domain/CheckoutSession.ts"
import { Customer } from "../domain/Customer.ts"
import { type ResourceKind, ResourceMissing } from "../domain/Errors.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { PaymentIntent } from "../domain/PaymentIntent.ts"
import { PaymentLink, PaymentLinkItem } from "../domain/PaymentLink.ts"
import { PaymentMethod } from "../domain/PaymentMethod.ts"
import { Price } from "../domain/Price.ts"
import { Product } from "../domain/Product.ts"
import { Refund } from "../domain/Refund.ts"
import { WebhookEndpoint } from "../domain/WebhookEndpoint.ts"
import type { Document, Identified, Kind } from "../engine/log/Document.ts"
import { Transaction } from "../engine/actor/Transaction.ts"
import { FILTERED_PAYMENT_INTENT, searchable, SEARCHED_CUSTOMER } from "./Search.ts"
import * as Tallies from "./Tallies.ts"

export interface Kept<Value extends Identified, Hidden = undefined> extends Kind<Value, Hidden> {
  readonly shape: {
    readonly value: Schema.Codec<Value>
    /** Absent if nothing is hidden. */
    readonly hidden?: Schema.Codec<Hidden>
  }
}

/** A kind whose documents requests name by their ids. */
export interface Resource<Value extends Identified, Hidden = undefined> extends Kept<Value, Hidden> {
  readonly resourceKind: ResourceKind
}

/** Finds the document that a parameter refers to; `id` for the path's object (semantics parameters.references). */
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

/** The charge to which a payer agreed by authentication (semantics payment_intents.authentication.terms). */
export const PassedAuthentication = Schema.Struct({
  paymentMethod: Schema.String,
  /** The largest amount that may be charged. Minor units. */
  amount: Schema.Int,
  /** In lower case. */
  currency: Schema.String
})
export type PassedAuthentication = typeof PassedAuthentication.Type

export const PaymentIntentHidden = Schema.Struct({
  /**
   * The authentication that the payer has passed, until the server confirms again (semantics
   * payment_intents.manual_confirmation). Terms that it does not cover remove it for good.
   */
  authentication: Schema.optionalKey(PassedAuthentication),
  /** The Checkout Session that the PaymentIntent belongs to (semantics checkout.payment_intent). Never removed. */
  checkoutSession: Schema.optionalKey(Schema.String)
})
export type PaymentIntentHidden = typeof PaymentIntentHidden.Type

export const PAYMENT_INTENT: Resource<PaymentIntent, PaymentIntentHidden | undefined> = {
  name: "payment_intent",
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
  /** The processor's token for the card; never the card's number. */
  token: Schema.String,
  /** Whether it was detached from a customer, and can never be used again (semantics payment_methods.states). */
  detached: Schema.Boolean
})
export type PaymentMethodHidden = typeof PaymentMethodHidden.Type

export const PAYMENT_METHOD: Resource<PaymentMethod, PaymentMethodHidden> = {
  name: "payment_method",
  resourceKind: "PaymentMethod",
  shape: { value: PaymentMethod, hidden: PaymentMethodHidden },
  prefix: PREFIXES.payment_method,
  labels: ({ customer }) => (customer === null ? {} : { customer })
}

/** The payment methods of one customer, in the order of their attachment (semantics payment_methods.attach). */
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

export const ProductHidden = Schema.Struct({
  /** Whether the product ever got a price. Never reset (semantics products.delete, prices.delete). */
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

/** The price that has a lookup key, found by the key: at most one price has it (semantics prices.lookup_key). */
export const LookupKeyEntry = Schema.Struct({
  /** `lookup_key:<key>` */
  id: Schema.String,
  price: Schema.String
})
export type LookupKeyEntry = typeof LookupKeyEntry.Type

export const LOOKUP_KEY: Kept<LookupKeyEntry> = { name: "lookup_key", shape: { value: LookupKeyEntry } }

/** The bounds of the amount that the payer chooses, in minor units (semantics checkout.custom_amount). */
export const CustomAmount = Schema.Struct({
  line: Schema.Int,
  others: Schema.Int,
  /** The smallest amount that the payer can choose, above 0. */
  minimum: Schema.Int,
  /** The largest amount that the payer can choose; null if only the cap of a payment applies. */
  maximum: Schema.NullOr(Schema.Int),
  /** The fields for the PaymentIntent to be created; null if it exists. */
  paymentIntentData: Schema.NullOr(PaymentIntentData)
})
export type CustomAmount = typeof CustomAmount.Type

export const CheckoutSessionHidden = Schema.Struct({
  /** The details that the payer entered, until the session ends. */
  collected: Schema.NullOr(CustomerDetails),
  /** Whether the payment that completed the session is still processing. */
  awaitsSettlement: Schema.Boolean,
  /** The failed attempts since the session last began to accept payments (semantics checkout.attempts). */
  failedAttempts: Schema.Int,
  /** The end of the pause without payments, in milliseconds of the account's clock; null outside of a pause. */
  closedUntil: Schema.NullOr(Schema.Int),
  /** Null if the payer cannot choose an amount. */
  customAmount: Schema.NullOr(CustomAmount)
})
export type CheckoutSessionHidden = typeof CheckoutSessionHidden.Type

export const CHECKOUT_SESSION: Resource<CheckoutSession, CheckoutSessionHidden> = {
  name: "checkout.session",
  resourceKind: "Checkout Session",
  shape: { value: CheckoutSession, hidden: CheckoutSessionHidden },
  prefix: PREFIXES["checkout.session"],
  foundById: true,
  labels: ({ payment_link, status }) => (payment_link === undefined ? { status } : { status, payment_link })
}

/** All lines of one session, in order. Only a chosen amount changes them (semantics checkout.custom_amount). */
export const LineItems = Schema.Struct({ id: Schema.String, data: Schema.Array(LineItem) })
export type LineItems = typeof LineItems.Type

export const LINE_ITEMS: Resource<LineItems> = {
  name: "checkout.session.line_items",
  resourceKind: "Checkout Session",
  shape: { value: LineItems }
}

export const lineItemsId = (checkoutSessionId: string): string => `${checkoutSessionId}_line_items`

export const PaymentLinkHidden = Schema.Struct({
  /** The sessions of the link that have completed (semantics payment_links.limit). */
  completed: Schema.Int,
  /** The prices that were made with the link, inactive from the start (semantics payment_links.line_items). */
  ownPrices: Schema.Array(Schema.String)
})
export type PaymentLinkHidden = typeof PaymentLinkHidden.Type

export const PAYMENT_LINK: Resource<PaymentLink, PaymentLinkHidden> = {
  name: "payment_link",
  resourceKind: "Payment Link",
  shape: { value: PaymentLink, hidden: PaymentLinkHidden },
  prefix: PREFIXES.payment_link,
  foundById: true,
  labels: ({ active }) => ({ active: String(active) })
}

/** All lines of one link, in order. They never change (semantics payment_links.update). */
export const PaymentLinkItems = Schema.Struct({ id: Schema.String, data: Schema.Array(PaymentLinkItem) })
export type PaymentLinkItems = typeof PaymentLinkItems.Type

export const PAYMENT_LINK_ITEMS: Resource<PaymentLinkItems> = {
  name: "payment_link.line_items",
  resourceKind: "Payment Link",
  shape: { value: PaymentLinkItems }
}

export const WebhookEndpointHidden = Schema.Struct({
  /** The signing secret, encrypted (semantics webhooks.secret). */
  sealedSecret: Schema.String,
  /** The previous secret, if it was rolled with a grace period. */
  previous: Schema.optionalKey(
    Schema.Struct({
      sealedSecret: Schema.String,
      /** The end of the grace period, in which the secret also signs. Wall-clock milliseconds (semantics time.wall). */
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
