/** Customers (spec: Customers; semantics §1.10). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { CreateCustomer, Customer, CustomerEmail, DeletedCustomer, UpdateCustomer } from "../domain/Customer.ts"
import { PaymentMethod } from "../domain/PaymentMethod.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Access.ts"
import { List, listQuery } from "./List.ts"

const params = { id: Schema.String }

export const Customers = HttpApiGroup.make("customers").add(
  HttpApiEndpoint.post("create", "/v1/customers", {
    headers: commandHeaders,
    payload: CreateCustomer,
    success: Customer,
    error: commandErrors
  }),
  HttpApiEndpoint.get("list", "/v1/customers", {
    headers: requestHeaders,
    query: { ...listQuery, email: Schema.optionalKey(CustomerEmail) },
    success: List(Customer),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/customers/:id", {
    headers: requestHeaders,
    params,
    success: Schema.Union([Customer, DeletedCustomer]),
    error: errors
  }),
  HttpApiEndpoint.post("update", "/v1/customers/:id", {
    headers: commandHeaders,
    params,
    payload: UpdateCustomer,
    success: Customer,
    error: commandErrors
  }),
  HttpApiEndpoint.delete("delete", "/v1/customers/:id", {
    headers: requestHeaders,
    params,
    success: DeletedCustomer,
    error: errors
  }),
  HttpApiEndpoint.get("payment_methods", "/v1/customers/:id/payment_methods", {
    headers: requestHeaders,
    params,
    query: listQuery,
    success: List(PaymentMethod),
    error: errors
  })
)
