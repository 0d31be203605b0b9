import { Effect, Layer } from "effect"
import { type Refund, UpdateRefund } from "../../domain/Refund.ts"
import { Accounts } from "../../engine/Accounts.ts"
import { OPERATION, REFUND } from "../../payments/shared/Documents.ts"
import { isDocumentOf, requireDocument } from "../../payments/shared/ReadDocument.ts"
import * as Refunds from "../../payments/lifecycles/Refunds.ts"
import { forDevelopers, json } from "../frame/Json.ts"
import { amountText, badge, code, facts, time, words } from "../frame/Values.ts"
import { updateWith } from "../frame/FormDecoding.ts"
import { historySection } from "../history/History.ts"
import { metadataEditor, metadataAction } from "../frame/Metadata.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

/** The operations of a payment that are read to find a refund's. */
const OPERATIONS_MAX = 100

/** Finds the operation of a refund at a processor behind a network. */
const operationOf = Effect.fnUntraced(function* ({ account }: Visit, { id, payment_intent }: Refund) {
  const { documents } = yield* Accounts.use((accounts) =>
    accounts.list(account, {
      kind: OPERATION.name,
      prefix: OPERATION.prefix,
      labels: { payment_intent, kind: "refund" },
      limit: OPERATIONS_MAX
    })
  )
  return documents.filter((one) => isDocumentOf(one, OPERATION)).find(({ value }) => value.refund === id)
})

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const refund = (yield* requireDocument(visit.account, REFUND, id)).value
  const operation = yield* operationOf(visit, refund)
  const isMadeThere = operation?.hidden.idAtProcessor !== undefined
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
        ["Operation", operation && objectLink(visit, operation.id)],
        ["Origin", isMadeThere ? "Made at the processor" : null],
        ["Date", time(created)]
      ]),
      metadataEditor(visit, `/refunds/${id}`, metadata, problem),
      yield* historySection(visit, { ids: [id] }),
      forDevelopers(json(visit, refund, "The refund as JSON"))
    ]
  }
})

const updateMetadata = metadataAction({
  name: "refund",
  page: "/refunds/:id",
  kind: REFUND,
  show,
  update: updateWith(UpdateRefund, Refunds.update)
})

export const layer = Layer.merge(page("/refunds/:id", "see", show), updateMetadata)
