/** PaymentIntents over HTTP (semantics §1.7, §1.12). */
import { Effect } from "effect"
import * as Contract from "../../api/PaymentIntents.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { requireClientSecretOf } from "../../payments/ClientSecrets.ts"
import { deletedCustomer } from "../../payments/Customers.ts"
import { CUSTOMER, PAYMENT_INTENT } from "../../payments/Documents.ts"
import * as PaymentIntents from "../../payments/PaymentIntents.ts"
import { documentJson, handlers, jsonOf, readDocument, readEntry } from "./Handler.ts"
import { SEARCHED_PAYMENT_INTENT } from "../../payments/Search.ts"
import { listDocuments } from "./Lists.ts"
import { searchDocuments } from "./Search.ts"

export const paymentIntents = handlers(Contract.PaymentIntents, {
  create: ({ payload }) => PaymentIntents.create(payload),
  update: ({ params, payload }) => PaymentIntents.update(params.id, payload),
  confirm: ({ caller, params, payload }) =>
    PaymentIntents.confirm(params.id, payload, { publishableKey: caller.keyType === "publishable" }),
  capture: ({ params, payload }) => PaymentIntents.capture(params.id, payload),
  cancel: ({ params, payload }) => PaymentIntents.cancel(params.id, payload),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, PAYMENT_INTENT, { customer: query.customer }),

  search: ({ caller, path, query }) =>
    searchDocuments({ account: caller.account, path, query }, PAYMENT_INTENT, SEARCHED_PAYMENT_INTENT),

  retrieve: Effect.fnUntraced(function* ({ caller, params, query }) {
    const document = yield* readDocument(caller.account, PAYMENT_INTENT, params.id)
    yield* requireClientSecretOf(PAYMENT_INTENT, document.value, query.client_secret, {
      publishableKey: caller.keyType === "publishable"
    })
    return query["expand[]"] === undefined
      ? documentJson(document)
      : yield* withCustomer(caller.account, document.value)
  })
})

/** Shows the customer in full; what is left of it, if it was deleted (E3). */
const withCustomer = Effect.fnUntraced(function* (account: AccountId, paymentIntent: PaymentIntent) {
  if (paymentIntent.customer === null) return jsonOf(paymentIntent)
  const entry = yield* readEntry(account, CUSTOMER, paymentIntent.customer)
  const customer = entry.deleted ? deletedCustomer(account, entry.id) : entry.value
  return jsonOf({ ...paymentIntent, customer })
})
