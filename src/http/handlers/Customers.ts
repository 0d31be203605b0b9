/** Customers over HTTP (semantics §1.10). */
import { Effect } from "effect"
import * as Contract from "../../api/Customers.ts"
import * as Customers from "../../payments/Customers.ts"
import { CUSTOMER, PAYMENT_METHOD } from "../../payments/Documents.ts"
import { SEARCHED_CUSTOMER } from "../../payments/Search.ts"
import { documentJson, handlers, jsonOf, readDocument, readEntry } from "./Handler.ts"
import { listDocuments } from "./Lists.ts"
import { searchDocuments } from "./Search.ts"

export const customers = handlers(Contract.Customers, {
  create: ({ payload }) => Customers.create(payload),
  update: ({ params, payload }) => Customers.update(params.id, payload),
  delete: ({ params }) => Customers.remove(params.id),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, CUSTOMER, { email: query.email?.toLowerCase() }),

  search: ({ caller, path, query }) =>
    searchDocuments({ account: caller.account, path, query }, CUSTOMER, SEARCHED_CUSTOMER),

  retrieve: ({ caller, params }) =>
    Effect.map(readEntry(caller.account, CUSTOMER, params.id), (entry) =>
      entry.deleted ? jsonOf(Customers.deletedCustomer(caller.account, entry.id)) : documentJson(entry)
    ),

  payment_methods: Effect.fnUntraced(function* ({ caller: { account }, params, path, query }) {
    const { id: customer } = yield* readDocument(account, CUSTOMER, params.id)
    return yield* listDocuments({ account, path, query }, PAYMENT_METHOD, { customer })
  })
})
