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
import { BillingDetails } from "../../domain/Address.ts"
import { Charge, PaymentMethodDetails } from "../../domain/Charge.ts"
import {
  CheckoutSession,
  CustomerDetails,
  LineItem,
  PAGE_LANGUAGES,
  PaymentIntentData
} from "../../domain/CheckoutSession.ts"
import { Customer } from "../../domain/Customer.ts"
import { ParameterInvalid, type ResourceKind, ResourceMissing } from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { Metadata } from "../../domain/Metadata.ts"
import { Operation, OperationResolvedBy } from "../../domain/Operation.ts"
import { CancellationReason, FutureUsage, PaymentIntent } from "../../domain/PaymentIntent.ts"
import { PaymentLink, PaymentLinkItem } from "../../domain/PaymentLink.ts"
import { PaymentMethod } from "../../domain/PaymentMethod.ts"
import { Price } from "../../domain/Price.ts"
import { Product } from "../../domain/Product.ts"
import { Refund, RefundReason } from "../../domain/Refund.ts"
import { WebhookEndpoint } from "../../domain/WebhookEndpoint.ts"
import type { Document, Identified, Kind } from "../../engine/log/Document.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import {
  FILTERED_PAYMENT_INTENT,
  searchable,
  SEARCHED_CUSTOMER,
  SEARCHED_PAYMENT_LINK,
  SEARCHED_PRODUCT
} from "./Search.ts"
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

/** Finds a customer for something new. After an erasure it gets none (semantics erasure.after). */
export const findCustomer = Effect.fnUntraced(function* (
  id: string,
  param: "id" | "customer"
): Effect.fn.Return<Customer, ResourceMissing | ParameterInvalid, Transaction> {
  const { value } = yield* findDocument(CUSTOMER, id, param)
  if (value.erasure !== undefined) {
    return yield* new ParameterInvalid({ param, rule: "a customer whose data was not erased" })
  }
  return value
})

/** The charge to which a payer agreed by authentication (semantics payment_intents.authentication.terms). */
export const PassedAuthentication = Schema.Struct({
  paymentMethod: Schema.String,
  /** The largest amount that may be charged. Minor units. */
  amount: Schema.Int,
  /** In lower case. */
  currency: Schema.String
})
export type PassedAuthentication = typeof PassedAuthentication.Type

/** A payment at a processor behind a network (semantics operations.*). */
export const RemotePayment = Schema.Struct({
  /** `prc_…` */
  processor: Schema.String,
  /** The processor's reference of the payment; null before the processor has given one. */
  reference: Schema.NullOr(Schema.String),
  /** The authorization that waits for the payer or the processor. */
  waiting: Schema.NullOr(Schema.String),
  /** The references of refunds that were made at the processor; absent without one. Never removed. */
  refunds: Schema.optionalKey(Schema.Array(Schema.String))
})
export type RemotePayment = typeof RemotePayment.Type

export const PaymentIntentHidden = Schema.Struct({
  /**
   * The authentication that the payer has passed, until the server confirms again (semantics
   * payment_intents.manual_confirmation). Terms that it does not cover remove it for good.
   */
  authentication: Schema.optionalKey(PassedAuthentication),
  /** The Checkout Session that the PaymentIntent belongs to (semantics checkout.payment_intent). Never removed. */
  checkoutSession: Schema.optionalKey(Schema.String),
  /** Set from the first operation on: the processor behind a network that has the payment. Never removed. */
  remote: Schema.optionalKey(RemotePayment)
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
  detached: Schema.Boolean,
  /** The processor behind a network that gave the token, and that alone can charge it; absent for the simulator's. */
  processor: Schema.optionalKey(Schema.String)
})
export type PaymentMethodHidden = typeof PaymentMethodHidden.Type

export const PAYMENT_METHOD: Resource<PaymentMethod, PaymentMethodHidden> = {
  name: "payment_method",
  resourceKind: "PaymentMethod",
  shape: { value: PaymentMethod, hidden: PaymentMethodHidden },
  prefix: PREFIXES.payment_method,
  labels: ({ customer }) => (customer === null ? {} : { customer })
}

/**
 * The reason for an operation: a request, or one of Till's timers or rules. `processor`: the processor has carried it
 * out, and this installation has not begun it (semantics operations.adopted).
 */
export const OperationCause = Schema.Literals([
  "request",
  "cancel",
  "expire_hold",
  "expire_session",
  "reverse",
  "processor"
])
export type OperationCause = typeof OperationCause.Type

