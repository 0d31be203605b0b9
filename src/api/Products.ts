/** Products (spec: Products; semantics §1.11). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { PriceId } from "../domain/Identifiers.ts"
import { MetadataParameter } from "../domain/Metadata.ts"
import { AMOUNT_CAP, AmountOrZero } from "../domain/Money.ts"
import { DecimalAmount, InlinePrice } from "../domain/Price.ts"
import {
  DeletedProduct,
  PackageDimensions,
  Product,
  ProductDescription,
  ProductImages,
  ProductMarketingFeatures,
  ProductName,
  ProductStatementDescriptor,
  ProductTaxCode,
  ProductUnitLabel,
  ProductUrl
} from "../domain/Product.ts"
import { unsettable } from "../domain/Text.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Headers.ts"
import { Flag, List, listQuery } from "./List.ts"

/** Free texts: null and the empty string unset them, or leave them unset (semantics 9.2). */
const texts = {
  statement_descriptor: Schema.optionalKey(Schema.NullOr(ProductStatementDescriptor)),
  unit_label: Schema.optionalKey(Schema.NullOr(ProductUnitLabel)),
  tax_code: Schema.optionalKey(Schema.NullOr(ProductTaxCode))
}

/** A price that is made along with its product, and becomes its default price (semantics PR4). */
export const DefaultPriceData = Schema.Struct({
  currency: InlinePrice.currency,
  unit_amount: Schema.optionalKey(Schema.NullOr(AmountOrZero)).annotate({ description: AMOUNT_CAP }),
  unit_amount_decimal: Schema.optionalKey(Schema.NullOr(DecimalAmount)),
  tax_behavior: InlinePrice.tax_behavior,
  recurring: InlinePrice.recurring
})

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

/** What null unsets is a closed list (semantics 9.1). */
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

const params = { id: Schema.String }

export const Products = HttpApiGroup.make("products").add(
  HttpApiEndpoint.post("create", "/v1/products", {
    headers: commandHeaders,
    payload: CreateProduct,
    success: Product,
    error: commandErrors
  }),
  HttpApiEndpoint.get("list", "/v1/products", {
    headers: requestHeaders,
    query: { ...listQuery, active: Schema.optionalKey(Flag) },
    success: List(Product),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/products/:id", {
    headers: requestHeaders,
    params,
    success: Product,
    error: errors
  }),
  HttpApiEndpoint.post("update", "/v1/products/:id", {
    headers: commandHeaders,
    params,
    payload: UpdateProduct,
    success: Product,
    error: commandErrors
  }),
  HttpApiEndpoint.delete("delete", "/v1/products/:id", {
    headers: requestHeaders,
    params,
    success: DeletedProduct,
    error: errors
  })
)
