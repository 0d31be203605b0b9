/** Events (spec: Events; semantics §4, §6). */
import { Schema } from "effect"
import { EventId, MerchantId, RequestId } from "./Identifiers.ts"
import { Timestamp } from "./Time.ts"

/** Every type that endpoints can subscribe to; those that end in a comment are reserved and never emitted so far. */
export const EVENT_TYPES = [
  "payment_intent.created",
  "payment_intent.requires_action",
  "payment_intent.processing",
  "payment_intent.amount_capturable_updated",
  "payment_intent.succeeded",
  "payment_intent.payment_failed",
  "payment_intent.canceled",
  "payment_intent.partially_funded", // reserved
  "charge.succeeded",
  "charge.pending",
  "charge.failed",
  "charge.captured",
  "charge.expired",
  "charge.updated",
  "charge.refunded",
  "charge.refund.updated", // reserved
  "charge.dispute.created", // reserved
  "charge.dispute.updated", // reserved
  "charge.dispute.closed", // reserved
  "charge.dispute.funds_withdrawn", // reserved
  "charge.dispute.funds_reinstated", // reserved
  "refund.created",
  "refund.updated",
  "refund.failed",
  "checkout.session.completed",
  "checkout.session.expired",
  "checkout.session.async_payment_succeeded",
  "checkout.session.async_payment_failed",
  "customer.created",
  "customer.updated",
  "customer.deleted",
  "product.created",
  "product.updated",
  "product.deleted",
  "price.created",
  "price.updated",
  "price.deleted", // reserved
  "payment_method.attached", // reserved
  "payment_method.detached", // reserved
  "payment_method.updated", // reserved
  "payment_method.automatically_updated" // reserved
] as const

export const EventType = Schema.Literals(EVENT_TYPES)
export type EventType = typeof EventType.Type

/** What a `type` filter selects (semantics W16, §8.22). */
export type EventTypeFilter = { readonly exact: string } | { readonly prefix: string }

/** Reads a `type` filter: a known type, or `prefix.*` of known types; undefined for anything else. */
export const eventTypeFilterOf = (filter: string): EventTypeFilter | undefined => {
  if ((EVENT_TYPES as ReadonlyArray<string>).includes(filter)) return { exact: filter }
  if (!filter.endsWith(".*")) return undefined
  const prefix = filter.slice(0, -1)
  return EVENT_TYPES.some((type) => type.startsWith(prefix)) ? { prefix } : undefined
}

export const Event = Schema.Struct({
  id: EventId,
  object: Schema.Literal("event"),
  type: Schema.String,
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
