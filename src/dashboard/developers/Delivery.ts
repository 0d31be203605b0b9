/** The page of a webhook delivery: its body, its attempts and their responses, and resending it. */
import { Effect, Layer } from "effect"
import { ParameterInvalid, ResourceMissing } from "../../domain/Errors.ts"
import type { WebhookDelivery } from "../../domain/WebhookDelivery.ts"
import { Accounts } from "../../engine/Accounts.ts"
import { html } from "../../html/Html.ts"
import { WEBHOOK_ENDPOINT } from "../../payments/shared/Documents.ts"
import { render } from "../../payments/shared/Events.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { webhookDeliveryOf } from "../../payments/webhooks/WebhookDeliveries.ts"
import { form } from "../frame/Form.ts"
import { json } from "../frame/Json.ts"
import { table } from "../frame/Table.ts"
import { badge, code, facts, section, time } from "../frame/Values.ts"
import { answerOf, findEvent, resendDeliveries, stateOf } from "../history/Deliveries.ts"
import { action, page, type Params, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

const readDelivery = Effect.fnUntraced(function* ({ account }: Visit, { delivery = "", id = "" }: Params) {
  const endpoint = (yield* requireDocument(account, WEBHOOK_ENDPOINT, id)).value
  const row = yield* Accounts.use((accounts) => accounts.delivery(account, id, delivery))
  if (row === undefined) return yield* new ResourceMissing({ kind: "WebhookDelivery", id: delivery, param: "id" })
  return { endpoint, row, delivery: webhookDeliveryOf(row) }
})

const attemptsTable = ({ attempts }: WebhookDelivery) =>
  table({
    caption: "Attempts, first to last",
    columns: [
      { name: "Attempt", align: "end", cell: ({ attempt }) => attempt },
      {
        name: "Response",
        cell: ({ error, response_status }) =>
          response_status === null
            ? badge(error ?? "none", "bad")
            : badge(String(response_status), response_status < 300 && response_status >= 200 ? "good" : "bad")
      },
      { name: "Duration", align: "end", cell: ({ duration_ms }) => html`<span class="whole">${duration_ms} ms</span>` },
      { name: "Started", cell: ({ started_at }) => time(started_at) }
    ],
    rows: attempts,
    empty: "None yet."
  })

/** The response body of the newest attempt that has one. */
const responseSection = ({ attempts }: WebhookDelivery) => {
  const answered = attempts.findLast(({ response_body }) => response_body !== null)
  return (
    answered !== undefined &&
    section(
      `Response to attempt ${answered.attempt}`,
      html`<pre tabindex="0" role="region" aria-label="Response body">${answered.response_body}</pre>`
    )
  )
}

const show: Show = Effect.fnUntraced(function* (visit, params, problem) {
  const { delivery, endpoint } = yield* readDelivery(visit, params)
  const { event, pendingWebhooks } = yield* findEvent(visit.account, delivery.event)
  const isPending = delivery.status === "pending"
  const again =
    visit.may("build") &&
    endpoint.status === "enabled" &&
    html`<div class="buttons">
      ${form({
        visit,
        action: `/webhooks/${endpoint.id}/${delivery.id}/resend`,
        submit: isPending ? "Attempt now" : "Send again",
        problem,
        content: () => isPending && html`<input type="hidden" name="pending" value="on" />`
      })}
    </div>`
  return {
    title: event.type,
    section: "Webhooks",
    back: [`/webhooks/${endpoint.id}`, endpoint.url],
    live: ["delivery"],
    aside: [stateOf(delivery), again],
    content: [
      facts([
        ["ID", code(delivery.id)],
        ["URL", endpoint.url],
        ["Endpoint", html`<a href="${visit.to(`/webhooks/${endpoint.id}`)}"><code>${endpoint.id}</code></a>`],
        ["Event", html`<a href="${visit.to(`/events/${event.id}`)}"><code>${event.id}</code></a>`],
        ["Last response", answerOf(delivery)],
        ["Next attempt", delivery.next_attempt_at === null ? null : time(delivery.next_attempt_at)],
        ["Created", time(delivery.created)]
      ]),
      section("Attempts", attemptsTable(delivery)),
      responseSection(delivery),
      section(
        "Request body",
        json(visit, render(event, { account: visit.account, pendingWebhooks }), "The body as JSON")
      )
    ]
  }
})

const OVER = new ParameterInvalid({ param: "delivery", rule: "a pending delivery, and this one has ended" })

const again = action({
  name: "event.resend",
  right: "build",
  page: "/webhooks/:id/:delivery",
  path: "/webhooks/:id/:delivery/resend",
  show,
  notice: "The event is being sent again.",
  prepare: Effect.fnUntraced(function* (visit, params, values) {
    const { endpoint, row } = yield* readDelivery(visit, params)
    // A request for an immediate attempt must not create a second delivery after this one has arrived. The command
    // itself refuses, so that the stored response of the form stays: when the form is sent twice, the second submission
    // already finds the delivery ended by the first.
    const isOver = values.has("pending") && row.state !== "pending"
    return {
      entered: {},
      subject: row.event,
      detail: endpoint.id,
      command: isOver ? Effect.fail(OVER) : yield* resendDeliveries(visit.account, endpoint.id, [row]),
      next: () => `/webhooks/${endpoint.id}` as const
    }
  })
})

export const layer = Layer.merge(page("/webhooks/:id/:delivery", "see", show), again)
