/** Refunds over HTTP (semantics §1.14). */
import { Effect } from "effect"
import * as Contract from "../../api/Refunds.ts"
import { REFUND } from "../../payments/Documents.ts"
import * as Refunds from "../../payments/Refunds.ts"
import { documentJson, handlers, readDocument } from "./Handler.ts"
import { listDocuments } from "./Lists.ts"

export const refunds = handlers(Contract.Refunds, {
  create: ({ payload }) => Refunds.create(payload),
  update: ({ params, payload }) => Refunds.update(params.id, payload),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, REFUND, { payment_intent: query.payment_intent }),

  retrieve: ({ caller, params }) =>
    Effect.map(readDocument(caller.account, REFUND, params.id), (refund) => documentJson(refund))
})
