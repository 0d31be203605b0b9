/** The list of checkout sessions, filtered by status and payment link. */
import { Effect } from "effect"
import { CheckoutSessionStatus } from "../../domain/CheckoutSession.ts"
import { CHECKOUT_SESSION } from "../../payments/shared/Documents.ts"
import { filters } from "../frame/Form.ts"
import { cursorIn, pageLinks, table } from "../frame/Table.ts"
import { badge, code, money, time } from "../frame/Values.ts"
import { customersOf, payerHtml } from "./Payers.ts"
import { listObjects } from "../frame/Queries.ts"
import { page, type Show } from "../frame/Page.ts"

const show: Show = Effect.fnUntraced(function* (visit) {
  const { account, query } = visit
  const asked = query.get("status")
  const status = CheckoutSessionStatus.literals.find((status) => status === asked)
  const payment_link = query.get("payment_link") ?? ""
  const labels = { ...(status !== undefined && { status }), ...(payment_link !== "" && { payment_link }) }
  const { hasMore, rows } = yield* listObjects(account, CHECKOUT_SESSION, { cursor: cursorIn(query), labels })
  const customers = yield* customersOf(account, rows)
  return {
    title: "Checkout sessions",
    section: "Products",
    back: ["/products", "Products"],
    live: ["checkout.session", "customer"],
    content: [
      filters(visit, "/checkout-sessions", (fields) => [
        fields.choice({
          name: "status",
          label: "Status",
          options: [["", "Any"], ...CheckoutSessionStatus.literals.map((status) => [status, status] as const)]
        }),
        fields.text({ name: "payment_link", label: "Payment link", hint: "The ID of a payment link." })
      ]),
      table({
        caption: "Checkout sessions, newest first",
        columns: [
          {
            name: "Amount",
            align: "end",
            cell: ({ amount_total, currency }) => money(amount_total ?? 0, currency ?? "usd")
          },
          { name: "Status", cell: ({ status }) => badge(status) },
          {
            name: "Payer",
            long: true,
            cell: (session) => payerHtml(visit, customers, session, session.customer_details)
          },
          { name: "Session", wide: true, cell: ({ id }) => code(id) },
          { name: "Date", cell: ({ created }) => time(created) }
        ],
        rows,
        href: ({ id }) => visit.to(`/checkout-sessions/${id}`),
        empty:
          Object.keys(labels).length === 0
            ? "No checkouts yet. Create a one-time link on a product's page, or a session through the API."
            : "No checkouts match these filters."
      }),
      pageLinks(visit, rows, hasMore)
    ]
  }
})

export const layer = page("/checkout-sessions", "see", show)
