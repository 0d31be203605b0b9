/** The list of webhook endpoints with their health and recent failures, and the form for a new endpoint. */
import { Effect, Layer, Redacted, Schema } from "effect"
import { ALL_EVENTS, EnabledEvents, type WebhookEndpoint, WebhookEndpointUrl } from "../../domain/WebhookEndpoint.ts"
import { Revealed } from "../../http/OneTimeSecrets.ts"
import { html } from "../../html/Html.ts"
import type { WithSecret } from "../../payments/webhooks/WebhookEndpoints.ts"
import * as WebhookEndpoints from "../../payments/webhooks/WebhookEndpoints.ts"
import { type Health, readHealth } from "./EndpointHealth.ts"
import { dialog, type Fields } from "../frame/Form.ts"
import { table } from "../frame/Table.ts"
import { badge, code, facts, NOTHING, section, time } from "../frame/Values.ts"
import { withEventTypes, deliveryColumns, deliveryPath } from "../history/Deliveries.ts"
import { PAGE_ROWS } from "../frame/Queries.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import type { PageContent } from "../frame/Shell.ts"
import type { Visit } from "../frame/Visit.ts"

/** Splits event types at spaces, commas and line breaks. */
const typesIn = (text: string): ReadonlyArray<string> => text.split(/[\s,]+/).filter((type) => type !== "")

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

/** The entered endpoint, or the errors of its fields. */
export const enteredEndpoint = (values: ReadonlyMap<string, string>) => {
  const url = values.get("url")?.trim() ?? ""
  const enabledEvents: unknown = typesIn(values.get("enabled_events") ?? "")
  if (!Schema.is(WebhookEndpointUrl)(url)) {
    return new Invalid({ url: "This must be an absolute http or https URL without credentials." })
  }
  if (!Schema.is(EnabledEvents)(enabledEvents)) {
    return new Invalid({ enabled_events: "Enter event types, or * alone." })
  }
  return { url, enabled_events: enabledEvents, description: values.get("description")?.trim() ?? "" }
}

const successOf = ({ delivered, failing }: Health) => {
  const ended = delivered + failing.length
  if (ended === 0) return NOTHING
  return badge(`${Math.floor((100 * delivered) / ended)} %`, failing.length === 0 ? "good" : "bad")
}

const show: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const endpoints = yield* readHealth(visit)
  const failed = endpoints
    .flatMap(({ failing }) => failing)
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
          { name: "Recent success rate", cell: successOf },
          { name: "Failing", align: "end", cell: ({ failing }) => failing.length },
          { name: "Added", cell: ({ endpoint }) => time(endpoint.created), wide: true }
        ],
        rows: endpoints,
        href: ({ id }) => visit.to(`/webhooks/${id}`),
        empty: "No endpoints yet. Add one to get notified about events."
      }),
      section(
        "Recent failures",
        table({
          caption: "Failed deliveries, newest first",
          columns: deliveryColumns(new Map(endpoints.map(({ endpoint, id }) => [id, endpoint.url]))),
          rows: yield* withEventTypes(visit.account, failed),
          href: ({ delivery }) => visit.to(deliveryPath(delivery)),
          empty: "None."
        })
      )
    ]
  }
})

/** A form that is sent again shows the secret again, as over the API (semantics webhooks.secret). */
export const revealSecret = ({ secret, value }: WithSecret) =>
  new Revealed(value, { secret: Redacted.value(secret) }, "all")

export const secretPage =
  (visit: Visit) =>
  (endpoint: { readonly id?: string } & Readonly<Record<string, unknown>>): PageContent => ({
    title: "Signing secret",
    section: "Webhooks",
    back: [`/webhooks/${endpoint.id!}`, "Endpoint"],
    notice: "This secret is shown only once. Use it on your server to verify webhook signatures.",
    content: facts([
      ["Secret", code(String(endpoint["secret"]))],
      ["Endpoint", objectLink(visit, endpoint.id!)],
      ["URL", String(endpoint["url"])]
    ])
  })

const add = action({
  name: "webhook_endpoint.create",
  right: "build",
  page: "/webhooks",
  path: "/webhooks/add",
  show,
  notice: "Endpoint added.",
  prepare: (visit, _, values) => {
    const entered = enteredEndpoint(values)
    if (entered instanceof Invalid) return Effect.succeed(entered)
    const command = Effect.map(WebhookEndpoints.create(entered, visit.merchant.api_version), revealSecret)
    return Effect.succeed({ entered, detail: entered.url, command, next: secretPage(visit) })
  }
})

export const layer = Layer.merge(page("/webhooks", "see", show), add)
