/** The page of a webhook endpoint, with its deliveries and actions. */
import { Effect, Layer } from "effect"
import { TRIGGERABLE_EVENT_TYPES } from "../../domain/TriggerRecipes.ts"
import { ALL_EVENTS, WEBHOOK_SECRET_GRACE_SECONDS_MAX, type WebhookEndpoint } from "../../domain/WebhookEndpoint.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { DeliveryRow } from "../../engine/Deliveries.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { WEBHOOK_ENDPOINT } from "../../payments/shared/Documents.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import * as WebhookEndpoints from "../../payments/webhooks/WebhookEndpoints.ts"
import { dialog, filters, form, type Problem } from "../frame/Form.ts"
import { cursorIn, pageLinks, searchPageLinks, table } from "../frame/Table.ts"
import { badge, code, facts, section, time } from "../frame/Values.ts"
import { deliveryColumns, deliveryPath, hasFailed, type TypedDelivery, withEventTypes } from "../history/Deliveries.ts"
import { pickChanged } from "../frame/FormDecoding.ts"
import { PAGE_ROWS } from "../frame/Queries.ts"
import { boxOf, findDeliveries, LOOKED_THROUGH_MAX, resendChosen, resendFailed, windowFields } from "./Resending.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"
import { chosenType, isTriggerable, trigger, typeOptions } from "./TriggerEvent.ts"
import { endpointFields, enteredEndpoint, revealSecret, secretPage } from "./Webhooks.ts"

const STATES = [
  ["", "Any"],
  ["failed", "failed"],
  ["delivered", "delivered"],
  ["pending", "pending"],
  ["exhausted", "exhausted"],
  ["canceled", "canceled"]
] as const

const isInState = (row: DeliveryRow, state: string): boolean =>
  state === "" || row.state === state || (state === "failed" && hasFailed(row))

/** A page of the endpoint's deliveries in the requested state. `end` is the last delivery that was read. */
const readDeliveries = Effect.fnUntraced(function* ({ account, query }: Visit, destination: string) {
  const accounts = yield* Accounts
  const state = query.get("state") ?? ""
  const cursor = cursorIn(query)
  if (state !== "") {
    return yield* findDeliveries(
      accounts,
      { account, destination, ...cursor },
      (row) => isInState(row, state),
      PAGE_ROWS
    )
  }
  const page = yield* accounts.deliveries(account, { destination, limit: PAGE_ROWS, ...cursor })
  return { ...page, end: page.deliveries.at(-1)?.id }
})

/** Event types that the endpoint receives and that can be triggered. */
const typesOf = ({ enabled_events }: WebhookEndpoint) =>
  (enabled_events as ReadonlyArray<string>).includes(ALL_EVENTS)
    ? TRIGGERABLE_EVENT_TYPES
    : enabled_events.filter(isTriggerable)

const buttons = (visit: Visit, endpoint: WebhookEndpoint, problem: Problem | null): Child => {
  if (!visit.may("build")) return null
  const of = `/webhooks/${endpoint.id}` as const
  const isEnabled = endpoint.status === "enabled"
  return html`<div class="buttons">
    ${dialog("Edit", {
      visit,
      action: `${of}/edit`,
      submit: "Save",
      problem,
      isEdit: true,
      content: (fields) => endpointFields(fields, endpoint)
    })}
    ${dialog("Replace the secret", {
      visit,
      action: `${of}/roll-secret`,
      submit: "Replace",
      problem,
      content: (fields) =>
        fields.text({
          name: "hours",
          label: "Keep the old secret valid for (hours)",
          inputmode: "numeric",
          value: "24",
          hint: "0 ends it at once."
        })
    })}
    ${
      isEnabled &&
      dialog("Resend failed deliveries", {
        visit,
        action: `${of}/resend`,
        submit: "Send again",
        problem,
        content: windowFields(visit.zone)
      })
    }
    ${
      isEnabled &&
      !visit.livemode &&
      dialog("Send a test event", {
        visit,
        action: `${of}/test`,
        submit: "Send",
        problem,
        content: (fields) =>
          fields.choice({
            name: "type",
            label: "Type",
            options: typeOptions(typesOf(endpoint)),
            hint: "Creates real objects in test mode. Other endpoints with this event type are notified too."
          })
      })
    }
    ${form({ visit, action: `${of}/status`, submit: isEnabled ? "Disable" : "Enable", tone: "quiet", problem })}
    ${dialog("Delete", { visit, action: `${of}/delete`, submit: "Delete the endpoint", tone: "danger", problem })}
  </div>`
}

interface DeliveriesPage {
  readonly rows: ReadonlyArray<TypedDelivery>
  readonly hasMore: boolean
  readonly end: string | undefined
}

