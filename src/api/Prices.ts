/** Prices (spec: Prices; semantics prices.*). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ProductId } from "../domain/Identifiers.ts"
import { Currency } from "../domain/Money.ts"
import { CreatePrice, LookupKey, Price, PriceType, UpdatePrice } from "../domain/Price.ts"
import { DeletedProduct, Product } from "../domain/Product.ts"
import { ruleOf } from "../domain/Rule.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Access.ts"
import { Flag, List, listQuery } from "./List.ts"

/** A price, with the whole product for `expand[]=product`. */
export const ExpandablePrice = Schema.Struct({
  ...Price.fields,
  product: Schema.Union([ProductId, Product, DeletedProduct])
}).annotate({ identifier: "ExpandablePrice" })

const LOOKUP_KEYS_MAX = 10

/** A filter for prices with one of these keys (semantics prices.lookup_key). The rule is that of the whole list. */
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
