/** The history of some objects: every record that has written one of them (semantics dashboard.history). */
import { Effect } from "effect"
import type { AuditEntry } from "../../domain/AuditEntry.ts"
import type { PaymentNote } from "../../domain/PaymentNote.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { WebhookEndpoint } from "../../domain/WebhookEndpoint.ts"
import { Accounts, type HistoryEntry } from "../../engine/Accounts.ts"
import type { DeliveryRow } from "../../engine/Deliveries.ts"
import type { Document, Labels } from "../../engine/log/Document.ts"
import type { StoredEvent } from "../../engine/log/Events.ts"
import { type LoggedRequest, RequestLog } from "../../engine/RequestLog.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { AUDIT_ENTRY } from "../../payments/team/Audit.ts"
import { WEBHOOK_ENDPOINT } from "../../payments/shared/Documents.ts"
import { sentKey } from "../../payments/shared/IdempotencyKeys.ts"
import { webhookDeliveryOf } from "../../payments/webhooks/WebhookDeliveries.ts"
import { dialog } from "../frame/Form.ts"
import { type Cursor, cursorIn, pageLinks } from "../frame/Table.ts"
import { section, time, type Tone } from "../frame/Values.ts"
import { answerOf, deliveryPath, stateOf } from "./Deliveries.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { findObjects } from "../frame/Queries.ts"
import { type RecordSummary, summarizeRecord } from "./RecordSummary.ts"
import type { Visit } from "../frame/Visit.ts"

const PAGE_RECORDS = 50
/** Deliveries per event, newest first: an event can be resent any number of times. */
const DELIVERIES_MAX = 20

/** The objects of a history: the first id owns the page; `labels` add all objects that have them. */
export interface About {
  readonly ids: ReadonlyArray<string>
  readonly labels?: Labels
}

/** A record with its summaries, deliveries, endpoints and logged request. */
interface Touch extends HistoryEntry {
  readonly summaries: ReadonlyArray<RecordSummary>
  readonly deliveries: ReadonlyMap<string, ReadonlyArray<DeliveryRow>>
  /** Endpoints of the deliveries, without deleted ones. */
  readonly endpoints: ReadonlyMap<string, WebhookEndpoint>
  /** Undefined if the request log does not have the request. */
  readonly logged: LoggedRequest | undefined
}

/** Cursors of records are numbers. */
const recordCursorIn = (query: URLSearchParams): Cursor => {
  const cursor = cursorIn(query)
  return /^\d{16}$/.test(cursor.olderThan ?? cursor.newerThan ?? "") ? cursor : {}
}

const touchesOf = Effect.fnUntraced(function* ({ account }: Visit, entries: ReadonlyArray<HistoryEntry>) {
  const accounts = yield* Accounts
  const log = yield* RequestLog
  const events = entries.flatMap(({ events }) => events.map(({ id }) => id))
  const requests = entries.flatMap(({ request }) => (request === null ? [] : [request.id]))
  const [rows, logged] = yield* Effect.all(
    [
      accounts.eventDeliveries(account, events, DELIVERIES_MAX + 1),
      // The history is shown without the log if the log fails.
      Effect.orElseSucceed(log.find(account, requests), () => new Map<string, LoggedRequest>())
    ],
    { concurrency: "unbounded" }
  )
  const deliveries = new Map(events.map((id, i) => [id, rows[i]!]))
  const destinations = rows.flat().map(({ destination }) => destination)
  const endpoints = yield* findObjects(account, WEBHOOK_ENDPOINT, destinations)
  return entries.map((entry): Touch => ({
    ...entry,
    summaries: summarizeRecord(entry),
    deliveries,
    endpoints,
    logged: logged.get(entry.request?.id ?? "")
  }))
})

/** The objects' history, newest first, one page at a time. */
export const historySection = Effect.fnUntraced(function* (visit: Visit, about: About, actions: Child = null) {
  const asked = { ...about, ...recordCursorIn(visit.query), limit: PAGE_RECORDS }
  const { entries, hasMore } = yield* Accounts.use((accounts) => accounts.history(visit.account, asked))
  const touches = yield* touchesOf(visit, entries)
  const happenings = folded(touches).map((touch) => happening(visit, touch, about.ids[0]))
  return section("History", [timeline(happenings), pageLinks(visit, entries, hasMore)], actions)
})

export const recordSection = Effect.fnUntraced(function* (visit: Visit, entry: HistoryEntry) {
  const touches = yield* touchesOf(visit, [entry])
  return section("Changes", timeline(touches.map((touch) => happening(visit, touch))))
})

/** The operation that a record only asks the processor about again. */
const lookedAt = ({ summaries }: Touch): string | undefined =>
  summaries.length === 1 && summaries[0]!.isLook === true ? summaries[0]!.id : undefined

/** Tells looks without news that follow each other together, at the time of the newest. */
const folded = (touches: ReadonlyArray<Touch>): ReadonlyArray<Touch> => {
  const groups: Array<Array<Touch>> = []
  for (const touch of touches) {
    const same = groups.at(-1)
    const operation = lookedAt(touch)
    if (same !== undefined && operation !== undefined && lookedAt(same[0]!) === operation) same.push(touch)
    else groups.push([touch])
  }
  return groups.map((same) => {
    const [newest] = same as [Touch]
    if (same.length === 1) return newest
    const since = time(secondsOf(same.at(-1)!.at))
    return { ...newest, summaries: [{ ...newest.summaries[0]!, detail: html`${same.length} times since ${since}` }] }
  })
}

