/** Events (spec: Events; semantics events.types, events.object). */
import { Schema } from "effect"
import { EventId, MerchantId, RequestId } from "./Identifiers.ts"
import { Timestamp } from "./Time.ts"

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
  "checkout.session.completed": "checkout.session",
  "checkout.session.expired": "checkout.session",
  "checkout.session.async_payment_succeeded": "checkout.session",
  "checkout.session.async_payment_failed": "checkout.session",
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

export const EVENT_TYPES = [
  ...(Object.keys(EMITTED_EVENT_TYPES) as ReadonlyArray<EmittedEventType>),
  ...RESERVED_EVENT_TYPES
] as const

export const EventType = Schema.Literals(EVENT_TYPES)
export type EventType = typeof EventType.Type

/** The selection of a `type` filter (semantics events.list). */
export type EventTypeFilter = { readonly exact: string } | { readonly prefix: string }

/** Parses a `type` filter: a known type, or `prefix.*` of known types; undefined for any other text. */
export const eventTypeFilterOf = (filter: string): EventTypeFilter | undefined => {
  if ((EVENT_TYPES as ReadonlyArray<string>).includes(filter)) return { exact: filter }
  if (!filter.endsWith(".*")) return undefined
  const prefix = filter.slice(0, -1)
  return EVENT_TYPES.some((type) => type.startsWith(prefix)) ? { prefix } : undefined
}

/** `created` in Unix seconds. */
export const Event = Schema.Struct({
  id: EventId,
  object: Schema.Literal("event"),
  type: EventType,
  created: Timestamp,
  livemode: Schema.Boolean,
  api_version: Schema.String,
  merchant_id: MerchantId,
  data: Schema.Struct({
    object: Schema.Record(Schema.String, Schema.Unknown),
    previous_attributes: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
  }),
  pending_webhooks: Schema.Int,
  request: Schema.Struct({ id: Schema.NullOr(RequestId), idempotency_key: Schema.NullOr(Schema.String) })
}).annotate({ identifier: "Event" })
export type Event = typeof Event.Type
