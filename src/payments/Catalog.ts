/** Products and prices by their ids: what their lifecycles and Checkout Sessions refer to. */
import { Effect } from "effect"
import type { Product } from "../domain/Product.ts"
import type { Document } from "../engine/Document.ts"
import type { Transaction } from "../engine/Transaction.ts"
import type { ProductHidden } from "./Documents.ts"
import { findDocument, PRICE, PRODUCT } from "./Documents.ts"

export type ProductDocument = Document<Product, ProductHidden>

/** The product that a parameter refers to; `id` for the object of the path (semantics T17). */
export const findProduct = (id: string, param: string) => findDocument(PRODUCT, id, param)

/** The price that a parameter refers to; `id` for the object of the path (semantics T17). */
export const findPrice = (id: string, param: string) => Effect.map(findDocument(PRICE, id, param), ({ value }) => value)

/** Has a product remember that it has a price, and so cannot be deleted any more (semantics PR2). */
export const rememberPrice = (transaction: Transaction, { hidden, value }: ProductDocument): void => {
  if (!hidden.hasPrice) transaction.put(PRODUCT, value, { hasPrice: true })
}
