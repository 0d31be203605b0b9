/** Charges over HTTP (semantics H2). */
import { Effect } from "effect"
import * as Contract from "../../api/Charges.ts"
import { CHARGE } from "../../payments/Documents.ts"
import { documentJson, handlers, readDocument } from "./Handler.ts"
import { listDocuments } from "./Lists.ts"

export const charges = handlers(Contract.Charges, {
  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, CHARGE, {
      payment_intent: query.payment_intent,
      customer: query.customer
    }),

  retrieve: ({ caller, params }) =>
    Effect.map(readDocument(caller.account, CHARGE, params.id), (charge) => documentJson(charge))
})
