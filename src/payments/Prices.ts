/** The lifecycle of prices: active or archived, never deleted (semantics §1.11). */
import { Effect } from "effect"
import { PREFIXES } from "../domain/Identifiers.ts"
import type { MetadataParameter } from "../domain/Metadata.ts"
import { mergeMetadata, updateMetadata } from "../domain/Metadata.ts"
import { normalizeCurrency } from "../domain/Money.ts"
import type { Price, TaxBehavior } from "../domain/Price.ts"
import { secondsOf } from "../domain/Time.ts"
import { Transaction } from "../engine/Transaction.ts"
import { isLive } from "./AccountIds.ts"
import { findPrice, findProduct, rememberPrice } from "./Catalog.ts"
import { PRICE } from "./Documents.ts"
import { emit } from "./Events.ts"
import * as LookupKeys from "./LookupKeys.ts"
import { requireAcceptedCurrency } from "./PaymentsConfig.ts"
import { previousAttributes } from "./PreviousAttributes.ts"
import type { PriceTermsParameters } from "./PriceParameters.ts"
import { priceTermsFields, requireAmountsWithinCap, requirePriceTerms } from "./PriceParameters.ts"

/** A price made along with something else (semantics PR4, S4). Null is the same as absent. */
export interface InlinePrice extends PriceTermsParameters {
  readonly currency: string
  readonly tax_behavior?: TaxBehavior | null
}

/** Null, and "" of a text, are the same as absent (semantics T10, 9.2). */
export interface CreatePrice extends InlinePrice {
  readonly product: string
  readonly active?: boolean | null
  readonly lookup_key?: string | null
  readonly transfer_lookup_key?: boolean | null
  readonly nickname?: string | null
  readonly metadata?: MetadataParameter | null
}

/** Null and "" unset texts. What a price amounts to never changes (semantics PR19). */
export interface UpdatePrice {
  readonly active?: boolean
  readonly nickname?: string | null
  readonly tax_behavior?: TaxBehavior
  readonly lookup_key?: string | null
  readonly transfer_lookup_key?: boolean
  readonly metadata?: MetadataParameter | null | ""
}

/** Emits `price.created`; before it, `price.updated` of a price that loses its lookup key. */
export const create = Effect.fnUntraced(function* (parameters: CreatePrice) {
  const transaction = yield* Transaction
  yield* requireAcceptedCurrency(parameters.currency)
  const metadata = mergeMetadata({}, parameters.metadata ?? null)
  const product = yield* findProduct(parameters.product, "product")
  yield* requireInlinePrice(parameters)
  const lookup_key = parameters.lookup_key || null
  const price: Price = {
    ...inlinePrice(transaction, parameters.product, parameters, { active: parameters.active ?? true }),
    metadata,
    lookup_key,
    nickname: parameters.nickname || null
  }
  if (lookup_key !== null) {
    yield* LookupKeys.claim(lookup_key, price.id, { transfer: parameters.transfer_lookup_key === true })
  }
  rememberPrice(transaction, product)
  transaction.put(PRICE, price)
  emit(transaction, "price.created", price.id)
  return price
})

/** Emits `price.updated` if anything changes; before it, that of a price that loses its lookup key (semantics §8.23). */
export const update = Effect.fnUntraced(function* (id: string, parameters: UpdatePrice) {
  const transaction = yield* Transaction
  const before = yield* findPrice(id, "id")
  const after: Price = {
    ...before,
    active: parameters.active ?? before.active,
    tax_behavior: parameters.tax_behavior ?? before.tax_behavior,
    metadata: yield* updateMetadata(before.metadata, parameters.metadata),
    lookup_key: parameters.lookup_key === undefined ? before.lookup_key : parameters.lookup_key || null,
    nickname: parameters.nickname === undefined ? before.nickname : parameters.nickname || null
  }
  const previous = previousAttributes(before, after)
  if (Object.keys(previous).length === 0) return before
  if (after.lookup_key !== before.lookup_key) {
    if (before.lookup_key !== null) yield* LookupKeys.release(before.lookup_key)
    if (after.lookup_key !== null) {
      yield* LookupKeys.claim(after.lookup_key, id, { transfer: parameters.transfer_lookup_key === true })
    }
  }
  transaction.put(PRICE, after)
  emit(transaction, "price.updated", id, previous)
  return after
})

/**
 * Fails unless the terms belong together and are within the cap. `within` is the parameter that they are part of, e.g.
 * `default_price_data`.
 */
export const requireInlinePrice = Effect.fnUntraced(function* (parameters: InlinePrice, within?: string) {
  yield* requirePriceTerms(parameters, within)
  yield* requireAmountsWithinCap(parameters, within)
})

/** A price as its terms make it. It is not written yet, and its product has to remember it (`rememberPrice`). */
export const inlinePrice = (
  transaction: Transaction,
  product: string,
  parameters: InlinePrice,
  { active }: { readonly active: boolean }
): Price => ({
  id: transaction.newId(PREFIXES.price),
  object: "price",
  active,
  product,
  currency: normalizeCurrency(parameters.currency),
  tax_behavior: parameters.tax_behavior ?? "unspecified",
  metadata: {},
  livemode: isLive(transaction.account),
  created: secondsOf(transaction.now),
  ...priceTermsFields(parameters),
  lookup_key: null,
  nickname: null
})
