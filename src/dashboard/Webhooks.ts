/** Webhooks: the endpoints, how they fare, what failed lately, and making one. */
import { Effect, Layer, Schema } from "effect"
import { ALL_EVENTS, EnabledEvents, WebhookEndpointUrl } from "../domain/WebhookEndpoint.ts"
import type { WebhookEndpoint } from "../domain/WebhookEndpoint.ts"
import { Accounts } from "../engine/Accounts.ts"
import { html } from "../pages/Html.ts"
import { WEBHOOK_ENDPOINT } from "../payments/Documents.ts"
import * as WebhookEndpoints from "../payments/WebhookEndpoints.ts"
import type { Fields } from "./components/Form.ts"
import { dialog } from "./components/Form.ts"
import { table } from "./components/Table.ts"
import { badge, NOTHING, section, time } from "./components/Values.ts"
import { delivered, deliveryColumns, deliveryPath, hasFailed } from "./Deliveries.ts"
import { list, PAGE_ROWS } from "./Reading.ts"
import type { Show } from "./Screens.ts"
import { action, Invalid, screen } from "./Screens.ts"
import { revealed, secretScreen } from "./WebhookSecret.ts"
import type { Visit } from "./Visit.ts"

/** So many endpoints are shown; a merchant has a few. */
const ENDPOINTS_MAX = 50
/** How an endpoint fares is told by so many of its newest deliveries. */
const LATELY = 100

/** The newest deliveries to an endpoint. */
const lately = ({ account }: Visit, destination: string) =>
  Effect.map(
    Accounts.use((accounts) => accounts.deliveries(account, { destination, limit: LATELY })),
    ({ deliveries }) => deliveries
  )

/** Event types as they are entered: apart by spaces, commas or lines. */
export const typesIn = (text: string): ReadonlyArray<string> => text.split(/[\s,]+/).filter((type) => type !== "")

export const endpointFields = (fields: Fields, endpoint?: WebhookEndpoint) => [
  fields.text({ name: "url", label: "URL", type: "url", required: true, value: endpoint?.url ?? "" }),
  fields.area({
    name: "enabled_events",
    label: "Event types",
    value: (endpoint?.enabled_events ?? [ALL_EVENTS]).join("\n"),
    hint: html`One per line, or <code>*</code> for all.`
  }),
  fields.text({ name: "description", label: "Description", value: endpoint?.description ?? "" })
]

/** What the fields say; what is wrong with them. */
export const enteredEndpoint = (values: ReadonlyMap<string, string>) => {
  const url = values.get("url")?.trim() ?? ""
  const enabledEvents: unknown = typesIn(values.get("enabled_events") ?? "")
  if (!Schema.is(WebhookEndpointUrl)(url)) {
    return new Invalid({ url: "This must be an absolute http or https URL without credentials." })
  }
  if (!Schema.is(EnabledEvents)(enabledEvents)) {
    return new Invalid({ enabled_events: "These must be types of events, or * alone." })
  }
  return { url, enabled_events: enabledEvents, description: values.get("description")?.trim() ?? "" }
}

const successOf = (ended: number, succeeded: number) =>
  ended === 0 ? NOTHING : badge(`${Math.floor((100 * succeeded) / ended)} %`, succeeded === ended ? "good" : "bad")

const show: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const { rows } = yield* list(visit.account, WEBHOOK_ENDPOINT, { limit: ENDPOINTS_MAX })
  const endpoints = yield* Effect.forEach(
    rows,
    (endpoint) => Effect.map(lately(visit, endpoint.id), (deliveries) => ({ endpoint, id: endpoint.id, deliveries })),
    { concurrency: 4 }
  )
  const failed = endpoints
    .flatMap(({ deliveries }) => deliveries.filter(hasFailed))
    .toSorted((one, other) => (one.id < other.id ? 1 : -1))
    .slice(0, PAGE_ROWS)
  return {
    title: "Webhooks",
    section: "Webhooks",
    live: ["webhook_endpoint", "delivery"],
    aside: html`<div class="buttons">
      <a class="button" href="${visit.to("/events")}">Events</a>
      ${
        visit.may("build") &&
        dialog("Add an endpoint", {
          visit,
          action: "/webhooks/add",
          submit: "Add",
          tone: "primary",
          problem,
          content: (fields) => endpointFields(fields)
        })
      }
    </div>`,
    content: [
      table({
        caption: "Endpoints, newest first",
        columns: [
          { name: "URL", long: true, cell: ({ endpoint }) => endpoint.url },
          { name: "Status", cell: ({ endpoint }) => badge(endpoint.status) },
          {
            name: "Delivered lately",
            cell: ({ deliveries }) =>
              successOf(
                deliveries.filter(({ state }) => state !== "pending" && state !== "canceled").length,
                deliveries.filter(({ state }) => state === "delivered").length
              )
          },
          { name: "Failing", align: "end", cell: ({ deliveries }) => deliveries.filter(hasFailed).length },
          { name: "Added", cell: ({ endpoint }) => time(endpoint.created), wide: true }
        ],
        rows: endpoints,
        href: ({ id }) => visit.to(`/webhooks/${id}`),
        empty: "No endpoints yet. Add one, and it is told of what happens."
      }),
      section(
        "Failed lately",
        table({
          caption: "Deliveries that failed, newest first",
          columns: deliveryColumns(visit),
          rows: yield* delivered(visit.account, failed),
          href: ({ delivery }) => visit.to(deliveryPath(delivery)),
          empty: "None."
        })
      )
    ]
  }
})

const add = action({
  name: "webhook_endpoint.create",
  right: "build",
  of: "/webhooks",
  path: "/webhooks/add",
  show,
  says: "The endpoint is added.",
  does: (visit, _, values) => {
    const entered = enteredEndpoint(values)
    if (entered instanceof Invalid) return Effect.succeed(entered)
    const command = Effect.map(WebhookEndpoints.create(entered, visit.merchant.api_version), revealed)
    return Effect.succeed({ entered, detail: entered.url, command, next: secretScreen(visit) })
  }
})

export const layer = Layer.merge(screen("/webhooks", "see", show), add)
