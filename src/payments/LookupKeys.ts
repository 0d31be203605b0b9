/**
 * Lookup keys: names that a merchant gives to prices (semantics PR17).
 *
 * Each has an entry of its own, found by the key, so at most one price of an account has a key, and no command looks
 * through prices to see that. The price's `lookup_key` and the key's entry are only ever written together.
 */
import { Effect } from "effect"
import { LookupKeyTaken } from "../domain/Errors.ts"
import { Transaction } from "../engine/Transaction.ts"
import { LOOKUP_KEY, PRICE } from "./Documents.ts"
import { emit } from "./Events.ts"

/**
 * Reserves a key for a price, whose own document the caller writes. A price that has the key loses it if `transfer` is
 * set, which emits its `price.updated`; else the key is taken.
 */
export const claim = Effect.fnUntraced(function* (
  lookupKey: string,
  price: string,
  { transfer }: { readonly transfer: boolean }
) {
  const transaction = yield* Transaction
  const entry = yield* transaction.get(LOOKUP_KEY, entryIdOf(lookupKey))
  if (entry !== undefined) {
    if (!transfer) return yield* new LookupKeyTaken({ lookupKey })
    const { value: loser } = (yield* transaction.get(PRICE, entry.value.price))!
    transaction.put(PRICE, { ...loser, lookup_key: null })
    emit(transaction, "price.updated", loser.id, { lookup_key: lookupKey })
  }
  transaction.put(LOOKUP_KEY, { id: entryIdOf(lookupKey), price })
})

/** Frees the key of a price. */
export const release = Effect.fnUntraced(function* (lookupKey: string) {
  const transaction = yield* Transaction
  yield* transaction.get(LOOKUP_KEY, entryIdOf(lookupKey))
  transaction.delete(LOOKUP_KEY, entryIdOf(lookupKey))
})

/** Where the entry of a key is. */
export const entryIdOf = (lookupKey: string): string => `lookup_key:${lookupKey}`
