/**
 * The fields of objects that a publishable key sees, and so everybody with the merchant's page and the object's client
 * secret (semantics keys.publishable.payment_intents, keys.publishable.sessions). The fields are listed one by one, so
 * that a new field is hidden until it is added here.
 */
import type { CheckoutSession, LineItem } from "./CheckoutSession.ts"
import type { PaymentIntent } from "./PaymentIntent.ts"

const PAYMENT_INTENT: ReadonlyArray<keyof PaymentIntent> = [
  "id",
  "object",
  "amount",
  "currency",
  "status",
  "capture_method",
  "confirmation_method",
  "client_secret",
  "created",
  "livemode",
  "payment_method",
  "next_action",
  "last_payment_error",
  "canceled_at",
  "cancellation_reason"
]

const CHECKOUT_SESSION: ReadonlyArray<keyof CheckoutSession> = [
  "id",
  "object",
  "mode",
  "status",
  "payment_status",
  "ui_mode",
  "amount_subtotal",
  "amount_total",
  "currency",
  "total_details",
  "customer_email",
  "customer_details",
  "billing_address_collection",
  "phone_number_collection",
  "locale",
  "expires_at",
  "livemode",
  "client_secret",
  "success_url",
  "cancel_url",
  "payment_intent"
]

const LINE_ITEM: ReadonlyArray<keyof LineItem> = [
  "id",
  "object",
  "price",
  "quantity",
  "amount_subtotal",
  "amount_total",
  "currency",
  "description"
]

/** The visible fields, in order, by `object`. Objects of other types are shown whole. */
export const PUBLISHABLE_FIELDS: Readonly<Record<string, ReadonlyArray<string>>> = {
  payment_intent: PAYMENT_INTENT,
  "checkout.session": CHECKOUT_SESSION,
  item: LINE_ITEM
}

interface Shown {
  readonly object?: unknown
  readonly data?: unknown
}

/** Reduces an object, or a list's objects, to a publishable key's fields (semantics keys.publishable.sessions). */
export const publishable = (value: object, fieldsOf = PUBLISHABLE_FIELDS): object => {
  const { data, object } = value as Shown
  if (object === "list" && Array.isArray(data))
    return { ...value, data: data.map((item: object) => publishable(item, fieldsOf)) }
  const fields = typeof object === "string" ? fieldsOf[object] : undefined
  if (fields === undefined) return value
  const members = value as Readonly<Record<string, unknown>>
  return Object.fromEntries(fields.filter((field) => field in members).map((field) => [field, members[field]]))
}
