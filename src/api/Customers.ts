/** Customers (spec: Customers; semantics customers.*). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { CreateCustomer, Customer, DeletedCustomer, UpdateCustomer } from "../domain/Customer.ts"
import { PaymentMethod } from "../domain/PaymentMethod.ts"
import { BLANK_ADVICE, EMAIL_LENGTH_MAX, hasBlank, text } from "../domain/Text.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Access.ts"
import { List, listQuery } from "./List.ts"
import { searchQuery, SearchResult } from "./Search.ts"

/** Accepts nearly any text; a text that is not an address matches no customer (semantics lists.created). */
const EmailFilter = text(EMAIL_LENGTH_MAX)
  .check(
    Schema.isMinLength(1),
    Schema.makeFilter((email: string) => !hasBlank(email))
  )
  .annotate({ rule: `a string of at most ${EMAIL_LENGTH_MAX} characters; ${BLANK_ADVICE}` })

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
    query: { ...listQuery, email: Schema.optionalKey(EmailFilter) },
    success: List(Customer),
    error: errors
  }),
  HttpApiEndpoint.get("search", "/v1/customers/search", {
    headers: requestHeaders,
    query: searchQuery(`email~"example.com" AND -metadata["plan"]:"free"`),
    success: SearchResult(Customer),
    error: errors
  }).annotate(
    OpenApi.Description,
    'Searches by `id`, `created`, `email`, `name` and `metadata["key"]`. Newest first, without deleted customers; ' +
      "includes every change that was confirmed before the request."
  ),
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
  HttpApiEndpoint.post("erase", "/v1/customers/:id/erase", {
    headers: commandHeaders,
    params,
    success: Schema.Union([Customer, DeletedCustomer]),
    error: commandErrors
  })
    .annotate(OpenApi.Summary, "Erase the data of a customer")
    .annotate(
      OpenApi.Description,
      "Erases the names, emails, phone numbers, addresses, descriptions and metadata of a customer and of what the " +
        "customer has paid, from objects, events, stored responses and logs, for good. Amounts, times, states and IDs " +
        "stay. The customer's `erasure` is `completed` when it is done."
    ),
  HttpApiEndpoint.get("payment_methods", "/v1/customers/:id/payment_methods", {
    headers: requestHeaders,
    params,
    query: listQuery,
    success: List(PaymentMethod),
    error: errors
  }).annotate(OpenApi.Summary, "List the payment methods of a customer")
)
