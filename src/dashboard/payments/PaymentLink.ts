/** The page of a payment link: its address as a QR code, what it sells, and what was paid. */
import { Effect, Layer } from "effect"
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import { type PaymentLink, type PaymentLinkItem, stateOf, UpdatePaymentLink } from "../../domain/PaymentLink.ts"
import { type Child, html } from "../../html/Html.ts"
import { CHECKOUT_SESSION, PAYMENT_LINK, PAYMENT_LINK_ITEMS } from "../../payments/shared/Documents.ts"
import * as Commands from "../../payments/lifecycles/PaymentLinks.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { dialog, form, type Problem, seenField } from "../frame/Form.ts"
import { updateWith } from "../frame/FormDecoding.ts"
import { forDevelopers, json } from "../frame/Json.ts"
import { metadataAction, metadataEditor } from "../frame/Metadata.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { action, page, type Show } from "../frame/Page.ts"
import { qrCode } from "../frame/QrCode.ts"
import { listObjects } from "../frame/Queries.ts"
import { table } from "../frame/Table.ts"
import { badge, code, facts, money, NOTHING, section, time } from "../frame/Values.ts"
import type { Visit } from "../frame/Visit.ts"
import { historySection } from "../history/History.ts"
import { changeableFields, changeableIn, LIMIT, REDIRECT } from "./NewPaymentLink.ts"
import { type Customers, customersOf, payerHtml } from "./Payers.ts"
import { linkBadge, NO_CARDS } from "./PaymentLinks.ts"

/** Newest checkouts on the link's page. */
const SESSIONS_MAX = 10

const buttons = (visit: Visit, link: PaymentLink, problem: Problem | null): Child => {
  const { active, after_completion, id, inactive_message, restrictions, url } = link
  const at = `/payment-links/${id}` as const
  return html`<div class="buttons">
    <a class="button" href="${url}" target="_blank" rel="noopener">Open link</a>
    ${
      visit.may("build") && [
        dialog("Edit", {
          visit,
          action: `${at}/edit`,
          submit: "Save",
          problem,
          isEdit: true,
          content: (fields) =>
            changeableFields(fields, {
              limit: restrictions === null ? "" : String(restrictions.completed_sessions.limit),
              redirect: after_completion.redirect?.url ?? "",
              message: inactive_message ?? ""
            })
        }),
        active
          ? dialog("Deactivate", {
              visit,
              action: `${at}/deactivate`,
              submit: "Deactivate the link",
              tone: "danger",
              problem,
              content: () =>
                html`<p class="field">
                  The link takes no more payments, not even from payers who have its checkout open. You can activate it
                  again.
                </p>`
            })
          : form({ visit, action: `${at}/activate`, submit: "Activate", tone: "quiet", problem })
      ]
    }
  </div>`
}

/** Describes the link's state by its effect on visitors. */
const hintOf = (link: PaymentLink): string => {
  switch (stateOf(link)) {
    case "inactive":
      return "This link is off. Visitors are told that it is not active."
    case "used_up":
      return "The limit of payments is reached. Raise it to take more."
    case "open":
      return link.restrictions === null
        ? "Anyone with this link can pay, any number of times."
        : "Anyone with this link can pay until the limit of payments is reached."
  }
}

const itemsTable = (visit: Visit, items: ReadonlyArray<PaymentLinkItem>): Child =>
  table({
    caption: "Items",
    columns: [
      { name: "Item", long: true, cell: ({ description }) => html`<bdi>${description}</bdi>` },
      {
        name: "Quantity",
        align: "end",
        cell: ({ adjustable_quantity: bounds, quantity }) =>
          bounds === null ? String(quantity) : `${bounds.minimum} to ${bounds.maximum}, payers choose`
      },
      { name: "Price", wide: true, cell: ({ price }) => objectLink(visit, price) },
      { name: "Amount", align: "end", cell: ({ amount_total, currency }) => money(amount_total, currency) }
    ],
    rows: items,
    empty: "None."
  })

