/** Deliveries as the pages show them: what came of the attempts, and how one is sent again. */
import { Effect } from "effect"
import { ResourceMissing } from "../../domain/Errors.ts"
import type { WebhookDelivery, WebhookDeliveryStatus } from "../../domain/WebhookDelivery.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { DeliveryRow } from "../../engine/Deliveries.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { html } from "../../html/Html.ts"
import { resend, webhookDeliveryOf } from "../../payments/WebhookDeliveries.ts"
import type { Column } from "../frame/Table.ts"
import type { Tone } from "../frame/Values.ts"
import { badge, NOTHING, time } from "../frame/Values.ts"

const TONES: Readonly<Record<WebhookDeliveryStatus, Tone>> = {
  delivered: "good",
  pending: "wait",
  exhausted: "bad",
  canceled: "plain"
}

/** The state: `pending` after an attempt that failed is a failure that will be tried again. */
export const stateOf = ({ attempt_count, status }: WebhookDelivery) =>
  status === "pending" && attempt_count > 0 ? badge("failed, retrying", "bad") : badge(status, TONES[status])

export const hasFailed = ({ attempts, state }: DeliveryRow): boolean =>
  state === "exhausted" || (state === "pending" && attempts.length > 0)

/** Tells of an endpoint's deliveries, which are given newest first, whether each is what has become of its event. */
export const newestOfEvents = () => {
  const seen = new Set<string>()
  return ({ event }: DeliveryRow): boolean => {
    const isNewest = !seen.has(event)
    seen.add(event)
    return isNewest
  }
}

/** Those that failed, but for what was sent again since: that has arrived, or is on its way, or has failed itself. */
export const pickFailing = (deliveries: ReadonlyArray<DeliveryRow>): ReadonlyArray<DeliveryRow> =>
  deliveries.filter(newestOfEvents()).filter(hasFailed)

/** Why there was no answer; nothing before the first attempt. */
const errorOf = ({ last_error }: WebhookDelivery) =>
  last_error === null ? NOTHING : html`<span class="sentence">${last_error}</span>`

/** What the last attempt came to. */
export const answerOf = (delivery: WebhookDelivery) =>
  delivery.last_response_status === null
    ? errorOf(delivery)
    : html`<span class="whole">answered ${delivery.last_response_status}</span>`

/** A delivery, with the type of its event. */
export interface TypedDelivery {
  readonly id: string
  readonly delivery: WebhookDelivery
  readonly type: string
}

export const deliveryPath = ({ id, webhook_endpoint }: WebhookDelivery) =>
  `/webhooks/${webhook_endpoint}/${id}` as const

/** Columns of one endpoint's deliveries, or, with `urls` by the ids of endpoints, of several ones'. */
export const deliveryColumns = (urls?: ReadonlyMap<string, string>): ReadonlyArray<Column<TypedDelivery>> => [
  {
    name: "Event",
    long: true,
    cell: ({ delivery, type }) =>
      html`<strong>${type}</strong>
        ${urls && html`<small class="under">${urls.get(delivery.webhook_endpoint)}</small>`}`
  },
  { name: "State", cell: ({ delivery }) => stateOf(delivery) },
  { name: "Last answer", cell: ({ delivery }) => delivery.last_response_status ?? errorOf(delivery) },
  { name: "Attempts", align: "end", cell: ({ delivery }) => delivery.attempt_count, wide: true },
  { name: "Date", cell: ({ delivery }) => time(delivery.created) }
]

/** Rows with the types of their events. */
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

/** An event, and how many of its deliveries are under way. Fails with `ResourceMissing` if there is none. */
export const findEvent = Effect.fnUntraced(function* (account: AccountId, id: string) {
  const accounts = yield* Accounts
  const event = yield* accounts.event(account, id)
  if (event === undefined) return yield* new ResourceMissing({ kind: "Event", id, param: "id" })
  const [pendingWebhooks] = yield* accounts.pendingDeliveries(account, [id])
  return { event, pendingWebhooks: pendingWebhooks! }
})

/** So many of an event's deliveries, its newest, are looked through for those that are still tried. */
const LOOKED_THROUGH_MAX = 100

/**
 * Sends events again to one endpoint, or, with null, to all that are subscribed to them now. Where a delivery is still
 * tried, its next attempt is made now, and there is no second delivery beside it (semantics 9.83): of several, that of
 * those that are `meant`, or else the newest.
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

/** Sends what some of an endpoint's deliveries are of to it again, each event once. */
export const resendDeliveries = (account: AccountId, webhookEndpoint: string, meant: ReadonlyArray<DeliveryRow>) =>
  resendEvents(account, eventsOf(meant), webhookEndpoint, meant)

export const eventsOf = (deliveries: ReadonlyArray<DeliveryRow>): ReadonlyArray<string> => [
  ...new Set(deliveries.map(({ event }) => event))
]