const deliveriesSection = (
  visit: Visit,
  { id, status }: WebhookEndpoint,
  { end, hasMore, rows }: DeliveriesPage,
  problem: Problem | null
): Child => {
  const isSearched = (visit.query.get("state") ?? "") !== ""
  const deliveriesTable = (box?: (row: TypedDelivery) => Html) =>
    table({
      caption: "Deliveries, newest first",
      columns: deliveryColumns(),
      rows,
      ...(box !== undefined && { box }),
      href: ({ delivery }) => visit.to(deliveryPath(delivery)),
      empty: hasMore
        ? `No match in these ${LOOKED_THROUGH_MAX.toLocaleString("en")} deliveries. Continue with older ones.`
        : "None."
    })
  return section("Deliveries", [
    filters(visit, `/webhooks/${id}`, (fields) => fields.choice({ name: "state", label: "State", options: STATES })),
    visit.may("build") && status === "enabled" && rows.length > 0
      ? form({
          visit,
          action: `/webhooks/${id}/resend-chosen`,
          submit: "Resend selected",
          tone: "quiet",
          problem,
          choices: deliveriesTable(boxOf(rows, visit.zone))
        })
      : deliveriesTable(),
    isSearched
      ? searchPageLinks(visit, end === undefined ? [] : [{ id: end }], hasMore)
      : pageLinks(visit, rows, hasMore)
  ])
}

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const { hidden, value: endpoint } = yield* requireDocument(visit.account, WEBHOOK_ENDPOINT, id)
  const { failingSince } = hidden
  const { deliveries, ...page } = yield* readDeliveries(visit, id)
  const rows = yield* withEventTypes(visit.account, deliveries)
  return {
    title: endpoint.url,
    section: "Webhooks",
    back: ["/webhooks", "Webhooks"],
    live: ["webhook_endpoint", "delivery"],
    aside: [badge(endpoint.status), buttons(visit, endpoint, problem)],
    content: [
      facts([
        ["ID", code(id)],
        ["Description", endpoint.description],
        ["Event types", endpoint.enabled_events.join(", ")],
        ["API version", endpoint.api_version],
        ["Added", time(endpoint.created)],
        ["Failing since", failingSince === undefined ? null : time(secondsOf(failingSince))]
      ]),
      deliveriesSection(visit, endpoint, { rows, ...page }, problem)
    ]
  }
})

const onPage = { right: "build", page: "/webhooks/:id", show } as const

const edit = action({
  ...onPage,
  name: "webhook_endpoint.update",
  path: "/webhooks/:id/edit",
  notice: "Endpoint updated.",
  prepare: (_, { id = "" }, values) => {
    const all = enteredEndpoint(values)
    if (all instanceof Invalid) return Effect.succeed(all)
    const entered = pickChanged(values, all)
    return Effect.succeed({ entered, detail: all.url, command: WebhookEndpoints.update(id, entered) })
  }
})

const setStatus = action({
  ...onPage,
  name: "webhook_endpoint.set_status",
  path: "/webhooks/:id/status",
  notice: "Endpoint switched.",
  prepare: Effect.fnUntraced(function* ({ account }, { id = "" }) {
    const { status } = (yield* requireDocument(account, WEBHOOK_ENDPOINT, id)).value
    const entered = { status: status === "enabled" ? ("disabled" as const) : ("enabled" as const) }
    return { entered: {}, detail: entered.status, command: WebhookEndpoints.update(id, entered) }
  })
})

const HOURS_MAX = WEBHOOK_SECRET_GRACE_SECONDS_MAX / 3600

const rollSecret = action({
  ...onPage,
  name: "webhook_endpoint.roll_secret",
  path: "/webhooks/:id/roll-secret",
  notice: "Signing secret replaced.",
  prepare: (visit, { id = "" }, values) => {
    const hours = /^\d{1,2}$/.test(values.get("hours") ?? "") ? Number(values.get("hours")) : Infinity
    if (hours > HOURS_MAX) return Effect.succeed(new Invalid({ hours: `This must be from 0 to ${HOURS_MAX}.` }))
    const entered = { expiresIn: hours * 3600 }
    const command = Effect.map(WebhookEndpoints.rollSecret(id, entered), revealSecret)
    return Effect.succeed({ entered, detail: `${hours} h`, command, next: secretPage(visit) })
  }
})

const test = action({
  ...onPage,
  name: "webhook_endpoint.test",
  path: "/webhooks/:id/test",
  notice: "Event triggered. Its delivery is on its way.",
  prepare: Effect.fnUntraced(function* ({ account }, { id = "" }, values) {
    const endpoint = (yield* requireDocument(account, WEBHOOK_ENDPOINT, id)).value
    const type = chosenType(values.get("type") ?? "", typesOf(endpoint))
    if (type instanceof Invalid) return type
    return { entered: { type }, detail: type, command: trigger(account, type) }
  })
})

const remove = action({
  ...onPage,
  name: "webhook_endpoint.delete",
  path: "/webhooks/:id/delete",
  notice: "Endpoint deleted.",
  prepare: (_, { id = "" }) =>
    Effect.succeed({ entered: {}, command: WebhookEndpoints.remove(id), next: () => "/webhooks" as const })
})

export const layer = Layer.mergeAll(
  page("/webhooks/:id", "see", show),
  edit,
  setStatus,
  rollSecret,
  resendFailed(show),
  resendChosen(show),
  test,
  remove
)
