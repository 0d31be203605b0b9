/** Payment methods over HTTP (semantics H3). */
import { Effect } from "effect"
import * as Contract from "../../api/PaymentMethods.ts"
import { PAYMENT_METHOD } from "../../payments/Documents.ts"
import * as PaymentMethods from "../../payments/PaymentMethods.ts"
import { PaymentsConfig } from "../../payments/PaymentsConfig.ts"
import { documentJson, handlers, jsonOf, readDocument } from "./Handler.ts"

export const paymentMethods = handlers(Contract.PaymentMethods, {
  create: ({ payload }) => PaymentMethods.create(payload),

  retrieve: Effect.fnUntraced(function* ({ caller, params }) {
    const builtIn = PaymentMethods.builtIn(yield* PaymentsConfig, caller.account, params.id)
    if (builtIn !== undefined) return jsonOf(builtIn)
    return documentJson(yield* readDocument(caller.account, PAYMENT_METHOD, params.id))
  })
})
