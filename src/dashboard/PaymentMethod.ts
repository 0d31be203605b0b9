/** One payment method: a card, and whose it is. */
import { Effect } from "effect"
import { PAYMENT_METHOD } from "../payments/Documents.ts"
import { billingHtml, cardFacts, cardName } from "./components/Cards.ts"
import { json } from "./components/Json.ts"
import { badge, code, facts, metadataSection, section, time } from "./components/Values.ts"
import { historySection } from "./History.ts"
import { customerLink, customersOf } from "./Payers.ts"
import { find } from "./Reading.ts"
import type { Show } from "./Screens.ts"
import { screen } from "./Screens.ts"

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }) {
  const { hidden, value: method } = yield* find(visit.account, PAYMENT_METHOD, id)
  const { billing_details, card, created, customer, metadata } = method
  const customers = yield* customersOf(visit.account, [method])
  return {
    title: cardName(card),
    section: "Customers",
    back: customer === null ? ["/customers", "Customers"] : [`/customers/${customer}`, "The customer"],
    live: ["payment_method", "event", "delivery"],
    aside: hidden.detached && badge("detached"),
    content: [
      facts([
        ["Id", code(id)],
        ["Customer", customer && customerLink(visit, customers, customer)],
        ...cardFacts(card),
        ["Billed to", billingHtml(billing_details)],
        ["Since", time(created)]
      ]),
      metadataSection(metadata),
      yield* historySection(visit, { ids: [id] }),
      section("JSON", json(visit, method, "The payment method as JSON"))
    ]
  }
})

export const layer = screen("/payment-methods/:id", "see", show)
