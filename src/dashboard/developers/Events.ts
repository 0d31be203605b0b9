/** The list of events, filtered by type, and the page of an event. */
import { Effect, Layer } from "effect"
import { Accounts } from "../../engine/Accounts.ts"
import type { StoredEvent } from "../../engine/log/Events.ts"
import { parseJson } from "../../json/JsonParse.ts"
import { html } from "../../html/Html.ts"
import { type EventTypeFilter, eventTypeFilterOf } from "../../domain/Event.ts"
import { render } from "../../payments/shared/Events.ts"
import { WEBHOOK_ENDPOINT } from "../../payments/shared/Documents.ts"
import { sentKey } from "../../payments/shared/IdempotencyKeys.ts"
import { webhookDeliveryOf } from "../../payments/webhooks/WebhookDeliveries.ts"
import { filters, form } from "../frame/Form.ts"
import { json } from "../frame/Json.ts"
import { type Cursor, cursorIn, pageLinks, table } from "../frame/Table.ts"
import { badge, code, facts, NOTHING, section, time } from "../frame/Values.ts"
import { csvFile, type CsvFile, csvLink, createdColumn } from "../frame/CsvFile.ts"
import { answerOf, deliveryPath, findEvent, resendEvents, stateOf } from "../history/Deliveries.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { findObjects, type Listed, PAGE_ROWS } from "../frame/Queries.ts"
import { action, download, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

interface EventObject {
  readonly id: string
  readonly object: string
}

const objectOf = ({ object }: StoredEvent): EventObject => parseJson(object) as EventObject

const TYPE = /^[a-z_]+(\.[a-z_]+)*(\.\*)?$/

const typedIn = ({ query }: Visit): string => query.get("type")?.trim() ?? ""

/** The filter of the query; undefined if its type is unknown. */
const readFilter = (visit: Visit): { readonly type?: EventTypeFilter } | undefined => {
  const typed = typedIn(visit)
  if (typed === "") return {}
  const type = TYPE.test(typed) ? eventTypeFilterOf(typed as never) : undefined
  return type && { type }
}

const listEvents = (visit: Visit, { cursor, limit }: { readonly cursor: Cursor; readonly limit: number }) => {
  const asked = readFilter(visit)
  if (asked === undefined) return Effect.succeed<Listed<StoredEvent>>({ rows: [], hasMore: false })
  const page = Accounts.use((accounts) => accounts.events(visit.account, { limit, ...cursor, ...asked }))
  return Effect.map(page, ({ events, hasMore }): Listed<StoredEvent> => ({ rows: events, hasMore }))
}

const showAll: Show = Effect.fnUntraced(function* (visit) {
  const { hasMore, rows } = yield* listEvents(visit, { cursor: cursorIn(visit.query), limit: PAGE_ROWS })
  const isWrong = readFilter(visit) === undefined
  return {
    title: "Events",
    section: "Webhooks",
    back: ["/webhooks", "Webhooks"],
    ...(isWrong && { status: 400 }),
    live: ["event"],
    aside: html`<div class="buttons">${csvLink(visit, "/events.csv", rows)}</div>`,
    content: [
      filters(
        visit,
        "/events",
        (fields) => fields.text({ name: "type", label: "Type", hint: html`For example <code>payment_intent.*</code>` }),
        { errors: isWrong ? { type: "Unknown event type." } : {} }
      ),
      table({
        caption: "Events, newest first",
        columns: [
          { name: "Type", long: true, cell: ({ type }) => html`<strong>${type}</strong>` },
          { name: "Object", cell: (event) => objectLink(visit, objectOf(event).id) },
          { name: "Deliveries", align: "end", cell: ({ deliveries }) => deliveries, wide: true },
          { name: "ID", cell: ({ id }) => html`<code>${id}</code>`, wide: true },
          { name: "Date", cell: ({ at }) => time(Math.floor(at / 1000)) }
        ],
        rows,
        href: ({ id }) => visit.to(`/events/${id}`),
        empty: typedIn(visit) === "" ? "No events yet." : "No events of this type."
      }),
      pageLinks(visit, rows, hasMore)
    ]
  }
})

const valueHtml = (value: unknown) =>
  value === undefined ? NOTHING : html`<code class="value">${JSON.stringify(value)}</code>`

/** The fields that an update has changed, with old and new values. */
const changesSection = ({ object, previous }: StoredEvent) => {
  if (previous === null) return null
  const after = parseJson(object) as Readonly<Record<string, unknown>>
  return section(
    "Changes",
    table({
      caption: "Changed fields",
      columns: [
        { name: "Field", cell: ([field]) => field },
        { name: "Before", cell: ([, before]) => valueHtml(before) },
        { name: "After", cell: ([field]) => valueHtml(after[field]) }
      ],
      rows: Object.entries(previous),
      empty: "None."
    })
  )
}

/** Deliveries on an event's page, newest first. */
const DELIVERIES_MAX = 100

const deliveriesSection = Effect.fnUntraced(function* (visit: Visit, event: string) {
  const { account } = visit
  const found = yield* Accounts.use((accounts) => accounts.eventDeliveries(account, [event], DELIVERIES_MAX))
  const rows = found.flat().map(webhookDeliveryOf)
  const ids = rows.map(({ webhook_endpoint }) => webhook_endpoint)
  const endpoints = yield* findObjects(account, WEBHOOK_ENDPOINT, ids)
  return section(
    "Deliveries",
    table({
      caption: "Deliveries of this event, newest first",
      columns: [
        {
          name: "Endpoint",
          long: true,
          cell: ({ webhook_endpoint: id }) => endpoints.get(id)?.url ?? html`<code>${id}</code>`
        },
        { name: "State", cell: stateOf },
        { name: "Last response", cell: answerOf },
        { name: "Attempts", align: "end", cell: ({ attempt_count }) => attempt_count, wide: true },
        { name: "Date", cell: ({ created }) => time(created) }
      ],
      rows,
      href: (delivery) => visit.to(deliveryPath(delivery)),
      empty: "None. No endpoint was subscribed to this event type."
    })
  )
})

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const { event, pendingWebhooks } = yield* findEvent(visit.account, id)
  const key = sentKey(event.request?.idempotencyKey ?? null)
  return {
    title: event.type,
    section: "Webhooks",
    back: ["/events", "Events"],
    live: ["delivery"],
    aside: [
      pendingWebhooks > 0 && badge(`${pendingWebhooks} pending`, "wait"),
      visit.may("build") &&
        html`<div class="buttons">
          ${form({ visit, action: `/events/${id}/resend`, submit: "Send again", problem })}
        </div>`
    ],
    content: [
      facts([
        ["ID", code(id)],
        ["Object", objectLink(visit, objectOf(event).id)],
        ["Date", time(Math.floor(event.at / 1000))],
        ["Request", event.request && objectLink(visit, event.request.id)],
        ["Idempotency key", key],
        ["API version", event.apiVersion]
      ]),
      changesSection(event),
      yield* deliveriesSection(visit, id),
      section("JSON", json(visit, render(event, { account: visit.account, pendingWebhooks }), "The event as JSON"))
    ]
  }
})

const again = action({
  name: "event.resend_all",
  right: "build",
  page: "/events/:id",
  path: "/events/:id/resend",
  show,
  notice: "The event is being sent again to all endpoints that are subscribed to its type.",
  prepare: Effect.fnUntraced(function* ({ account }, { id = "" }) {
    return { entered: {}, command: yield* resendEvents(account, [id], null) }
  })
})

const columns: CsvFile<StoredEvent>["columns"] = [
  ["Event ID", ({ id }) => id],
  createdColumn(({ at }) => Math.floor(at / 1000)),
  ["Type", ({ type }) => type],
  ["Object", (event) => objectOf(event).id],
  ["Request", ({ request }) => request?.id],
  ["Idempotency key", ({ request }) => sentKey(request?.idempotencyKey ?? null)],
  ["API version", ({ apiVersion }) => apiVersion],
  ["Deliveries", ({ deliveries }) => String(deliveries)]
]

const file = download("/events.csv", "see", (visit) =>
  csvFile(visit, { name: "events", columns, read: (page) => listEvents(visit, page) })
)

export const layer = Layer.mergeAll(page("/events", "see", showAll), page("/events/:id", "see", show), again, file)
