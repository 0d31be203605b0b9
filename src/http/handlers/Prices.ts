/** Prices over HTTP (semantics expand.*, prices.*). */
import { Effect } from "effect"
import * as Contract from "../../api/Prices.ts"
import { normalizeCurrency } from "../../domain/Money.ts"
import type { Price } from "../../domain/Price.ts"
import type { AccountId, Document } from "../../engine/log/Document.ts"
import { LOOKUP_KEY, PRICE, PRODUCT } from "../../payments/shared/Documents.ts"
import * as Prices from "../../payments/lifecycles/Prices.ts"
import { deletedProduct } from "../../payments/lifecycles/Products.ts"
import { readDocument, requireDocument, requireEntry } from "../../payments/shared/ReadDocument.ts"
import { documentJson, handlers, jsonOf } from "./Handler.ts"
import { labelsOf, listDocuments, listFound } from "./Lists.ts"

export const prices = handlers(Contract.Prices, {
  create: ({ payload }) => Prices.create(payload),
  update: ({ params, payload }) => Prices.update(params.id, payload),

  list: ({ caller, path, query }) => {
    const { active, currency, "lookup_keys[]": lookupKeys, product, type, ...page } = query
    const input = { account: caller.account, path, query: page }
    const labels = labelsOf({
      active: active?.toString(),
      currency: currency === undefined ? undefined : normalizeCurrency(currency),
      product,
      type
    })
    if (lookupKeys === undefined) return listDocuments(input, PRICE, labels)
    return Effect.flatMap(withLookupKeys(caller.account, lookupKeys), (found) => {
      const matches = (price: PriceDocument) =>
        Object.entries(labels).every(([name, value]) => price.labels[name] === value)
      return listFound(input, PRICE, found.filter(matches))
    })
  },

  retrieve: Effect.fnUntraced(function* ({ caller, params, query }) {
    const document = yield* requireDocument(caller.account, PRICE, params.id)
    return query["expand[]"] === undefined ? documentJson(document) : yield* withProduct(caller.account, document.value)
  })
})

type PriceDocument = Document<Price>

/**
 * Reads the prices that have one of these keys. A key has one price at most, so it is looked up and not searched for.
 */
const withLookupKeys = Effect.fnUntraced(function* (account: AccountId, lookupKeys: ReadonlyArray<string>) {
  const found: Array<PriceDocument> = []
  for (const lookupKey of new Set(lookupKeys)) {
    const entry = yield* readDocument(account, LOOKUP_KEY, Prices.lookupKeyId(lookupKey))
    const price = entry && (yield* readDocument(account, PRICE, entry.value.price))
    // Between the two, the price may have lost the key.
    if (price?.value.lookup_key === lookupKey) found.push(price)
  }
  return found
})

/** Shows the product in full. */
const withProduct = Effect.fnUntraced(function* (account: AccountId, price: Price) {
  const entry = yield* requireEntry(account, PRODUCT, price.product)
  return jsonOf({ ...price, product: entry.deleted ? deletedProduct(account, entry.id) : entry.value })
})
