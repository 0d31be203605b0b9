/** Names of the event types (semantics events.types). Loads no schemas, for the client. */

/** The types that Till emits, with the object that an event of the type carries (semantics events.types). */
export const EMITTED_EVENT_TYPES = {
  "payment_intent.created": "payment_intent",
  "payment_intent.requires_action": "payment_intent",
  "payment_intent.processing": "payment_intent",
  "payment_intent.amount_capturable_updated": "payment_intent",
  "payment_intent.succeeded": "payment_intent",
  "payment_intent.payment_failed": "payment_intent",
  "payment_intent.canceled": "payment_intent",
  "charge.succeeded": "charge",
  "charge.pending": "charge",
  "charge.failed": "charge",
  "charge.captured": "charge",
  "charge.expired": "charge",
  "charge.updated": "charge",
  "charge.refunded": "charge",
  "refund.created": "refund",
  "refund.updated": "refund",
  "refund.failed": "refund",
  "operation.unresolved": "operation",
  "operation.resolved": "operation",
  "checkout.session.completed": "checkout.session",
  "checkout.session.expired": "checkout.session",
  "checkout.session.async_payment_succeeded": "checkout.session",
  "checkout.session.async_payment_failed": "checkout.session",
  "payment_link.created": "payment_link",
  "payment_link.updated": "payment_link",
  "customer.created": "customer",
  "customer.updated": "customer",
  "customer.deleted": "customer",
  "payment_method.attached": "payment_method",
  "payment_method.detached": "payment_method",
  "product.created": "product",
  "product.updated": "product",
  "product.deleted": "product",
  "price.created": "price",
  "price.updated": "price"
} as const

/** Types that endpoints can subscribe to and lists can be filtered by, but that are not emitted yet. */
export const RESERVED_EVENT_TYPES = [
  "payment_intent.partially_funded",
  "charge.refund.updated",
  "charge.dispute.created",
  "charge.dispute.updated",
  "charge.dispute.closed",
  "charge.dispute.funds_withdrawn",
  "charge.dispute.funds_reinstated",
  "price.deleted",
  "payment_method.updated",
  "payment_method.automatically_updated"
] as const

export type EmittedEventType = keyof typeof EMITTED_EVENT_TYPES

/** All types. */
export const EVENT_TYPES = [
  ...(Object.keys(EMITTED_EVENT_TYPES) as ReadonlyArray<EmittedEventType>),
  ...RESERVED_EVENT_TYPES
] as const
