/** Prices over HTTP (semantics §1.7, §1.11). */
import { Effect } from "effect"
import * as Contract from "../../api/Prices.ts"
import { normalizeCurrency } from "../../domain/Money.ts"
import type { Price } from "../../domain/Price.ts"
import type { AccountId } from "../../engine/Document.ts"
import { PRICE, PRODUCT } from "../../payments/Documents.ts"
import * as Prices from "../../payments/Prices.ts"
import { deletedProduct } from "../../payments/Products.ts"
import { documentJson, handlers, jsonOf } from "../Handlers.ts"
import { listDocuments } from "../Lists.ts"
import { readDocument, readEntry } from "../Resources.ts"

export const prices = handlers(Contract.Prices, {
  create: ({ payload }) => Prices.create(payload),
  update: ({ params, payload }) => Prices.update(params.id, payload),

  list: ({ caller, path, query: { active, currency, product, type, ...page } }) =>
    listDocuments({ account: caller.account, path, query: page }, PRICE, "Price", {
      ...(active !== undefined && { active: String(active) }),
      ...(currency !== undefined && { currency: normalizeCurrency(currency) }),
      ...(product !== undefined && { product }),
      ...(type !== undefined && { type })
    }),

  retrieve: Effect.fnUntraced(function* ({ caller, params, query }) {
    const document = yield* readDocument(caller.account, PRICE, "Price", params.id)
    return query["expand[]"] === undefined ? documentJson(document) : yield* withProduct(caller.account, document.value)
  })
})

/** With the product in full. */
const withProduct = Effect.fnUntraced(function* (account: AccountId, price: Price) {
  const entry = yield* readEntry(account, PRODUCT, "Product", price.product)
  return jsonOf({ ...price, product: entry.deleted ? deletedProduct(account, entry.id) : entry.value })
})
