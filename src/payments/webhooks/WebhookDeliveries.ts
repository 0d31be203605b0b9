/**
 * Webhook deliveries as merchants see them, and resends by request (semantics webhooks.deliveries, webhooks.resend,
 * webhooks.schedule). The engine creates a delivery of every event for each subscribed endpoint and schedules the
 * attempts.
 */
import { Effect } from "effect"
import { ParameterInvalid, type ResourceMissing } from "../../domain/Errors.ts"
import type { Event } from "../../domain/Event.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { WebhookDelivery, WebhookDeliveryAttempt } from "../../domain/WebhookDelivery.ts"
import type { Attempt, DeliveryRow } from "../../engine/Deliveries.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { StoredEvent } from "../../engine/log/Events.ts"
import { parseJson } from "../../json/JsonParse.ts"
import { isLive } from "../shared/AccountIds.ts"
import { findDocument, WEBHOOK_ENDPOINT } from "../shared/Documents.ts"
import { render } from "../shared/Events.ts"

/** Returns a delivery as the API shows it (semantics webhooks.deliveries). */
export const webhookDeliveryOf = (row: DeliveryRow): WebhookDelivery => {
  const last = row.attempts.at(-1)
  return {
    id: row.id,
    object: "webhook_delivery",
    event: row.event,
    webhook_endpoint: row.destination,
    status: row.state,
    attempt_count: row.attempts.length,
    next_attempt_at: row.nextAttemptAt === null ? null : secondsOf(row.nextAttemptAt),
    last_response_status: last?.status ?? null,
    last_error: last?.error ?? null,
    created: secondsOf(row.at),
    livemode: isLive(row.account),
    attempts: row.attempts.map(attemptOf)
  }
}

const attemptOf = ({ attempt, body, durationMillis, error, startedAt, status }: Attempt): WebhookDeliveryAttempt => ({
  attempt,
  started_at: secondsOf(startedAt),
  duration_ms: Math.round(durationMillis),
  response_status: status,
  error,
  response_body: body ?? null
})

export interface Resend {
  readonly event: StoredEvent
  /** Deliveries of the event that are still pending. */
  readonly pendingWebhooks: number
  /** The only endpoint to send to, regardless of subscriptions; null for all that subscribe to the type. */
  readonly webhookEndpoint: string | null
  /** Pending deliveries, whose next attempt happens now instead (semantics dashboard.resend). */
  readonly pending?: ReadonlyArray<DeliveryRow>
}

/**
 * Delivers an event again, as a new delivery with all its attempts, regardless of earlier deliveries. The body is the
 * one sent before (semantics webhooks.body, webhooks.resend). Returns the event as it is then.
 */
export const resend = Effect.fnUntraced(function* ({
  event,
  pending = [],
  pendingWebhooks,
  webhookEndpoint
}: Resend): Effect.fn.Return<Event, ResourceMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  if (webhookEndpoint !== null) yield* requireEnabled(webhookEndpoint)
  const destinations = webhookEndpoint === null ? transaction.destinationsOf(event.type) : [webhookEndpoint]
  let anew = 0
  for (const destination of destinations) {
    const waiting = pending.find((row) => row.destination === destination)
    if (waiting !== undefined) {
      transaction.hasten({ id: waiting.id, destination, attempt: waiting.attempts.length + 1 })
    } else {
      anew++
      transaction.deliver(event, destination)
    }
  }
  const { account } = transaction
  const text = render(event, { account, pendingWebhooks: pendingWebhooks + anew })
  return parseJson(text) as Event
})

/** Fails for a disabled endpoint, which gets no webhooks (semantics webhooks.disabled). */
const requireEnabled = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<void, ResourceMissing | ParameterInvalid, Transaction> {
  const param = "webhook_endpoint"
  const { value } = yield* findDocument(WEBHOOK_ENDPOINT, id, param)
  if (value.status === "disabled") {
    return yield* new ParameterInvalid({ param, rule: "the ID of an enabled webhook endpoint" })
  }
})
