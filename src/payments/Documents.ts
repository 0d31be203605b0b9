/** What payments keeps in an account: the kinds of documents, what lists filter them by, and what they hide. */
import { Effect } from "effect"
import type { Charge } from "../domain/Charge.ts"
import type { CheckoutSession, CustomerDetails, LineItem } from "../domain/CheckoutSession.ts"
import type { Customer } from "../domain/Customer.ts"
import type { ResourceKind } from "../domain/Errors.ts"
import { ResourceMissing } from "../domain/Errors.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import type { PaymentMethod } from "../domain/PaymentMethod.ts"
import type { Price } from "../domain/Price.ts"
import type { Product } from "../domain/Product.ts"
import type { Refund } from "../domain/Refund.ts"
import type { WebhookEndpoint } from "../domain/WebhookEndpoint.ts"
import type { Identified, Kind } from "../engine/Document.ts"
import { Transaction } from "../engine/Transaction.ts"

/** A kind of documents that requests name by their ids. */
export interface Resource<Value extends Identified, Hidden = undefined> extends Kind<Value, Hidden> {
  /** How it is called in messages. */
  readonly resourceKind: ResourceKind
}

/** The document that a parameter refers to; `id` for the object of the path (semantics T17). */
export const findDocument = Effect.fnUntraced(function* <A extends Identified, H>(
  kind: Resource<A, H>,
  id: string,
  param: string = "id"
) {
  const transaction = yield* Transaction
  const document = yield* transaction.get(kind, id)
  if (document === undefined) return yield* new ResourceMissing({ kind: kind.resourceKind, id, param })
  return document
})

export const CUSTOMER: Resource<Customer> = {
  name: "customer",
  resourceKind: "Customer",
  prefix: PREFIXES.customer,
  labels: ({ email }) => (email === null ? {} : { email: email.toLowerCase() })
}

/** What a payer agreed to when they passed an authentication; it holds for nothing else (semantics 9.3). */
export interface PassedAuthentication {
  readonly paymentMethod: string
  /** Minor units: what may be charged by it, at most. */
  readonly amount: number
  /** In lower case. */
  readonly currency: string
}

/** What is known of a PaymentIntent beyond what it shows. */
export interface PaymentIntentHidden {
  /**
   * The authentication that the payer has passed, while the server has yet to confirm again (semantics I-12). Terms that it
   * does not cover void it for good. Older documents name a payment method as `authenticatedPaymentMethod`, without an
   * amount: that counts for nothing, so the payer is asked again.
   */
  readonly authentication?: PassedAuthentication
  /** The Checkout Session that it belongs to (semantics I-18). Lasts. */
  readonly checkoutSession?: string
}

export const PAYMENT_INTENT: Resource<PaymentIntent, PaymentIntentHidden | undefined> = {
  name: "payment_intent",
  resourceKind: "PaymentIntent",
  prefix: PREFIXES.payment_intent,
  labels: ({ customer }) => (customer === null ? {} : { customer })
}

export const CHARGE: Resource<Charge> = {
  name: "charge",
  resourceKind: "Charge",
  prefix: PREFIXES.charge,
  labels: ({ customer, payment_intent }) => (customer === null ? { payment_intent } : { payment_intent, customer })
}

export const REFUND: Resource<Refund> = {
  name: "refund",
  resourceKind: "Refund",
  prefix: PREFIXES.refund,
  labels: ({ payment_intent }) => ({ payment_intent })
}

export interface PaymentMethodHidden {
  /** What the processor knows the card by; never the card's number. */
  readonly token: string
}

export const PAYMENT_METHOD: Resource<PaymentMethod, PaymentMethodHidden> = {
  name: "payment_method",
  resourceKind: "PaymentMethod",
  prefix: PREFIXES.payment_method,
  labels: ({ customer }) => (customer === null ? {} : { customer })
}

/** What is known of a product beyond what it shows. */
export interface ProductHidden {
  /** Whether it ever got a price. Prices are never deleted, so it has one from then on (semantics PR2, PR3). */
  readonly hasPrice: boolean
}

export const PRODUCT: Resource<Product, ProductHidden> = {
  name: "product",
  resourceKind: "Product",
  prefix: PREFIXES.product,
  labels: ({ active }) => ({ active: String(active) })
}

export const PRICE: Resource<Price> = {
  name: "price",
  resourceKind: "Price",
  prefix: PREFIXES.price,
  labels: ({ active, currency, product, type }) => ({ active: String(active), currency, product, type })
}

/** Who has a lookup key: found by the key, because a key belongs to one price at most (semantics PR17). */
export interface LookupKeyEntry {
  /** `lookup_key:<key>` */
  readonly id: string
  readonly price: string
}

export const LOOKUP_KEY: Kind<LookupKeyEntry> = { name: "lookup_key" }

/** What is known of a Checkout Session beyond what it shows. */
export interface CheckoutSessionHidden {
  /** What the payer has entered, while the payment has yet to go through. */
  readonly collected: CustomerDetails | null
  /** Whether the payment that completed it is still processing. */
  readonly awaitsSettlement: boolean
}

export const CHECKOUT_SESSION: Resource<CheckoutSession, CheckoutSessionHidden> = {
  name: "checkout.session",
  resourceKind: "Checkout Session",
  prefix: PREFIXES["checkout.session"],
  labels: ({ status }) => ({ status })
}

/** All lines of one Checkout Session, in their order: written once, and always read together, as a part of it. */
export interface LineItems {
  readonly id: string
  readonly data: ReadonlyArray<LineItem>
}

export const LINE_ITEMS: Resource<LineItems> = { name: "checkout.session.line_items", resourceKind: "Checkout Session" }

export const lineItemsId = (checkoutSessionId: string): string => `${checkoutSessionId}_line_items`

export interface WebhookEndpointHidden {
  /** The signing secret, encrypted (semantics W2). */
  readonly sealedSecret: string
  /** The secret that was in its place before, if it was rolled with a grace. */
  readonly previous?: {
    readonly sealedSecret: string
    /** From then on it does not sign any more. Milliseconds, by the wall clock (semantics §8.25). */
    readonly expiresAt: number
  }
}

export const WEBHOOK_ENDPOINT: Resource<WebhookEndpoint, WebhookEndpointHidden> = {
  name: "webhook_endpoint",
  resourceKind: "WebhookEndpoint",
  prefix: PREFIXES.webhook_endpoint
}
