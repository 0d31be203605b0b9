/** The lifecycle of products: active or archived; can be deleted until they get a price (semantics products.*). */
import { Effect } from "effect"
import { ParameterInvalid, PriceInactive, ProductHasPrices, type ResourceMissing } from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { mergeMetadata, updateMetadata } from "../../domain/Metadata.ts"
import type { CreateProduct, DeletedProduct, PackageDimensions, Product, UpdateProduct } from "../../domain/Product.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { isLive } from "../shared/AccountIds.ts"
import { PRICE, PRODUCT } from "../shared/Documents.ts"
import { emit, previousAttributes } from "../shared/Events.ts"
import { type PaymentsConfig, requireAcceptedCurrency } from "../shared/PaymentsConfig.ts"
import { findPrice, findProduct, inlinePrice, type PriceTermsError, requireInlinePrice } from "./Prices.ts"

const TEXT_FIELDS = ["description", "url", "statement_descriptor", "unit_label", "tax_code"] as const

/** Creates a product and its default price, each with an event (semantics products.default_price_data). */
export const create = Effect.fnUntraced(function* (
  parameters: CreateProduct
): Effect.fn.Return<Product, PriceTermsError, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const { default_price_data } = parameters
  if (default_price_data != null) {
    yield* requireAcceptedCurrency(default_price_data.currency, "default_price_data[currency]")
    yield* requireInlinePrice(default_price_data, "default_price_data")
  }
  const metadata = mergeMetadata({}, parameters.metadata ?? null)
  const id = transaction.newId(PREFIXES.product)
  const price = default_price_data == null ? null : inlinePrice(transaction, id, default_price_data, { active: true })
  const now = secondsOf(transaction.now)
  const empty: Product = {
    id,
    object: "product",
    active: parameters.active ?? true,
    name: parameters.name,
    images: [],
    marketing_features: [],
    metadata,
    livemode: isLive(transaction.account),
    created: now,
    updated: now,
    description: null,
    url: null,
    default_price: price?.id ?? null,
    shippable: null,
    statement_descriptor: null,
    unit_label: null,
    tax_code: null
  }
  const product = withDetails(empty, parameters)
  transaction.put(PRODUCT, product, { hasPrice: price !== null })
  emit(transaction, "product.created", id)
  if (price !== null) {
    transaction.put(PRICE, price)
    emit(transaction, "price.created", price.id)
  }
  return product
})

/**
 * Changes the sent fields of a product (semantics products.lists, products.null, products.default_price). Emits
 * `product.updated` if anything changes.
 */
export const update = Effect.fnUntraced(function* (
  id: string,
  parameters: UpdateProduct
): Effect.fn.Return<Product, ResourceMissing | PriceInactive | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  const { hidden, value: before } = yield* findProduct(id, "id")
  const after: Product = {
    ...withDetails(before, parameters),
    name: parameters.name ?? before.name,
    active: parameters.active ?? before.active,
    default_price: yield* defaultPrice(before, parameters),
    metadata: yield* updateMetadata(before.metadata, parameters.metadata)
  }
  const previous = previousAttributes(before, after)
  if (Object.keys(previous).length === 0) return before
  const updated: Product = { ...after, updated: secondsOf(transaction.now) }
  transaction.put(PRODUCT, updated, hidden)
  emit(transaction, "product.updated", id, previous)
  return updated
})

/** Deletes a product without prices (semantics products.delete). Emits `product.deleted` with its last state. */
export const remove = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<DeletedProduct, ResourceMissing | ProductHasPrices, Transaction> {
  const transaction = yield* Transaction
  const { hidden } = yield* findProduct(id, "id")
  if (hidden.hasPrice) return yield* new ProductHasPrices({ id })
  emit(transaction, "product.deleted", id)
  transaction.delete(PRODUCT, id)
  return deletedProduct(transaction.account, id)
})

/** Returns the object that the API shows for a deleted product's id (semantics products.delete). */
export const deletedProduct = (account: AccountId, id: string): DeletedProduct => ({
  id,
  object: "product",
  deleted: true,
  livemode: isLive(account)
})

/** Finds the default price that an update names: an active price of the product (semantics products.default_price). */
const defaultPrice = Effect.fnUntraced(function* (
  product: Product,
  { default_price: id }: UpdateProduct
): Effect.fn.Return<string | null, ResourceMissing | PriceInactive | ParameterInvalid, Transaction> {
  if (id === undefined) return product.default_price
  if (id === null) return null
  const price = yield* findPrice(id, "default_price")
  if (!price.active) return yield* new PriceInactive({ id, param: "default_price" })
  if (price.product !== product.id) {
    return yield* new ParameterInvalid({ param: "default_price", rule: "a price of this product" })
  }
  return id
})

type ProductDetails = Pick<
  CreateProduct & UpdateProduct,
  (typeof TEXT_FIELDS)[number] | "shippable" | "package_dimensions"
> &
  Pick<CreateProduct, "images" | "marketing_features">

/** Returns the product with the sent details; lists are replaced as a whole (semantics products.lists). */
const withDetails = (product: Product, sent: ProductDetails): Product => {
  const { package_dimensions, ...rest } = product
  const dimensions = sent.package_dimensions === undefined ? package_dimensions : sent.package_dimensions
  return {
    ...rest,
    ...Object.fromEntries(
      TEXT_FIELDS.filter((field) => sent[field] !== undefined).map((field) => [field, sent[field] || null])
    ),
    ...(sent.shippable !== undefined && { shippable: sent.shippable }),
    ...(sent.images !== undefined && { images: sent.images ?? [] }),
    ...(sent.marketing_features !== undefined && { marketing_features: sent.marketing_features ?? [] }),
    ...(dimensions && { package_dimensions: orderedDimensions(dimensions) })
  }
}

/** Orders the dimensions, so that equal ones have equal JSON. */
const orderedDimensions = ({ height, length, weight, width }: PackageDimensions): PackageDimensions => ({
  height,
  length,
  width,
  weight
})
