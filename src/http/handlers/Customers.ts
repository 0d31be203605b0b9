/** Customers over HTTP (semantics §1.10). */
import { Effect } from "effect"
import * as Contract from "../../api/Customers.ts"
import * as Customers from "../../payments/Customers.ts"
import { CUSTOMER, PAYMENT_METHOD } from "../../payments/Documents.ts"
import { documentJson, handlers, jsonOf, readDocument, readEntry } from "./Handler.ts"
import { listDocuments } from "./Lists.ts"

export const customers = handlers(Contract.Customers, {
  create: ({ payload }) => Customers.create(payload),
  update: ({ params, payload }) => Customers.update(params.id, payload),
  delete: ({ params }) => Customers.remove(params.id),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, CUSTOMER, { email: query.email?.toLowerCase() }),

  retrieve: ({ caller, params }) =>
    Effect.map(readEntry(caller.account, CUSTOMER, params.id), (entry) =>
      entry.deleted ? jsonOf(Customers.deletedCustomer(caller.account, entry.id)) : documentJson(entry)
    ),

  payment_methods: Effect.fnUntraced(function* ({ caller: { account }, params, path, query }) {
    const { id: customer } = yield* readDocument(account, CUSTOMER, params.id)
    return yield* listDocuments({ account, path, query }, PAYMENT_METHOD, { customer })
  })
})
