/** The payments that an address asks for as CSV, of any number: read page by page, as fast as they are taken. */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { Accounts } from "../engine/Accounts.ts"
import { seeOther } from "../pages/PageResponse.ts"
import type { Cursor } from "./components/Table.ts"
import { plainAmount } from "./components/Values.ts"
import { askedBy, payments } from "./PaymentSearch.ts"
import type { Listed } from "./Reading.ts"
import { download } from "./Screens.ts"

/** Payments that are in memory at once. */
const FILE_PAGE = 250

const COLUMNS: ReadonlyArray<readonly [name: string, cell: (payment: PaymentIntent) => string | null | undefined]> = [
  ["id", ({ id }) => id],
  ["created_utc", ({ created }) => new Date(created * 1000).toISOString()],
  ["status", ({ status }) => status],
  ["amount", ({ amount, currency }) => plainAmount(amount, currency)],
  ["amount_received", ({ amount_received, currency }) => plainAmount(amount_received, currency)],
  [
    "amount_refunded",
    ({ charges, currency }) =>
      plainAmount(
        charges.data.reduce((sum, { amount_refunded }) => sum + amount_refunded, 0),
        currency
      )
  ],
  ["currency", ({ currency }) => currency],
  ["description", ({ description }) => description],
  ["customer", ({ customer }) => customer],
  ["payer_name", ({ charges }) => charges.data[0]?.billing_details.name],
  ["payer_email", ({ charges }) => charges.data[0]?.billing_details.email],
  ["card_brand", ({ charges }) => charges.data[0]?.payment_method_details.card.brand],
  ["card_last4", ({ charges }) => charges.data[0]?.payment_method_details.card.last4],
  ["decline_code", ({ last_payment_error }) => last_payment_error?.decline_code],
  ["metadata", ({ metadata }) => (Object.keys(metadata).length === 0 ? null : JSON.stringify(metadata))]
]

/** A spreadsheet takes a text that begins so for a formula, and runs what a payer or a merchant has written. */
const FORMULA = /^[\s]*[=+\-@\t\r\n]/u

/** A cell as RFC 4180 has it. */
export const csvCell = (value: string | null | undefined): string => {
  const text = value == null ? "" : FORMULA.test(value) ? `'${value}` : value
  return /[",\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const lineOf = (cells: ReadonlyArray<string | null | undefined>): string => `${cells.map(csvCell).join(",")}\r\n`

const linesOf = (rows: ReadonlyArray<PaymentIntent>): string =>
  rows.map((payment) => lineOf(COLUMNS.map(([, cell]) => cell(payment)))).join("")

export const layer = download(
  "/payments.csv",
  "see",
  Effect.fnUntraced(function* (visit) {
    const asked = yield* askedBy(visit)
    if (asked.problem !== null) return seeOther(visit.to("/payments", Object.fromEntries(visit.query)))
    const read = (cursor: Cursor) => payments(visit.account, asked, { cursor, limit: FILE_PAGE })
    // What fails here is answered with a page; later on, the connection is cut, and the browser says so.
    const first = yield* read({})
    const accounts = yield* Accounts
    const rest = Stream.unfold(first, (page: Listed<PaymentIntent>) =>
      page.hasMore
        ? Effect.map(read({ olderThan: page.rows.at(-1)!.id }), (next) => [linesOf(next.rows), next] as const)
        : Effect.succeed(undefined)
    ).pipe(Stream.provideService(Accounts, accounts))
    const begin = lineOf(COLUMNS.map(([name]) => name)) + linesOf(first.rows)
    return HttpServerResponse.stream(Stream.encodeText(Stream.concat(Stream.succeed(begin), rest)), {
      contentType: "text/csv; charset=utf-8",
      headers: {
        "cache-control": "no-store",
        "content-disposition": `attachment; filename="payments-${visit.mode}.csv"`,
        "x-content-type-options": "nosniff"
      }
    })
  })
)
