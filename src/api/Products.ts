/** Products (spec: Products; semantics products.*). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { CreateProduct, DeletedProduct, Product, UpdateProduct } from "../domain/Product.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Access.ts"
import { Flag, List, listQuery } from "./List.ts"

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
