/** The lifecycle of products: active or archived; deleted, as long as they have had no price (semantics §1.11). */
import { Effect } from "effect"
import { ParameterInvalid, PriceInactive, ProductHasPrices } from "../domain/Errors.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import type { MetadataParameter } from "../domain/Metadata.ts"
import { mergeMetadata, updateMetadata } from "../domain/Metadata.ts"
import type { DeletedProduct, MarketingFeature, PackageDimensions, Product } from "../domain/Product.ts"
import { secondsOf } from "../domain/Time.ts"
import type { AccountId } from "../engine/Document.ts"
import { Transaction } from "../engine/Transaction.ts"
import { isLive } from "./AccountIds.ts"
import { findPrice, findProduct } from "./Catalog.ts"
import { PRICE, PRODUCT } from "./Documents.ts"
import { emit } from "./Events.ts"
import { requireAcceptedCurrency } from "./PaymentsConfig.ts"
import { previousAttributes } from "./PreviousAttributes.ts"
import type { InlinePrice } from "./Prices.ts"
import { inlinePrice, requireInlinePrice } from "./Prices.ts"

/** Null, and "" of a text, are the same as absent on creation, and unset on update (semantics T10, 9.1, 9.2). */
interface ProductDetails {
  readonly description?: string | null
  readonly url?: string | null
  readonly shippable?: boolean | null
  readonly statement_descriptor?: string | null
  readonly unit_label?: string | null
  readonly tax_code?: string | null
  readonly package_dimensions?: PackageDimensions | null
  readonly metadata?: MetadataParameter | null | ""
}

export interface CreateProduct extends ProductDetails {
  readonly name: string
  readonly active?: boolean | null
  readonly images?: ReadonlyArray<string> | null
  readonly marketing_features?: ReadonlyArray<MarketingFeature> | null
  readonly default_price_data?: InlinePrice | null
}

export interface UpdateProduct extends ProductDetails {
  readonly name?: string
  readonly active?: boolean
  readonly images?: ReadonlyArray<string>
  readonly marketing_features?: ReadonlyArray<MarketingFeature>
  readonly default_price?: string | null
}

const TEXT_FIELDS = ["description", "url", "statement_descriptor", "unit_label", "tax_code"] as const

/** Emits `product.created`, and after it `price.created` if there is a default price (semantics PR4, §4). */
export const create = Effect.fnUntraced(function* (parameters: CreateProduct) {
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

/** Emits `product.updated` if anything changes. */
export const update = Effect.fnUntraced(function* (id: string, parameters: UpdateProduct) {
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

/** Emits `product.deleted` with the product's last state. Fails if the product has a price (semantics PR2). */
export const remove = Effect.fnUntraced(function* (id: string) {
  const transaction = yield* Transaction
  const { hidden } = yield* findProduct(id, "id")
  if (hidden.hasPrice) return yield* new ProductHasPrices({ id })
  emit(transaction, "product.deleted", id)
  transaction.delete(PRODUCT, id)
  return deletedProduct(transaction.account, id)
})

/** What a deleted product's id still shows. */
export const deletedProduct = (account: AccountId, id: string): DeletedProduct => ({
  id,
  object: "product",
  deleted: true,
  livemode: isLive(account)
})

/** The default price that an update asks for: an active price of the product (semantics PR5). */
const defaultPrice = Effect.fnUntraced(function* (product: Product, { default_price: id }: UpdateProduct) {
  if (id === undefined) return product.default_price
  if (id === null) return null
  const price = yield* findPrice(id, "default_price")
  if (!price.active) return yield* new PriceInactive({ id, param: "default_price" })
  if (price.product !== product.id) {
    return yield* new ParameterInvalid({ param: "default_price", rule: "a price of this product" })
  }
  return id
})

/** Lists and dimensions are replaced as a whole (semantics PR6). */
const withDetails = (
  product: Product,
  sent: ProductDetails & Pick<CreateProduct, "images" | "marketing_features">
): Product => {
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

/** In one order, so that equal ones have equal JSON. */
const orderedDimensions = ({ height, length, weight, width }: PackageDimensions): PackageDimensions => ({
  height,
  length,
  width,
  weight
})
