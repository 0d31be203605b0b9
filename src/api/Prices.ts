/** Prices (spec: Prices; semantics §1.11). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ProductId } from "../domain/Identifiers.ts"
import { MetadataParameter } from "../domain/Metadata.ts"
import { AMOUNT_CAP, AmountOrZero, Currency } from "../domain/Money.ts"
import {
  BillingScheme,
  CustomUnitAmountParameter,
  DecimalAmount,
  LookupKey,
  Price,
  PriceNickname,
  PriceType,
  RecurringParameter,
  TaxBehavior,
  TiersMode,
  TiersParameter,
  TransformQuantity
} from "../domain/Price.ts"
import { DeletedProduct, Product } from "../domain/Product.ts"
import { ruleOf } from "../domain/Rule.ts"
import { unsettable } from "../domain/Text.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Headers.ts"
import { Flag, List, listQuery } from "./List.ts"

export const CreatePrice = Schema.Struct({
  product: ProductId,
  currency: Currency,
  unit_amount: Schema.optionalKey(Schema.NullOr(AmountOrZero)).annotate({ description: AMOUNT_CAP }),
  unit_amount_decimal: Schema.optionalKey(Schema.NullOr(DecimalAmount)),
  custom_unit_amount: Schema.optionalKey(Schema.NullOr(CustomUnitAmountParameter)),
  active: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  type: Schema.optionalKey(Schema.NullOr(PriceType)),
  billing_scheme: Schema.optionalKey(Schema.NullOr(BillingScheme)),
  recurring: Schema.optionalKey(Schema.NullOr(RecurringParameter)),
  tax_behavior: Schema.optionalKey(Schema.NullOr(TaxBehavior)),
  tiers_mode: Schema.optionalKey(Schema.NullOr(TiersMode)),
  tiers: Schema.optionalKey(Schema.NullOr(TiersParameter)),
  transform_quantity: Schema.optionalKey(Schema.NullOr(TransformQuantity)),
  lookup_key: Schema.optionalKey(Schema.NullOr(LookupKey)),
  transfer_lookup_key: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  nickname: Schema.optionalKey(Schema.NullOr(PriceNickname)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreatePrice" })

/** What a price amounts to is not among it: that never changes (semantics PR19). */
export const UpdatePrice = Schema.Struct({
  active: Schema.optionalKey(Schema.Boolean),
  nickname: Schema.optionalKey(Schema.NullOr(PriceNickname)),
  tax_behavior: Schema.optionalKey(TaxBehavior),
  lookup_key: Schema.optionalKey(Schema.NullOr(LookupKey)),
  transfer_lookup_key: Schema.optionalKey(Schema.Boolean),
  metadata: Schema.optionalKey(unsettable(MetadataParameter))
}).annotate({ identifier: "UpdatePrice" })

/** A price, with its product in full where `expand[]=product` asked for it. */
export const ExpandablePrice = Schema.Struct({
  ...Price.fields,
  product: Schema.Union([ProductId, Product, DeletedProduct])
}).annotate({ identifier: "ExpandablePrice" })

const LOOKUP_KEYS_MAX = 10

/** Prices that have one of these keys (semantics PR17). The rule is that of the whole list, whose items have no names. */
const LookupKeys = Schema.Array(Schema.String).check(
  Schema.makeFilter(
    (keys: ReadonlyArray<string>) => keys.length <= LOOKUP_KEYS_MAX && keys.every(Schema.is(LookupKey)),
    {
      rule: `at most ${LOOKUP_KEYS_MAX} lookup keys, each ${ruleOf(LookupKey)}`,
      toJsonSchema: () => ({ maxItems: LOOKUP_KEYS_MAX })
    }
  )
)

const params = { id: Schema.String }

export const Prices = HttpApiGroup.make("prices").add(
  HttpApiEndpoint.post("create", "/v1/prices", {
    headers: commandHeaders,
    payload: CreatePrice,
    success: Price,
    error: commandErrors
  }),
  HttpApiEndpoint.get("list", "/v1/prices", {
    headers: requestHeaders,
    query: {
      ...listQuery,
      active: Schema.optionalKey(Flag),
      product: Schema.optionalKey(ProductId),
      type: Schema.optionalKey(PriceType),
      currency: Schema.optionalKey(Currency),
      "lookup_keys[]": Schema.optionalKey(LookupKeys)
    },
    success: List(Price),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/prices/:id", {
    headers: requestHeaders,
    params,
    query: { "expand[]": Schema.optionalKey(Schema.Array(Schema.Literals(["product"]))) },
    success: ExpandablePrice,
    error: errors
  }),
  HttpApiEndpoint.post("update", "/v1/prices/:id", {
    headers: commandHeaders,
    params,
    payload: UpdatePrice,
    success: Price,
    error: commandErrors
  })
)
