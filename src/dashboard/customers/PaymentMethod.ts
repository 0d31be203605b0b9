/** The page of a payment method: a card and its customer. */
import { Effect } from "effect"
import { PAYMENT_METHOD } from "../../payments/shared/Documents.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { billingHtml, cardFacts, cardName } from "../frame/Cards.ts"
import { forDevelopers, json } from "../frame/Json.ts"
import { badge, code, facts, metadataSection, time } from "../frame/Values.ts"
import { historySection } from "../history/History.ts"
import { customerLink, customersOf } from "../payments/Payers.ts"
import { page, type Show } from "../frame/Page.ts"

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }) {
  const { hidden, value: method } = yield* requireDocument(visit.account, PAYMENT_METHOD, id)
  const { billing_details, card, created, customer, metadata } = method
  const customers = yield* customersOf(visit.account, [method])
  return {
    title: cardName(card),
    section: "Customers",
    back: customer === null ? ["/customers", "Customers"] : [`/customers/${customer}`, "Customer"],
    live: ["payment_method", "event", "delivery"],
    aside: hidden.detached && badge("removed"),
    content: [
      facts([
        ["ID", code(id)],
        ["Customer", customer && customerLink(visit, customers, customer)],
        ...cardFacts(card),
        ["Billed to", billingHtml(billing_details)],
        ["Created", time(created)]
      ]),
      metadataSection(metadata),
      yield* historySection(visit, { ids: [id] }),
      forDevelopers(json(visit, method, "The payment method as JSON"))
    ]
  }
})

export const layer = page("/payment-methods/:id", "see", show)
