/** Webhook deliveries on pages: their state, the last response, and resending. */
import { Effect } from "effect"
import { ResourceMissing } from "../../domain/Errors.ts"
import type { WebhookDelivery, WebhookDeliveryStatus } from "../../domain/WebhookDelivery.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { DeliveryRow } from "../../engine/Deliveries.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { html } from "../../html/Html.ts"
import { resend, webhookDeliveryOf } from "../../payments/webhooks/WebhookDeliveries.ts"
import type { Column } from "../frame/Table.ts"
import { badge, NOTHING, time, type Tone } from "../frame/Values.ts"

const TONES: Readonly<Record<WebhookDeliveryStatus, Tone>> = {
  delivered: "good",
  pending: "wait",
  exhausted: "bad",
  canceled: "plain"
}

/** The state. `pending` with a failed attempt is shown as failed. */
export const stateOf = ({ attempt_count, status }: WebhookDelivery) =>
  status === "pending" && attempt_count > 0 ? badge("failed, retrying", "bad") : badge(status, TONES[status])

export const hasFailed = ({ attempts, state }: DeliveryRow): boolean =>
  state === "exhausted" || (state === "pending" && attempts.length > 0)

/** Returns a predicate for an endpoint's deliveries, newest first: true for the newest delivery of each event. */
export const newestOfEvents = () => {
  const seen = new Set<string>()
  return ({ event }: DeliveryRow): boolean => {
    const isNewest = !seen.has(event)
    seen.add(event)
    return isNewest
  }
}

/** Failed deliveries, except those of events that were sent again since. */
export const pickFailing = (deliveries: ReadonlyArray<DeliveryRow>): ReadonlyArray<DeliveryRow> =>
  deliveries.filter(newestOfEvents()).filter(hasFailed)

const errorOf = ({ last_error }: WebhookDelivery) =>
  last_error === null ? NOTHING : html`<span class="sentence">${last_error}</span>`

export const answerOf = (delivery: WebhookDelivery) =>
  delivery.last_response_status === null
    ? errorOf(delivery)
    : html`<span class="whole">responded ${delivery.last_response_status}</span>`

export interface TypedDelivery {
  readonly id: string
  readonly delivery: WebhookDelivery
  readonly type: string
}

export const deliveryPath = ({ id, webhook_endpoint }: WebhookDelivery) =>
  `/webhooks/${webhook_endpoint}/${id}` as const

/** Columns of a table of deliveries. With `urls`, by endpoint id, each row names its endpoint. */
export const deliveryColumns = (urls?: ReadonlyMap<string, string>): ReadonlyArray<Column<TypedDelivery>> => [
  {
    name: "Event",
    long: true,
    cell: ({ delivery, type }) =>
      html`<strong>${type}</strong>
        ${urls && html`<small class="under">${urls.get(delivery.webhook_endpoint)}</small>`}`
  },
  { name: "State", cell: ({ delivery }) => stateOf(delivery) },
  { name: "Last response", cell: ({ delivery }) => delivery.last_response_status ?? errorOf(delivery) },
  { name: "Attempts", align: "end", cell: ({ delivery }) => delivery.attempt_count, wide: true },
  { name: "Date", cell: ({ delivery }) => time(delivery.created) }
]

export const withEventTypes = (account: AccountId, rows: ReadonlyArray<DeliveryRow>) =>
  Effect.forEach(
    rows,
    (row) =>
      Effect.map(
        Accounts.use((accounts) => accounts.event(account, row.event)),
        (event): TypedDelivery => ({ id: row.id, delivery: webhookDeliveryOf(row), type: event?.type ?? row.event })
      ),
    { concurrency: 8 }
  )

/** Returns an event and the number of its pending deliveries, or fails with `ResourceMissing`. */
export const findEvent = Effect.fnUntraced(function* (account: AccountId, id: string) {
  const accounts = yield* Accounts
  const event = yield* accounts.event(account, id)
  if (event === undefined) return yield* new ResourceMissing({ kind: "Event", id, param: "id" })
  const [pendingWebhooks] = yield* accounts.pendingDeliveries(account, [id])
  return { event, pendingWebhooks: pendingWebhooks! }
})

/** Deliveries of an event that are searched for pending ones, newest first. */
const LOOKED_THROUGH_MAX = 100

/**
 * Sends events again to one endpoint, or with null to all endpoints that are subscribed now. A pending delivery is
 * attempted immediately instead of getting a second one beside it (semantics dashboard.resend); of several pending
 * ones, a delivery in `meant` takes precedence over the newest.
 */
export const resendEvents = Effect.fnUntraced(function* (
  account: AccountId,
  events: ReadonlyArray<string>,
  webhookEndpoint: string | null,
  meant: ReadonlyArray<DeliveryRow> = []
) {
  const found = yield* Effect.forEach(events, (id) => findEvent(account, id), { concurrency: 8 })
  const newest = yield* Accounts.use((accounts) => accounts.eventDeliveries(account, events, LOOKED_THROUGH_MAX))
  const pending = [...meant, ...newest.flat()].filter(({ state }) => state === "pending")
  return Effect.map(
    Effect.forEach(found, (one) =>
      resend({ ...one, webhookEndpoint, pending: pending.filter(({ event }) => event === one.event.id) })
    ),
    (sent) => sent[0]!
  )
})

/** Resends the events of these deliveries to the endpoint, each event once. */
export const resendDeliveries = (account: AccountId, webhookEndpoint: string, meant: ReadonlyArray<DeliveryRow>) =>
  resendEvents(account, eventsOf(meant), webhookEndpoint, meant)

export const eventsOf = (deliveries: ReadonlyArray<DeliveryRow>): ReadonlyArray<string> => [
  ...new Set(deliveries.map(({ event }) => event))
]
