/** Products (spec: Product; semantics products.*). */
import { Schema } from "effect"
import { PriceId, ProductId } from "./Identifiers.ts"
import { Metadata, MetadataParameter } from "./Metadata.ts"
import { AMOUNT_CAP, AmountOrZero } from "./Money.ts"
import { DecimalAmount, InlinePrice } from "./Price.ts"
import { text, TEXT_LENGTH_MAX, unsettable, WebUrl } from "./Text.ts"
import { Timestamp } from "./Time.ts"

const PRODUCT_IMAGES_MAX = 8
const PRODUCT_MARKETING_FEATURES_MAX = 15

const IMAGES_RULE = `an array of at most ${PRODUCT_IMAGES_MAX} URLs`
const MARKETING_FEATURES_RULE = `an array of at most ${PRODUCT_MARKETING_FEATURES_MAX} features`

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

export const ProductMarketingFeatures = Schema.Array(MarketingFeature).check(
  Schema.isMaxLength(PRODUCT_MARKETING_FEATURES_MAX, { rule: MARKETING_FEATURES_RULE })
)

const Dimension = Schema.Finite.check(Schema.isGreaterThan(0)).annotate({ rule: "a number above 0" })

/** The dimensions of a product: all four or none (semantics products.lists). */
export const PackageDimensions = Schema.Struct({
  height: Dimension,
  length: Dimension,
  width: Dimension,
  weight: Dimension
}).annotate({ identifier: "PackageDimensions" })
export type PackageDimensions = typeof PackageDimensions.Type

/** Times are in Unix seconds. */
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

/** The object that the API shows for a deleted product (semantics products.delete). */
export const DeletedProduct = Schema.Struct({
  id: ProductId,
  object: Schema.Literal("product"),
  deleted: Schema.Literal(true),
  livemode: Schema.Boolean
}).annotate({ identifier: "DeletedProduct" })
export type DeletedProduct = typeof DeletedProduct.Type

/** Free texts; null and "" unset them (semantics parameters.empty_text). */
const texts = {
  statement_descriptor: Schema.optionalKey(Schema.NullOr(ProductStatementDescriptor)),
  unit_label: Schema.optionalKey(Schema.NullOr(ProductUnitLabel)),
  tax_code: Schema.optionalKey(Schema.NullOr(ProductTaxCode))
}

/** The data of a price that is created with its product (semantics products.default_price_data). */
export const DefaultPriceData = Schema.Struct({
  currency: InlinePrice.currency,
  unit_amount: Schema.optionalKey(Schema.NullOr(AmountOrZero)).annotate({ description: AMOUNT_CAP }),
  unit_amount_decimal: Schema.optionalKey(Schema.NullOr(DecimalAmount)),
  tax_behavior: InlinePrice.tax_behavior,
  recurring: InlinePrice.recurring
})

/** The body of a creation. Null is the same as absent (semantics parameters.null). */
export const CreateProduct = Schema.Struct({
  name: ProductName,
  active: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  description: Schema.optionalKey(Schema.NullOr(ProductDescription)),
  images: Schema.optionalKey(Schema.NullOr(ProductImages)),
  url: Schema.optionalKey(Schema.NullOr(ProductUrl)),
  default_price_data: Schema.optionalKey(Schema.NullOr(DefaultPriceData)),
  shippable: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  ...texts,
  package_dimensions: Schema.optionalKey(Schema.NullOr(PackageDimensions)),
  marketing_features: Schema.optionalKey(Schema.NullOr(ProductMarketingFeatures)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreateProduct" })
export type CreateProduct = typeof CreateProduct.Type

/** The body of an update. Null unsets only the fields whose schema allows it (semantics products.null). */
export const UpdateProduct = Schema.Struct({
  name: Schema.optionalKey(ProductName),
  active: Schema.optionalKey(Schema.Boolean),
  description: Schema.optionalKey(Schema.NullOr(ProductDescription)),
  images: Schema.optionalKey(ProductImages),
  url: Schema.optionalKey(unsettable(ProductUrl)),
  shippable: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  ...texts,
  package_dimensions: Schema.optionalKey(Schema.NullOr(PackageDimensions)),
  marketing_features: Schema.optionalKey(ProductMarketingFeatures),
  metadata: Schema.optionalKey(unsettable(MetadataParameter)),
  default_price: Schema.optionalKey(Schema.NullOr(PriceId))
}).annotate({ identifier: "UpdateProduct" })
export type UpdateProduct = typeof UpdateProduct.Type
