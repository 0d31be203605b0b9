/**
 * The lifecycle of prices: active or archived, never deleted (semantics prices.*).
 *
 * A merchant can name a price by a lookup key (semantics prices.lookup_key). Each key has an entry of its own, found by
 * the key, so at most one price of an account has it, and no command searches prices for it. The price's `lookup_key`
 * and the key's entry are always written together.
 */
import { Effect } from "effect"
import {
  type AmountTooLarge,
  LookupKeyTaken,
  type ParameterInvalid,
  type ParameterMissing,
  type ParametersExclusive,
  type ResourceMissing
} from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { mergeMetadata, updateMetadata } from "../../domain/Metadata.ts"
import { normalizeCurrency } from "../../domain/Money.ts"
import type { CreatePrice, Price, UpdatePrice } from "../../domain/Price.ts"
import {
  priceTermsFields,
  type PriceTermsParameters,
  requireAmountsWithinCap,
  requirePriceTerms
} from "../../domain/PriceTerms.ts"
import type { Product } from "../../domain/Product.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { Document } from "../../engine/log/Document.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { isLive } from "../shared/AccountIds.ts"
import { findDocument, LOOKUP_KEY, PRICE, PRODUCT, type ProductHidden } from "../shared/Documents.ts"
import { emit, previousAttributes } from "../shared/Events.ts"
import { type PaymentsConfig, requireAcceptedCurrency } from "../shared/PaymentsConfig.ts"

/** The data of a price in another object's request (semantics products.default_price_data, checkout.price_data). */
export type InlinePrice = Pick<CreatePrice, "currency" | "tax_behavior"> & PriceTermsParameters

/** The errors for terms of a price that contradict each other or exceed the cap of a payment. */
export type PriceTermsError = ParameterMissing | ParameterInvalid | ParametersExclusive | AmountTooLarge

export type ProductDocument = Document<Product, ProductHidden>

/** Builds the price that `create` would write, without writing it. Its id is used for no other object. */
export const preview = Effect.fnUntraced(function* (
  parameters: CreatePrice
): Effect.fn.Return<Price, ResourceMissing | PriceTermsError | LookupKeyTaken, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  yield* requireAcceptedCurrency(parameters.currency)
  const metadata = mergeMetadata({}, parameters.metadata ?? null)
  yield* findProduct(parameters.product, "product")
  yield* requireInlinePrice(parameters)
  const lookup_key = parameters.lookup_key || null
  if (lookup_key !== null) yield* requireLookupKey(lookup_key, parameters)
  const price: Price = {
    ...inlinePrice(transaction, parameters.product, parameters, { active: parameters.active ?? true }),
    metadata,
    lookup_key,
    nickname: parameters.nickname || null
  }
  return price
})

/** Creates a price. Emits `price.created`; before it, `price.updated` for one that loses its lookup key. */
export const create = Effect.fnUntraced(function* (
  parameters: CreatePrice
): Effect.fn.Return<Price, ResourceMissing | PriceTermsError | LookupKeyTaken, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const price = yield* preview(parameters)
  if (price.lookup_key !== null) yield* claimLookupKey(price.lookup_key, price.id)
  rememberPrice(transaction, yield* findProduct(price.product, "product"))
  transaction.put(PRICE, price)
  emit(transaction, "price.created", price.id)
  return price
})

/**
 * Changes the fields of a price that can change (semantics prices.immutable). Emits `price.updated` if anything
 * changes; before it, another one for a price that loses its lookup key (semantics prices.lookup_key).
 */
export const update = Effect.fnUntraced(function* (
  id: string,
  parameters: UpdatePrice
): Effect.fn.Return<Price, ResourceMissing | ParameterInvalid | LookupKeyTaken, Transaction> {
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
    if (after.lookup_key !== null) yield* requireLookupKey(after.lookup_key, parameters)
    if (before.lookup_key !== null) yield* releaseLookupKey(before.lookup_key)
    if (after.lookup_key !== null) yield* claimLookupKey(after.lookup_key, id)
  }
  transaction.put(PRICE, after)
  emit(transaction, "price.updated", id, previous)
  return after
})

/** Finds the price that a parameter names; `id` for the path (semantics parameters.references). */
export const findPrice = (id: string, param: string): Effect.Effect<Price, ResourceMissing, Transaction> =>
  Effect.map(findDocument(PRICE, id, param), ({ value }) => value)

/** Finds the product that a parameter names; `id` for the path (semantics parameters.references). */
export const findProduct = (id: string, param: string): Effect.Effect<ProductDocument, ResourceMissing, Transaction> =>
  findDocument(PRODUCT, id, param)

/**
 * Fails unless the terms are consistent (semantics prices.recurring, prices.transform_quantity, prices.tax_behavior,
 * prices.type, prices.unit_amount, prices.custom_unit_amount, prices.tiers) and within the cap (semantics
 * money.limits). `within` is the parameter that contains them, e.g. `default_price_data`.
 */
export const requireInlinePrice = (parameters: InlinePrice, within?: string): Effect.Effect<void, PriceTermsError> =>
  Effect.andThen(requirePriceTerms(parameters, within), requireAmountsWithinCap(parameters, within))

/** Builds a price from terms that passed `requireInlinePrice`. The caller writes it, and calls `rememberPrice`. */
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

/** Marks a product as having a price, so that it can no longer be deleted (semantics products.delete). */
export const rememberPrice = (transaction: Transaction, { hidden, value }: ProductDocument): void => {
  if (!hidden.hasPrice) transaction.put(PRODUCT, value, { hasPrice: true })
}

export const lookupKeyId = (lookupKey: string): string => `lookup_key:${lookupKey}`

/** Fails with `LookupKeyTaken` unless the key is free or transferred (semantics prices.lookup_key). */
const requireLookupKey = Effect.fnUntraced(function* (
  lookupKey: string,
  { transfer_lookup_key: transfer }: Pick<CreatePrice, "transfer_lookup_key">
): Effect.fn.Return<void, LookupKeyTaken, Transaction> {
  const transaction = yield* Transaction
  const entry = yield* transaction.get(LOOKUP_KEY, lookupKeyId(lookupKey))
  if (entry !== undefined && transfer !== true) return yield* new LookupKeyTaken({ lookupKey })
})

/** Reserves a key for a price, whose document the caller writes. A price that loses it emits `price.updated`. */
const claimLookupKey = Effect.fnUntraced(function* (
  lookupKey: string,
  price: string
): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const entry = yield* transaction.get(LOOKUP_KEY, lookupKeyId(lookupKey))
  if (entry !== undefined) {
    const { value: loser } = (yield* transaction.get(PRICE, entry.value.price))!
    transaction.put(PRICE, { ...loser, lookup_key: null })
    emit(transaction, "price.updated", loser.id, { lookup_key: lookupKey })
  }
  transaction.put(LOOKUP_KEY, { id: lookupKeyId(lookupKey), price })
})

/** Frees the lookup key of a price. A transaction must read an entry before it can delete it. */
const releaseLookupKey = Effect.fnUntraced(function* (lookupKey: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  yield* transaction.get(LOOKUP_KEY, lookupKeyId(lookupKey))
  transaction.delete(LOOKUP_KEY, lookupKeyId(lookupKey))
})
