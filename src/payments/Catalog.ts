/** Products and prices by their ids: what their lifecycles and Checkout Sessions refer to. */
import { Effect } from "effect"
import { ResourceMissing } from "../domain/Errors.ts"
import type { Product } from "../domain/Product.ts"
import type { Document } from "../engine/Document.ts"
import { Transaction } from "../engine/Transaction.ts"
import type { ProductHidden } from "./Documents.ts"
import { PRICE, PRODUCT } from "./Documents.ts"

export type ProductDocument = Document<Product, ProductHidden>

/** The product that a parameter refers to; `id` for the object of the path (semantics T17). */
export const findProduct = Effect.fnUntraced(function* (id: string, param: string) {
  const transaction = yield* Transaction
  const document = yield* transaction.get(PRODUCT, id)
  if (document === undefined) return yield* new ResourceMissing({ kind: "Product", id, param })
  return document
})

/** The price that a parameter refers to; `id` for the object of the path (semantics T17). */
export const findPrice = Effect.fnUntraced(function* (id: string, param: string) {
  const transaction = yield* Transaction
  const document = yield* transaction.get(PRICE, id)
  if (document === undefined) return yield* new ResourceMissing({ kind: "Price", id, param })
  return document.value
})

/** Has a product remember that it has a price, and so cannot be deleted any more (semantics PR2). */
export const rememberPrice = (transaction: Transaction, { hidden, value }: ProductDocument): void => {
  if (!hidden.hasPrice) transaction.put(PRODUCT, value, { hasPrice: true })
}
