/** The list of payment links. */
import { Effect } from "effect"
import { type PaymentLink, stateOf } from "../../domain/PaymentLink.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { type Child, html } from "../../html/Html.ts"
import { PAYMENT_LINK, PAYMENT_LINK_ITEMS } from "../../payments/shared/Documents.ts"
import { itemsId } from "../../payments/lifecycles/PaymentLinks.ts"
import { SEARCHED_PAYMENT_LINK } from "../../payments/shared/Search.ts"
import { filters, searchField } from "../frame/Form.ts"
import { page, type Show } from "../frame/Page.ts"
import { findObjects, listOrSearch } from "../frame/Queries.ts"
import { type Column, table } from "../frame/Table.ts"
import { badge, money, NOTHING, time } from "../frame/Values.ts"

/** The hint at a link of live mode that cannot be paid (semantics dashboard.live_mode). */
export const NO_CARDS = "Nobody can pay with this link until a card processor is connected. Its page tells payers so."

const VIEWS = [
  ["", "Any"],
  ["active", "Active"],
  ["inactive", "Inactive"]
] as const

const TONES = { open: "good", inactive: "plain", used_up: "wait" } as const

/** Whether the link takes payments. */
export const linkBadge = (link: PaymentLink): Child => {
  const state = stateOf(link)
  return badge(state === "open" ? "active" : state, TONES[state])
}

/** The lines of links, by the links' ids. */
const itemsOf = Effect.fnUntraced(function* (account: AccountId, links: ReadonlyArray<PaymentLink>) {
  const found = yield* findObjects(
    account,
    PAYMENT_LINK_ITEMS,
    links.map(({ id }) => itemsId(id))
  )
  return (id: string) => found.get(itemsId(id))?.data ?? []
})

const labelsOf = (view: string | null): Readonly<Record<string, string>> =>
  view === "active" || view === "inactive" ? { active: String(view === "active") } : {}

/** The columns of a list of links, with their lines. */
export const linkColumns = Effect.fnUntraced(function* (account: AccountId, links: ReadonlyArray<PaymentLink>) {
  const items = yield* itemsOf(account, links)
  const columns: ReadonlyArray<Column<PaymentLink>> = [
    {
      name: "Sells",
      long: true,
      cell: ({ id }) =>
        html`<bdi
          >${items(id)
            .map(({ description }) => description)
            .join(", ")}</bdi
        >`
    },
    {
      name: "Amount",
      align: "end",
      cell: ({ currency, id }) =>
        money(
          items(id).reduce((sum, line) => sum + line.amount_total, 0),
          currency
        )
    },
    { name: "Status", cell: linkBadge },
    {
      name: "Payments",
      align: "end",
      cell: ({ restrictions }) =>
        restrictions === null
          ? NOTHING
          : `${restrictions.completed_sessions.count} of ${restrictions.completed_sessions.limit}`
    },
    { name: "Created", wide: true, cell: ({ created }) => time(created) }
  ]
  return columns
})

const show: Show = Effect.fnUntraced(function* (visit) {
  const { account, query } = visit
  const { links, rows } = yield* listOrSearch(visit, PAYMENT_LINK, SEARCHED_PAYMENT_LINK, labelsOf(query.get("status")))
  return {
    title: "Payment links",
    section: "Products",
    back: ["/products", "Products"],
    live: ["payment_link"],
    aside:
      visit.may("build") &&
      html`<div class="buttons">
        <a class="button primary" href="${visit.to("/payment-links/new")}">New payment link</a>
      </div>`,
    content: [
      filters(visit, "/payment-links", (fields) => fields.choice({ name: "status", label: "Status", options: VIEWS }), {
        search: searchField("Words of the payments' description, of the metadata, or of the text while inactive.")
      }),
      table({
        caption: "Payment links, newest first",
        columns: yield* linkColumns(account, rows),
        rows,
        href: ({ id }) => visit.to(`/payment-links/${id}`),
        empty:
          query.size > 0
            ? "No payment links match these filters."
            : "No payment links yet. Create one, then share it or print its QR code."
      }),
      links
    ]
  }
})

export const layer = page("/payment-links", "see", show)