const sessionsTable = (visit: Visit, sessions: ReadonlyArray<CheckoutSession>, customers: Customers): Child =>
  table({
    caption: "Checkouts of this link, newest first",
    columns: [
      { name: "Amount", align: "end", cell: (session) => money(session.amount_total ?? 0, session.currency ?? "usd") },
      { name: "Status", cell: ({ payment_status, status }) => [badge(status), " ", badge(payment_status)] },
      { name: "Payer", long: true, cell: (session) => payerHtml(visit, customers, session, session.customer_details) },
      {
        name: "Payment",
        wide: true,
        cell: ({ payment_intent }) => (payment_intent === null ? NOTHING : objectLink(visit, payment_intent))
      },
      { name: "Date", cell: ({ created }) => time(created) }
    ],
    rows: sessions,
    href: ({ id }) => visit.to(`/checkout-sessions/${id}`),
    empty: "Nobody has started to pay with this link yet."
  })

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const { hidden, value: link } = yield* requireDocument(visit.account, PAYMENT_LINK, id)
  const items = (yield* requireDocument(visit.account, PAYMENT_LINK_ITEMS, Commands.itemsId(id))).value.data
  const listed = { labels: { payment_link: id }, limit: SESSIONS_MAX }
  const { hasMore, rows } = yield* listObjects(visit.account, CHECKOUT_SESSION, listed)
  const customers = yield* customersOf(visit.account, rows)
  const { after_completion, billing_address_collection, created, inactive_message, restrictions, url } = link
  return {
    title: items.map(({ description }) => description).join(", "),
    section: "Products",
    back: ["/payment-links", "Payment links"],
    live: ["payment_link", "checkout.session", "event", "delivery"],
    aside: [linkBadge(link), buttons(visit, link, problem)],
    content: [
      section(
        "Payment link",
        html`<p class="hint">${visit.takesCards ? hintOf(link) : NO_CARDS}</p>
          <p>${code(url)}</p>
          ${qrCode({ text: url, label: "The payment link as a QR code", name: `payment-link-${id}` })}`
      ),
      section(
        "Details",
        facts([
          ["ID", code(id)],
          ["Completed payments", String(hidden.completed)],
          ["Limit of payments", restrictions && String(restrictions.completed_sessions.limit)],
          [
            "After payment",
            after_completion.redirect ? code(after_completion.redirect.url) : "Till's confirmation page"
          ],
          ["Text while inactive", inactive_message && html`<bdi>${inactive_message}</bdi>`],
          ["Billing address", billing_address_collection === "required" ? "required" : null],
          ["Phone number", link.phone_number_collection.enabled ? "required" : null],
          ["Created", time(created)]
        ])
      ),
      metadataEditor(visit, `/payment-links/${id}`, link.metadata, problem),
      section("Items", itemsTable(visit, items)),
      section(
        "Checkouts",
        sessionsTable(visit, rows, customers),
        hasMore && html`<a href="${visit.to("/checkout-sessions", { payment_link: id })}">All checkouts</a>`
      ),
      yield* historySection(visit, { ids: [id] }),
      forDevelopers(json(visit, link, "The payment link as JSON"))
    ]
  }
})

const update = updateWith(UpdatePaymentLink, Commands.update)

const onPage = { right: "build", page: "/payment-links/:id", show } as const

const edit = action({
  ...onPage,
  name: "payment_link.update",
  path: "/payment-links/:id/edit",
  notice: "Payment link updated.",
  prepare: (_, { id = "" }, values) => {
    const { after_completion, inactive_message, restrictions } = changeableIn(values)
    const isChanged = (name: string) => values.get(name) !== values.get(seenField(name))
    const entered = {
      ...(isChanged(LIMIT) && { restrictions }),
      ...(isChanged(REDIRECT) && { after_completion }),
      ...(isChanged("inactive_message") && { inactive_message })
    }
    return Effect.succeed({ entered, command: update(id, entered) })
  }
})

const setActive = (name: "activate" | "deactivate", notice: string) =>
  action({
    ...onPage,
    name: `payment_link.${name}`,
    path: `/payment-links/:id/${name}`,
    notice,
    prepare: (_, { id = "" }) => {
      const entered = { active: name === "activate" }
      return Effect.succeed({ entered, command: Commands.update(id, entered) })
    }
  })

const updateMetadata = metadataAction({
  ...onPage,
  name: "payment_link",
  kind: PAYMENT_LINK,
  update
})

export const layer = Layer.mergeAll(
  page("/payment-links/:id", "see", show),
  edit,
  updateMetadata,
  setActive("activate", "Payment link activated."),
  setActive("deactivate", "Payment link deactivated. It takes no more payments.")
)