interface Happening {
  readonly at: number
  readonly tone: Tone
  readonly title: Child
  readonly by: Child
  readonly detail: Child
}

const timeline = (happenings: ReadonlyArray<Happening>): Html =>
  html`<ol class="timeline">
    ${happenings.map(
      ({ at, by, detail, title, tone }) =>
        html`<li class="${tone}">
          ${title}
          <p class="cause">${time(at)} · ${by}</p>
          ${detail}
        </li>`
    )}
  </ol>`

/** Renders a record. `own` is the object that owns the page. */
const happening = (visit: Visit, touch: Touch, own?: string): Happening => {
  const { summaries } = touch
  return {
    at: secondsOf(touch.at),
    tone: summaries.find(({ tone }) => tone !== undefined)?.tone ?? "plain",
    title: summaries.map((it) => summaryHtml(visit, it, own)),
    by: byHtml(touch),
    detail: [
      touch.events.length > 0 &&
        html`<div class="events">${touch.events.map((event) => eventHtml(visit, event, touch))}</div>`,
      traceHtml(visit, touch)
    ]
  }
}

/** A note, with a form to delete it for its author and for owners. */
const noteHtml = (visit: Visit, { id, payment_intent, person, text }: PaymentNote): Child =>
  html`<div class="told noted">
    <strong>Note</strong>
    ${
      mayDeleteNote(visit, person) &&
      dialog("Delete", {
        visit,
        action: `/payments/${payment_intent}/notes/${id}/delete`,
        submit: "Delete this note",
        tone: "danger"
      })
    }
    <p class="note">${text}</p>
  </div>`

/** True for the author of a note, and for owners. */
export const mayDeleteNote = ({ may, person }: Visit, author: string): boolean => person.id === author || may("team")

/** `Refunded 10.00 USD requested by customer ref_…` */
const summaryHtml = (visit: Visit, { detail, headline, id, note }: RecordSummary, own: string | undefined): Child => {
  if (note !== undefined) return noteHtml(visit, note)
  return html`<div class="told">
    <strong>${headline}</strong> ${detail && html`<small>${detail}</small>`} ${id !== own && objectLink(visit, id)}
  </div>`
}

/** `customer.updated`, with its deliveries: `delivered 200 shop.example/hooks`. */
const eventHtml = (visit: Visit, { id, type }: StoredEvent, { deliveries, endpoints }: Touch): Child => {
  const rows = deliveries.get(id) ?? []
  return html`<div class="event">
    <a href="${visit.to(`/events/${id}`)}"><code>${type}</code></a>
    <div>
      ${rows.slice(0, DELIVERIES_MAX).map((row) => deliveryHtml(visit, row, endpoints))}
      ${rows.length > DELIVERIES_MAX && html`<div class="delivery">Only the newest deliveries are shown.</div>`}
    </div>
  </div>`
}

const deliveryHtml = (visit: Visit, row: DeliveryRow, endpoints: Touch["endpoints"]): Child => {
  const delivery = webhookDeliveryOf(row)
  const { attempt_count, webhook_endpoint: id } = delivery
  const endpoint = endpoints.get(id)
  return html`<div class="delivery">
    ${stateOf(delivery)} ${attempt_count > 0 && html`<span>${answerOf(delivery)},</span>`}
    <a href="${visit.to(deliveryPath(delivery))}"
      >${endpoint === undefined ? html`<code>${id}</code>` : html`<bdi>${addressOf(endpoint)}</bdi>`}</a
    >
  </div>`
}

/** `https://shop.example/hooks?key=1` → `shop.example/hooks` */
const addressOf = ({ url }: WebhookEndpoint): string => {
  const { host, pathname } = new URL(url)
  return host + (pathname === "/" ? "" : pathname)
}

/** The actor: a person in the dashboard, the payer, an API client, or a timer. */
const byHtml = ({ others, request }: Touch): Child => {
  const entry = others.find(({ kind }) => kind === AUDIT_ENTRY.name) as Document<AuditEntry> | undefined
  if (entry !== undefined) {
    const place = request === null ? "on the command line" : "in the dashboard"
    return `by ${entry.value.email ?? "a teammate"} (${entry.value.role}) ${place}`
  }
  if (request === null) return "automatically"
  const { idempotencyKey } = request
  const sent = sentKey(idempotencyKey)
  // Payers on Till's pages submit forms, payers on a shop's own page send keys that are kept apart (semantics
  // idempotency.scope).
  return sent === idempotencyKey ? "by your server" : sent === null ? "by the payer" : "by the payer's browser"
}

/** The request with its keys, for searching in logs. It is folded, as other content for developers. */
const traceHtml = (visit: Visit, { logged, request }: Touch): Child => {
  if (request === null) return null
  const key = sentKey(request.idempotencyKey)
  const id = html`<code>${request.id}</code>`
  return html`<details class="trace">
    <summary>For developers</summary>
    Request
    ${logged === undefined ? id : html`<a href="${visit.to(`/requests/${request.id}`)}">${id}</a>`}${
      key !== null && html`, idempotency key <code>${key}</code>`
    }${
      logged !== undefined &&
      html`, API key <a href="${visit.to("/requests", { key: logged.apiKey })}"><code>${logged.apiKey}</code></a>`
    }
  </details>`
}
