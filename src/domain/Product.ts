/** Products (spec: Product; semantics §1.11). */
import { Schema } from "effect"
import { PriceId, ProductId } from "./Identifiers.ts"
import { Metadata } from "./Metadata.ts"
import { text, TEXT_LENGTH_MAX } from "./Text.ts"
import { Timestamp } from "./Time.ts"
import { WebUrl } from "./Url.ts"

const PRODUCT_IMAGES_MAX = 8
const PRODUCT_MARKETING_FEATURES_MAX = 15

const IMAGES_RULE = `an array of at most ${PRODUCT_IMAGES_MAX} URLs`
const MARKETING_FEATURES_RULE = `an array of at most ${PRODUCT_MARKETING_FEATURES_MAX} features`

/** What each parameter of a product must be. */
export const ProductName = text()
  .check(Schema.isMinLength(1))
  .annotate({ rule: `a string of 1 to ${TEXT_LENGTH_MAX} characters` })
export const ProductDescription = text()
export const ProductUrl = WebUrl
export const ProductStatementDescriptor = text(22)
export const ProductUnitLabel = text(12)
export const ProductTaxCode = text()
export const ProductImages = Schema.Array(WebUrl).check(Schema.isMaxLength(PRODUCT_IMAGES_MAX, { rule: IMAGES_RULE }))

export const MarketingFeature = Schema.Struct({ name: ProductName }).annotate({ identifier: "MarketingFeature" })
export type MarketingFeature = typeof MarketingFeature.Type

export const ProductMarketingFeatures = Schema.Array(MarketingFeature).check(
  Schema.isMaxLength(PRODUCT_MARKETING_FEATURES_MAX, { rule: MARKETING_FEATURES_RULE })
)

const Dimension = Schema.Finite.check(Schema.isGreaterThan(0)).annotate({ rule: "a number above 0" })

/** All four, or none (semantics PR6). */
export const PackageDimensions = Schema.Struct({
  height: Dimension,
  length: Dimension,
  width: Dimension,
  weight: Dimension
}).annotate({ identifier: "PackageDimensions" })
export type PackageDimensions = typeof PackageDimensions.Type

/** Times in Unix seconds. */
export const Product = Schema.Struct({
  id: ProductId,
  object: Schema.Literal("product"),
  active: Schema.Boolean,
  name: Schema.String,
  images: Schema.Array(Schema.String),
  marketing_features: Schema.Array(MarketingFeature),
  metadata: Metadata,
  livemode: Schema.Boolean,
  created: Timestamp,
  updated: Timestamp,
  description: Schema.NullOr(Schema.String),
  url: Schema.NullOr(Schema.String),
  default_price: Schema.NullOr(PriceId),
  shippable: Schema.NullOr(Schema.Boolean),
  statement_descriptor: Schema.NullOr(Schema.String),
  unit_label: Schema.NullOr(Schema.String),
  tax_code: Schema.NullOr(Schema.String),
  package_dimensions: Schema.optionalKey(PackageDimensions)
}).annotate({ identifier: "Product" })
export type Product = typeof Product.Type

/** What is left of a deleted product (semantics PR2). */
export const DeletedProduct = Schema.Struct({
  id: ProductId,
  object: Schema.Literal("product"),
  deleted: Schema.Literal(true),
  livemode: Schema.Boolean
}).annotate({ identifier: "DeletedProduct" })
export type DeletedProduct = typeof DeletedProduct.Type
