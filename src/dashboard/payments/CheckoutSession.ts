/** The page of a checkout session: its address, its line items and its outcome. */
import { Effect, Layer } from "effect"
import { type CheckoutSession, type LineItem, UpdateCheckoutSession } from "../../domain/CheckoutSession.ts"
import { type Child, html } from "../../html/Html.ts"
import * as Commands from "../../payments/lifecycles/CheckoutSessions.ts"
import { CHECKOUT_SESSION, LINE_ITEMS, lineItemsId } from "../../payments/shared/Documents.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { dialog, type Problem } from "../frame/Form.ts"
import { billingHtml } from "../frame/Cards.ts"
import { forDevelopers, json } from "../frame/Json.ts"
import { qrCode } from "../frame/QrCode.ts"
import { table } from "../frame/Table.ts"
import { amountText, badge, code, facts, money, section, time } from "../frame/Values.ts"
import { updateWith } from "../frame/FormDecoding.ts"
import { historySection } from "../history/History.ts"
import { metadataEditor, metadataAction } from "../frame/Metadata.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { NO_CARDS } from "./PaymentLinks.ts"
import { customerLink, customersOf } from "./Payers.ts"
import { action, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

const buttons = (visit: Visit, { id, status, url }: CheckoutSession, problem: Problem | null): Child =>
  visit.may("build") &&
  status === "open" &&
  html`<div class="buttons">
    ${url !== null && html`<a class="button" href="${url}" target="_blank" rel="noopener">Open checkout</a>`}
    ${dialog("Close checkout", {
      visit,
      action: `/checkout-sessions/${id}/expire`,
      submit: "Close this checkout",
      tone: "danger",
      problem,
      content: () => html`<p class="field">Nobody can pay on its page after that.</p>`
    })}
  </div>`

const linesTable = (visit: Visit, lines: ReadonlyArray<LineItem>): Child =>
  table({
    caption: "Items",
    columns: [
      { name: "Item", long: true, cell: ({ description }) => html`<bdi>${description}</bdi>` },
      { name: "Quantity", align: "end", cell: ({ quantity }) => String(quantity) },
      { name: "Price", wide: true, cell: ({ price }) => objectLink(visit, price) },
      { name: "Amount", align: "end", cell: ({ amount_total, currency }) => money(amount_total, currency) }
    ],
    rows: lines,
    empty: "None."
  })

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const session = (yield* requireDocument(visit.account, CHECKOUT_SESSION, id)).value
  const lines = (yield* requireDocument(visit.account, LINE_ITEMS, lineItemsId(id))).value.data
  const { customer, payment_intent, url, ...rest } = session
  const customers = yield* customersOf(visit.account, [session])
  const currency = session.currency ?? "usd"
  const total = session.amount_total ?? 0
  return {
    title: amountText(total, currency),
    section: "Products",
    back: ["/checkout-sessions", "Checkout sessions"],
    live: ["checkout.session", "payment_intent", "event", "delivery"],
    aside: [badge(session.status), badge(session.payment_status), buttons(visit, session, problem)],
    content: [
      url !== null &&
        section(
          session.payment_link === undefined ? "One-time link" : "Checkout page",
          html`<p class="hint">
              ${
                visit.takesCards
                  ? html`This link works for one payment. Anyone with it can pay until ${time(session.expires_at)}.`
                  : NO_CARDS
              }
            </p>
            <p>${code(url)}</p>
            ${qrCode({ text: url, label: "The one-time link as a QR code", name: `one-time-link-${id}` })}`
        ),
      section(
        "Details",
        facts([
          ["ID", code(id)],
          ["Payment", payment_intent && objectLink(visit, payment_intent)],
          ["Payment link", session.payment_link && objectLink(visit, session.payment_link)],
          ["Customer", customer && customerLink(visit, customers, customer)],
          ["Payer", billingHtml(session.customer_details ?? {})],
          ["Created", time(session.created)],
          [session.status === "expired" ? "Would have expired" : "Expires", time(session.expires_at)],
          ["After payment", session.success_url && code(session.success_url)],
          ["Reference", session.client_reference_id]
        ])
      ),
      metadataEditor(visit, `/checkout-sessions/${id}`, session.metadata, problem),
      section("Items", linesTable(visit, lines)),
      yield* historySection(visit, { ids: [id] }),
      forDevelopers(json(visit, { ...rest, customer, payment_intent, url }, "The session as JSON"))
    ]
  }
})

const expire = action({
  name: "checkout_session.expire",
  right: "build",
  page: "/checkout-sessions/:id",
  path: "/checkout-sessions/:id/expire",
  show,
  notice: "Checkout closed.",
  prepare: (_, { id = "" }) => Effect.succeed({ entered: {}, command: Commands.expire(id) })
})

const updateMetadata = metadataAction({
  name: "checkout_session",
  page: "/checkout-sessions/:id",
  kind: CHECKOUT_SESSION,
  show,
  update: updateWith(UpdateCheckoutSession, Commands.update)
})

export const layer = Layer.mergeAll(page("/checkout-sessions/:id", "see", show), expire, updateMetadata)
