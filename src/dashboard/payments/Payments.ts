/** The list of payments. Its filters are part of the address. */
import { Effect, Layer } from "effect"
import { DeclineCode } from "../../domain/Cards.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import { PaymentIntentStatus } from "../../domain/PaymentIntentStates.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { seeOther } from "../../html/PageResponse.ts"
import { OPERATION } from "../../payments/shared/Documents.ts"
import { cardName } from "../frame/Cards.ts"
import { filters, searchField } from "../frame/Form.ts"
import { type Column, cursorIn, pageLinks, searchPageLinks, table } from "../frame/Table.ts"
import { badge, money, NOTHING, plainAmount, time, words } from "../frame/Values.ts"
import { csvFile, type CsvFile, csvJson, csvLink, createdColumn, csvWords } from "../frame/CsvFile.ts"
import { isId } from "../frame/ObjectLinks.ts"
import { type Customers, customersOf, payerIn, paymentPayerHtml } from "./Payers.ts"
import { readPaymentQuery, findPayments } from "./PaymentSearch.ts"
import { isNew, listObjects, PAGE_ROWS } from "../frame/Queries.ts"
import { download, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

/** The card of the last attempt; a dash before the first one. */
export const cardOf = ({ charges }: PaymentIntent) => {
  const card = charges.data[0]?.payment_method_details.card
  return card === undefined ? NOTHING : html`<span class="whole">${cardName(card)}</span>`
}

export const refundedOf = ({ charges }: PaymentIntent): number =>
  charges.data.reduce((sum, { amount_refunded }) => sum + amount_refunded, 0)

/** The payment's status, refined to failed, refunded or partly refunded. */
const paymentStatus = (payment: PaymentIntent): string => {
  const { amount_received, last_payment_error, status } = payment
  const refunded = refundedOf(payment)
  if (status === "succeeded" && refunded > 0) return refunded < amount_received ? "partly_refunded" : "refunded"
  return status === "requires_payment_method" && last_payment_error !== undefined ? "failed" : status
}

export const paymentBadge = (payment: PaymentIntent): Html => badge(paymentStatus(payment))

/** Columns of a list of payments. `customers` is null if all payments belong to one customer. */
export const paymentColumns = (visit: Visit, customers: Customers | null): ReadonlyArray<Column<PaymentIntent>> => [
  { name: "Amount", align: "end", cell: ({ amount, currency }) => money(amount, currency) },
  {
    name: "Status",
    cell: (payment) => {
      const reason = payment.last_payment_error?.decline_code
      return html`${paymentBadge(payment)} ${reason !== undefined && html`<small>${words(reason)}</small>`}`
    }
  },
  {
    name: "Description",
    long: true,
    wide: true,
    cell: ({ description, id }) => description ?? html`<code>${id}</code>`
  },
  ...(customers === null
    ? []
    : [
        { name: "Customer", long: true, cell: (payment: PaymentIntent) => paymentPayerHtml(visit, customers, payment) }
      ]),
  { name: "Card", cell: cardOf, wide: true },
  { name: "Date", cell: ({ created }) => time(created) }
]

const EXAMPLE = 'amount>=5000 AND metadata["order"]:"6735"'

/** Next steps for a merchant without payments. */
export const noPayments = (visit: Visit): Child =>
  html`No payments yet.
  ${
    visit.may("build")
      ? html`${visit.livemode ? "Sell" : html`<a href="${visit.to("/developers/trigger")}">Trigger one</a>, sell`} a
          <a href="${visit.to("/products")}">product</a> with a payment link, or see how your server
          <a href="${visit.to("/developers")}">takes payments</a>.`
      : "They appear here after the first payment."
  }`

const show: Show = Effect.fnUntraced(function* (visit) {
  const text = visit.query.get("query")?.trim() ?? ""
  // The list finds payments by their own ids and by customer ids. Other ids lead to their objects.
  if (isId(text) && !/^(?:pi|cus)_/.test(text)) return seeOther(visit.to("/find", { query: text }))
  const asked = yield* readPaymentQuery(visit)
  const { problems } = asked
  const { hasMore, rows } =
    problems === null
      ? yield* findPayments(visit.account, asked, { cursor: cursorIn(visit.query), limit: PAGE_ROWS })
      : { rows: [], hasMore: false }
  const customers = yield* customersOf(visit.account, rows)
  const { rows: operations } = yield* listObjects(visit.account, OPERATION, { limit: 1 })
  const isFiltered = problems !== null || asked.condition !== null
  const options = (values: ReadonlyArray<string>) => [
    ["", "Any"] as const,
    ...values.map(
      (value) => [value, words(value) + (value === "requires_payment_method" ? ", or failed" : "")] as const
    )
  ]
  return {
    title: "Payments",
    section: "Payments",
    ...(problems !== null && { status: 400 }),
    live: ["payment_intent", "customer"],
    aside: html`<div class="buttons">
      ${operations.length > 0 && html`<a class="button" href="${visit.to("/operations")}">Operations</a>`}
      ${problems === null && csvLink(visit, "/payments.csv", rows)}
    </div>`,
    content: [
      !isNew(visit, rows) &&
        filters(
          visit,
          "/payments",
          (fields) => [
            fields.choice({ name: "status", label: "Status", options: options(PaymentIntentStatus.literals) }),
            fields.choice({ name: "decline", label: "Decline reason", options: options(DeclineCode.literals) }),
            fields.text({ name: "amount", label: "Amount (or 10-50)" }),
            fields.text({ name: "currency", label: "Currency" }),
            fields.text({ name: "last4", label: "Card ends in", inputmode: "numeric" }),
            fields.text({ name: "customer", label: "Customer or email" }),
            fields.text({ name: "from", label: `From (${visit.zone})`, type: "date" }),
            fields.text({ name: "until", label: `Until (${visit.zone})`, type: "date" }),
            fields.text({ name: "metadata", label: "Metadata (key:value)" })
          ],
          {
            errors: problems ?? {},
            search: searchField(
              html`A name, an email, an order number, an amount, the last 4 digits of a card, an ID, or a query such as
                <code>${EXAMPLE}</code>.`
            )
          }
        ),
      table({
        caption: "Payments, newest first",
        columns: paymentColumns(visit, customers),
        rows,
        href: ({ id }) => visit.to(`/payments/${id}`),
        empty: isFiltered
          ? problems === null
            ? "No payments match this search."
            : "We couldn't read this search. Try an email, the last 4 digits, or a payment ID."
          : noPayments(visit)
      }),
      (isFiltered ? searchPageLinks : pageLinks)(visit, rows, hasMore)
    ]
  }
})

interface PaymentLine extends PaymentIntent {
  readonly payer: ReturnType<typeof payerIn>
}

const columns: CsvFile<PaymentLine>["columns"] = [
  ["Payment ID", ({ id }) => id],
  createdColumn(({ created }) => created),
  ["Status", (payment) => csvWords(paymentStatus(payment))],
  ["Decline reason", ({ last_payment_error }) => csvWords(last_payment_error?.decline_code)],
  ["Amount", ({ amount, currency }) => plainAmount(amount, currency)],
  ["Received", ({ amount_received, currency }) => plainAmount(amount_received, currency)],
  ["Refunded", (payment) => plainAmount(refundedOf(payment), payment.currency)],
  ["Currency", ({ currency }) => currency.toUpperCase()],
  ["Description", ({ description }) => description],
  ["Customer", ({ payer }) => payer.name],
  ["Customer email", ({ payer }) => payer.email],
  ["Customer ID", ({ customer }) => customer],
  ["Card", ({ charges }) => charges.data.slice(0, 1).map((charge) => cardName(charge.payment_method_details.card))[0]],
  ["Metadata (JSON)", ({ metadata }) => csvJson(metadata)]
]

/** The payments that match, as CSV (semantics dashboard.files). */
const file = download(
  "/payments.csv",
  "see",
  Effect.fnUntraced(function* (visit) {
    const asked = yield* readPaymentQuery(visit)
    if (asked.problems !== null) return seeOther(visit.to("/payments", Object.fromEntries(visit.query)))
    return yield* csvFile(visit, {
      name: "payments",
      columns,
      read: Effect.fnUntraced(function* (page) {
        const { hasMore, rows } = yield* findPayments(visit.account, asked, page)
        const customers = yield* customersOf(visit.account, rows)
        return { hasMore, rows: rows.map((row): PaymentLine => ({ ...row, payer: payerIn(customers, row) })) }
      })
    })
  })
)

export const layer = Layer.merge(page("/payments", "see", show), file)
