/** Webhook deliveries: an event on its way to an endpoint (semantics webhooks.states, webhooks.deliveries). */
import { Schema } from "effect"
import { EventId, WebhookDeliveryId, WebhookEndpointId } from "./Identifiers.ts"
import { Timestamp } from "./Time.ts"

/** `exhausted`: the last attempt failed. `canceled`: the endpoint was disabled or deleted before a success. */
export const WebhookDeliveryStatus = Schema.Literals(["pending", "delivered", "exhausted", "canceled"])
export type WebhookDeliveryStatus = typeof WebhookDeliveryStatus.Type

/** One attempt. Without a response, `error` has the reason. */
export const WebhookDeliveryAttempt = Schema.Struct({
  /** 1, 2, 3, … */
  attempt: Schema.Int,
  started_at: Timestamp,
  duration_ms: Schema.Int,
  response_status: Schema.NullOr(Schema.Int),
  error: Schema.NullOr(Schema.String),
  /** The first 500 bytes of a response other than success, if they are text. */
  response_body: Schema.NullOr(Schema.String)
}).annotate({ identifier: "WebhookDeliveryAttempt" })
export type WebhookDeliveryAttempt = typeof WebhookDeliveryAttempt.Type

/** Times are in Unix seconds of the environment's clock. */
export const WebhookDelivery = Schema.Struct({
  id: WebhookDeliveryId,
  object: Schema.Literal("webhook_delivery"),
  event: EventId,
  webhook_endpoint: WebhookEndpointId,
  status: WebhookDeliveryStatus,
  attempt_count: Schema.Int,
  /** Null unless pending. */
  next_attempt_at: Schema.NullOr(Timestamp),
  last_response_status: Schema.NullOr(Schema.Int),
  last_error: Schema.NullOr(Schema.String),
  created: Timestamp,
  livemode: Schema.Boolean,
  attempts: Schema.Array(WebhookDeliveryAttempt)
}).annotate({ identifier: "WebhookDelivery" })
export type WebhookDelivery = typeof WebhookDelivery.Type
