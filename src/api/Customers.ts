/** Customers (spec: Customers; semantics §1.10). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import {
  Customer,
  CustomerDescription,
  CustomerEmail,
  CustomerName,
  CustomerPhone,
  DeletedCustomer
} from "../domain/Customer.ts"
import { MetadataParameter } from "../domain/Metadata.ts"
import { unsettable } from "../domain/Text.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Headers.ts"
import { List, listQuery } from "./List.ts"

const details = {
  name: Schema.optionalKey(Schema.NullOr(CustomerName)),
  phone: Schema.optionalKey(Schema.NullOr(CustomerPhone)),
  description: Schema.optionalKey(Schema.NullOr(CustomerDescription))
}

export const CreateCustomer = Schema.Struct({
  email: Schema.optionalKey(Schema.NullOr(CustomerEmail)),
  ...details,
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreateCustomer" })

export const UpdateCustomer = Schema.Struct({
  email: Schema.optionalKey(unsettable(CustomerEmail)),
  ...details,
  metadata: Schema.optionalKey(unsettable(MetadataParameter))
}).annotate({ identifier: "UpdateCustomer" })

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
  })
)