export const OperationHidden = Schema.Struct({
  cause: OperationCause,
  /** All that the call needs, in the words of `OperationRequest`. */
  request: Schema.Struct({
    token: Schema.NullOr(Schema.String),
    reference: Schema.NullOr(Schema.String),
    capture: Schema.Literals(["automatic", "manual"]),
    authenticated: Schema.Boolean,
    offSession: Schema.Boolean,
    returnUrl: Schema.NullOr(Schema.String),
    customer: Schema.NullOr(Schema.String),
    description: Schema.NullOr(Schema.String),
    descriptor: Schema.NullOr(Schema.String),
    billingDetails: Schema.NullOr(BillingDetails),
    /** Milliseconds by the wall clock. */
    begunAt: Schema.Int
  }),
  /** The address to which the payer of an authorization goes after a challenge; null for Till's own page. */
  returnUrl: Schema.NullOr(Schema.String),
  /** The payment method of an authorization, as the charge will show it. */
  source: Schema.NullOr(
    Schema.Struct({
      id: Schema.String,
      card: PaymentMethodDetails.fields.card,
      billingDetails: BillingDetails,
      customer: Schema.NullOr(Schema.String)
    })
  ),
  /** The use of the payment method after an authorization (semantics payment_intents.setup_future_usage). */
  futureUsage: Schema.NullOr(FutureUsage),
  cancellationReason: Schema.NullOr(CancellationReason),
  /** The refund to create; null for other operations, and where one exists. */
  refund: Schema.NullOr(Schema.Struct({ reason: Schema.NullOr(RefundReason), metadata: Metadata })),
  /** The request to answer; null once it is answered, and if there is none. */
  answers: Schema.NullOr(
    Schema.Struct({
      request: Schema.Struct({
        id: Schema.String,
        idempotencyKey: Schema.NullOr(Schema.String),
        fingerprint: Schema.NullOr(Schema.String),
        apiVersion: Schema.String
      }),
      route: Schema.NullOr(Schema.String),
      object: Schema.Literals(["payment_intent", "checkout.session", "refund"])
    })
  ),
  /** The beginning of the present status by the account's clock, in milliseconds. */
  since: Schema.Int,
  /** The beginning of the operation by the account's clock, in milliseconds. */
  begunAt: Schema.Int,
  /** The authorization whose payer the processor had asked before this one. */
  challenged: Schema.NullOr(Schema.String),
  /** Whether the processor is to be asked since the latest record; of a final one, to confirm a person's decision. */
  asks: Schema.Boolean,
  /** True from `operation.unresolved` to `operation.resolved`. */
  announced: Schema.Boolean,
  /** The processor's page for the payer's authentication, encrypted: it may hold a secret. */
  sealedChallenge: Schema.NullOr(Schema.String),
  /** The id at the processor of a refund that was made there; absent if the id is Till's. */
  idAtProcessor: Schema.optionalKey(Schema.String),
  /** The outcomes that led to the present status, newest last: nothing becomes final without one. */
  evidence: Schema.Array(
    Schema.Struct({
      at: Schema.Int,
      by: OperationResolvedBy,
      outcome: Schema.String,
      detail: Schema.NullOr(Schema.String)
    })
  )
})
export type OperationHidden = typeof OperationHidden.Type

export const OPERATION: Resource<Operation, OperationHidden> = {
  name: "operation",
  resourceKind: "Operation",
  shape: { value: Operation, hidden: OperationHidden },
  prefix: PREFIXES.operation,
  foundById: true,
  labels: ({ kind, payment_intent, status }) => ({ kind, payment_intent, status })
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
  labels: ({ active }) => ({ active: String(active) }),
  search: searchable(SEARCHED_PRODUCT)
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
  customAmount: Schema.NullOr(CustomAmount),
  /** The language of the page on which the payer last paid, for the receipt (semantics mail.receipts). */
  language: Schema.optionalKey(Schema.Literals(PAGE_LANGUAGES))
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
  labels: ({ active }) => ({ active: String(active) }),
  search: searchable(SEARCHED_PAYMENT_LINK)
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
  ),
  /**
   * The time since which every attempt in live mode has failed, in milliseconds; absent while none has (semantics
   * mail.webhook_alert).
   */
  failingSince: Schema.optionalKey(Schema.Int)
})
export type WebhookEndpointHidden = typeof WebhookEndpointHidden.Type

export const WEBHOOK_ENDPOINT: Resource<WebhookEndpoint, WebhookEndpointHidden> = {
  name: "webhook_endpoint",
  resourceKind: "WebhookEndpoint",
  shape: { value: WebhookEndpoint, hidden: WebhookEndpointHidden },
  prefix: PREFIXES.webhook_endpoint
}
