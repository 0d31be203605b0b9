/** Payment methods over HTTP (semantics H3, 9.18). */
import { Effect } from "effect"
import * as Contract from "../../api/PaymentMethods.ts"
import * as PaymentMethodAttachments from "../../payments/PaymentMethodAttachments.ts"
import { CUSTOMER, PAYMENT_METHOD } from "../../payments/Documents.ts"
import * as PaymentMethods from "../../payments/PaymentMethods.ts"
import { PaymentsConfig } from "../../payments/PaymentsConfig.ts"
import { documentJson, handlers, jsonOf, readDocument } from "./Handler.ts"
import { listDocuments } from "./Lists.ts"

export const paymentMethods = handlers(Contract.PaymentMethods, {
  create: ({ payload }) => PaymentMethods.create(payload),
  attach: ({ params, payload }) => PaymentMethodAttachments.attach(params.id, payload),
  detach: ({ params }) => PaymentMethodAttachments.detach(params.id),

  list: Effect.fnUntraced(function* ({ caller: { account }, path, query }) {
    // The customer is what the list is of, no filter: one that is not there is an error (semantics T17).
    const { id: customer } = yield* readDocument(account, CUSTOMER, query.customer, "customer")
    return yield* listDocuments({ account, path, query }, PAYMENT_METHOD, { customer })
  }),

  retrieve: Effect.fnUntraced(function* ({ caller, params }) {
    const builtIn = PaymentMethods.builtIn(yield* PaymentsConfig, caller.account, params.id)
    if (builtIn !== undefined) return jsonOf(builtIn)
    return documentJson(yield* readDocument(caller.account, PAYMENT_METHOD, params.id))
  })
})
