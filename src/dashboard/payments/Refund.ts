import { Effect, Layer } from "effect"
import { UpdateRefund } from "../../domain/Refund.ts"
import { REFUND } from "../../payments/Documents.ts"
import { requireDocument } from "../../payments/ReadDocument.ts"
import * as Refunds from "../../payments/Refunds.ts"
import { json } from "../frame/Json.ts"
import { amountText, badge, code, facts, section, time, words } from "../frame/Values.ts"
import { decodeBody } from "../frame/FormDecoding.ts"
import { historySection } from "../history/History.ts"
import { metadataEditor, metadataAction } from "../frame/Metadata.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { page, type Show } from "../frame/Page.ts"

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const refund = (yield* requireDocument(visit.account, REFUND, id)).value
  const { amount, charge, created, currency, failure_reason, metadata, payment_intent, reason, status } = refund
  return {
    title: `Refund of ${amountText(amount, currency)}`,
    section: "Payments",
    back: [`/payments/${payment_intent}`, "Payment"],
    live: ["refund", "event", "delivery"],
    aside: badge(status),
    content: [
      facts([
        ["ID", code(id)],
        ["Payment", objectLink(visit, payment_intent)],
        ["Charge", objectLink(visit, charge)],
        ["Reason", reason && words(reason)],
        ["Failure reason", failure_reason && words(failure_reason)],
        ["Date", time(created)]
      ]),
      metadataEditor(visit, `/refunds/${id}`, metadata, problem),
      yield* historySection(visit, { ids: [id] }),
      section("JSON", json(visit, refund, "The refund as JSON"))
    ]
  }
})

const updateMetadata = metadataAction({
  name: "refund",
  page: "/refunds/:id",
  kind: REFUND,
  show,
  update: (id, entered) =>
    Effect.flatMap(decodeBody(UpdateRefund, entered), (parameters) => Refunds.update(id, parameters))
})

export const layer = Layer.merge(page("/refunds/:id", "see", show), updateMetadata)
