/** The page of a charge: one attempt to pay, its card, and the issuer's answer. */
import { Effect } from "effect"
import { CHARGE } from "../../payments/shared/Documents.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { billingHtml, cardFacts } from "../frame/Cards.ts"
import { forDevelopers, json } from "../frame/Json.ts"
import { amountText, badge, code, facts, metadataSection, money, time } from "../frame/Values.ts"
import { historySection } from "../history/History.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { customerLink, customersOf } from "./Payers.ts"
import { page, type Show } from "../frame/Page.ts"

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }) {
  const charge = (yield* requireDocument(visit.account, CHARGE, id)).value
  const { amount, amount_captured, amount_refunded, billing_details, currency, customer, payment_method } = charge
  const customers = yield* customersOf(visit.account, [charge])
  return {
    title: `Charge of ${amountText(amount, currency)}`,
    section: "Payments",
    back: [`/payments/${charge.payment_intent}`, "Payment"],
    live: ["charge", "event", "delivery"],
    aside: badge(charge.status),
    content: [
      facts([
        ["ID", code(id)],
        ["Payment", objectLink(visit, charge.payment_intent)],
        ["Description", charge.description],
        ["Failure", charge.failure_message && [charge.failure_message, " ", code(charge.failure_code!)]],
        ["Captured", amount_captured > 0 ? money(amount_captured, currency) : null],
        ["Refunded", amount_refunded > 0 ? money(amount_refunded, currency) : null],
        ["Released", charge.released_at && time(charge.released_at)],
        ...cardFacts(charge.payment_method_details.card),
        ["Payment method", objectLink(visit, payment_method)],
        ["Customer", customer && customerLink(visit, customers, customer)],
        ["Billed to", billingHtml(billing_details)],
        ["Date", time(charge.created)]
      ]),
      metadataSection(charge.metadata),
      yield* historySection(visit, { ids: [id] }),
      forDevelopers(json(visit, charge, "The charge as JSON"))
    ]
  }
})

export const layer = page("/charges/:id", "see", show)
