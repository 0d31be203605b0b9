/** Events (spec: Events; semantics events.types, events.object). */
import { Schema } from "effect"
import { EVENT_TYPES } from "./EventTypes.ts"
import { EventId, MerchantId, RequestId } from "./Identifiers.ts"
import { Timestamp } from "./Time.ts"

export * from "./EventTypes.ts"

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
