/** Products over HTTP (semantics §1.11). */
import { Effect } from "effect"
import * as Contract from "../../api/Products.ts"
import { PRODUCT } from "../../payments/Documents.ts"
import * as Products from "../../payments/Products.ts"
import { documentJson, handlers, readDocument } from "./Handler.ts"
import { listDocuments } from "./Lists.ts"

export const products = handlers(Contract.Products, {
  create: ({ payload }) => Products.create(payload),
  update: ({ params, payload }) => Products.update(params.id, payload),
  delete: ({ params }) => Products.remove(params.id),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, PRODUCT, { active: query.active?.toString() }),

  retrieve: ({ caller, params }) =>
    Effect.map(readDocument(caller.account, PRODUCT, params.id), (document) => documentJson(document))
})
