/** One refund: of which payment it is, and what became of it. */
import { Effect } from "effect"
import { REFUND } from "../payments/Documents.ts"
import { json } from "./components/Json.ts"
import { amountText, badge, code, facts, metadataSection, section, time, words } from "./components/Values.ts"
import { historySection } from "./History.ts"
import { objectLink } from "./Objects.ts"
import { find } from "./Reading.ts"
import type { Show } from "./Screens.ts"
import { screen } from "./Screens.ts"

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }) {
  const refund = (yield* find(visit.account, REFUND, id)).value
  const { amount, charge, created, currency, failure_reason, metadata, payment_intent, reason, status } = refund
  return {
    title: `Refund of ${amountText(amount, currency)}`,
    section: "Payments",
    back: [`/payments/${payment_intent}`, "The payment"],
    live: ["refund", "event", "delivery"],
    aside: badge(status),
    content: [
      facts([
        ["Id", code(id)],
        ["Payment", objectLink(visit, payment_intent)],
        ["Charge", objectLink(visit, charge)],
        ["Reason", reason && words(reason)],
        ["Why it failed", failure_reason && words(failure_reason)],
        ["Date", time(created)]
      ]),
      metadataSection(metadata),
      yield* historySection(visit, { ids: [id] }),
      section("JSON", json(visit, refund, "The refund as JSON"))
    ]
  }
})

export const layer = screen("/refunds/:id", "see", show)
