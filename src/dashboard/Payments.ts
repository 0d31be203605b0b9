/** Payments: the list, with filters that lie in the address. */
import { Effect } from "effect"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { PaymentIntentStatus } from "../domain/PaymentIntentStates.ts"
import type { Clause } from "../domain/SearchQuery.ts"
import { matches } from "../domain/SearchQuery.ts"
import { Accounts } from "../engine/Accounts.ts"
import { html } from "../pages/Html.ts"
import { moneyOf } from "../pages/Money.ts"
import * as Amounts from "../pages/assets/amount.js"
import { brandName } from "../pages/CardBrands.ts"
import { PAYMENT_INTENT } from "../payments/Documents.ts"
import { filtersOf, SEARCHED_PAYMENT_INTENT } from "../payments/Search.ts"
import { filters } from "./components/Form.ts"
import type { Column } from "./components/Table.ts"
import { cursorIn, pages, table } from "./components/Table.ts"
import { badge, money, NOTHING, time } from "./components/Values.ts"
import type { Listed } from "./Reading.ts"
import { list, PAGE_ROWS } from "./Reading.ts"
import type { Show } from "./Screens.ts"
import { screen } from "./Screens.ts"
import type { Visit } from "./Visit.ts"

/** Brand and last digits of the card that a payment was last tried with; nothing before that. */
export const cardOf = ({ charges }: PaymentIntent) => {
  const card = charges.data[0]?.payment_method_details.card
  return card === undefined ? NOTHING : html`<span class="card">${brandName(card.brand)} ···· ${card.last4}</span>`
}

export const paymentColumns = (visit: Visit): ReadonlyArray<Column<PaymentIntent>> => [
  { name: "Amount", align: "end", cell: ({ amount, currency }) => money(amount, currency) },
  { name: "Status", cell: ({ status }) => badge(status) },
  { name: "Description", cell: ({ description, id }) => description ?? html`<code>${id}</code>`, wide: true },
  {
    name: "Customer",
    wide: true,
    cell: ({ customer }) =>
      customer === null ? NOTHING : html`<a href="${visit.to(`/customers/${customer}`)}"><code>${customer}</code></a>`
  },
  { name: "Card", cell: cardOf, wide: true },
  { name: "Date", cell: ({ created }) => time(created) }
]

const clause = (field: string, operator: Clause["operator"], value: Clause["value"], key?: string): Clause => ({
  negated: false,
  field,
  operator,
  value,
  ...(key !== undefined && { key })
})

const secondsOf = (day: string): number | undefined =>
  /^\d{4}-\d{2}-\d{2}$/.test(day) && !Number.isNaN(Date.parse(day)) ? Date.parse(day) / 1000 : undefined

const DAY_SECONDS = 86_400

/** What the address asks for. What cannot be meant is left out: an address may have been typed. */
export const clausesOf = (query: URLSearchParams): ReadonlyArray<Clause> => {
  const given = (name: string) => query.get(name)?.trim() ?? ""
  const clauses: Array<Clause> = []
  for (const field of ["status", "currency", "customer", "last4"]) {
    if (given(field) !== "") clauses.push(clause(field, ":", given(field)))
  }
  const amount = Amounts.readAmount(given("amount"), moneyOf(given("currency") || "usd", "en"))
  if (amount.minor !== undefined) clauses.push(clause("amount", ":", amount.minor))
  const [from, until] = [secondsOf(given("from")), secondsOf(given("until"))]
  if (from !== undefined) clauses.push(clause("created", ">=", from))
  if (until !== undefined) clauses.push(clause("created", "<", until + DAY_SECONDS))
  const [key = "", value = ""] = given("metadata").split(/[:=](.*)/s, 2)
  if (key.trim() !== "" && value.trim() !== "") clauses.push(clause("metadata", ":", value.trim(), key.trim()))
  return clauses
}

/** A page of the payments that the address asks for. */
const read = Effect.fnUntraced(function* ({ account, query }: Visit) {
  const clauses = clausesOf(query)
  const cursor = cursorIn(query)
  if (clauses.length === 0) return yield* list(account, PAYMENT_INTENT, { cursor })
  const asked = { connective: "AND", clauses } as const
  const { documents, hasMore } = yield* Accounts.use((accounts) =>
    accounts.search(account, {
      kind: PAYMENT_INTENT.name,
      prefix: PAYMENT_INTENT.prefix!,
      filters: filtersOf(asked, SEARCHED_PAYMENT_INTENT),
      matches: (value) =>
        matches(asked, SEARCHED_PAYMENT_INTENT.fields, SEARCHED_PAYMENT_INTENT.valuesOf(value as PaymentIntent)),
      limit: PAGE_ROWS,
      ...(cursor.olderThan !== undefined && { olderThan: cursor.olderThan })
    })
  )
  const listed: Listed<PaymentIntent> = { rows: documents.map(({ value }) => value as PaymentIntent), hasMore }
  return listed
})

const show: Show = Effect.fnUntraced(function* (visit) {
  const { hasMore, rows } = yield* read(visit)
  const isFiltered = clausesOf(visit.query).length > 0
  const statuses = PaymentIntentStatus.literals.map((status) => [status, status.replaceAll("_", " ")] as const)
  return {
    title: "Payments",
    section: "Payments",
    live: ["payment_intent"],
    content: [
      filters(visit, "/payments", (fields) => [
        fields.choice({ name: "status", label: "Status", options: [["", "Any"], ...statuses] }),
        fields.text({ name: "amount", label: "Amount", inputmode: "decimal" }),
        fields.text({ name: "currency", label: "Currency" }),
        fields.text({ name: "last4", label: "Card ends in", inputmode: "numeric" }),
        fields.text({ name: "customer", label: "Customer" }),
        fields.text({ name: "from", label: "From", type: "date" }),
        fields.text({ name: "until", label: "Until", type: "date" }),
        fields.text({ name: "metadata", label: "Metadata (key:value)" })
      ]),
      table({
        caption: "Payments, newest first",
        columns: paymentColumns(visit),
        rows,
        href: ({ id }) => visit.to(`/payments/${id}`),
        empty: isFiltered
          ? "No payment is like that."
          : html`No payments yet. <a href="${visit.to("/developers")}">Developers</a> says how one is made.`
      }),
      pages(visit, rows, hasMore)
    ]
  }
})

export const layer = screen("/payments", "see", show)
