/** The payments that an address asks for as CSV (semantics 9.70). */
import { Effect } from "effect"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import { seeOther } from "../../html/PageResponse.ts"
import { plainAmount } from "../frame/Values.ts"
import type { CsvFile } from "../frame/CsvFile.ts"
import { csvFile, csvJson, csvTime } from "../frame/CsvFile.ts"
import { askedBy, payments } from "./PaymentSearch.ts"
import { download } from "../frame/Page.ts"

const columns: CsvFile<PaymentIntent>["columns"] = [
  ["id", ({ id }) => id],
  ["created_utc", ({ created }) => csvTime(created)],
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
  ["metadata", ({ metadata }) => csvJson(metadata)]
]

export const layer = download(
  "/payments.csv",
  "see",
  Effect.fnUntraced(function* (visit) {
    const asked = yield* askedBy(visit)
    if (asked.problems !== null) return seeOther(visit.to("/payments", Object.fromEntries(visit.query)))
    return yield* csvFile(visit, { name: "payments", columns, read: (page) => payments(visit.account, asked, page) })
  })
)
