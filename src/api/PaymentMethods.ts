/** Payment methods (semantics payment_methods.create, payment_methods.attach, payment_methods.object). */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Schema } from "effect"
import { CustomerId } from "../domain/Identifiers.ts"
import { AttachPaymentMethod, CreatePaymentMethod, PaymentMethod } from "../domain/PaymentMethod.ts"
import { commandHeaders, requestHeaders, WithoutClientSecret } from "./Access.ts"
import { commandErrors, errors } from "./Errors.ts"
import { List, listQuery } from "./List.ts"

const params = { id: Schema.String }

const ATTACH =
  "Attaches the payment method to a customer. Afterwards, only this customer's payments can use it. In test mode, " +
  "built-in payment methods such as `pm_card_visa` are copied: the response has the copy's `id`."

const DETACH =
  "Detaches the payment method from its customer. It can never be charged or attached again, not even by payments " +
  "that wait for a confirmation or an authentication. Earlier charges stand."

export const PaymentMethods = HttpApiGroup.make("payment_methods").add(
  HttpApiEndpoint.post("create", "/v1/payment_methods", {
    headers: commandHeaders,
    payload: CreatePaymentMethod,
    success: PaymentMethod,
    error: commandErrors
  }).annotate(WithoutClientSecret, true),
  HttpApiEndpoint.get("retrieve", "/v1/payment_methods/:id", {
    headers: requestHeaders,
    params,
    success: PaymentMethod,
    error: errors
  }),
  HttpApiEndpoint.get("list", "/v1/payment_methods", {
    headers: requestHeaders,
    query: { ...listQuery, customer: CustomerId },
    success: List(PaymentMethod),
    error: errors
  }),
  HttpApiEndpoint.post("attach", "/v1/payment_methods/:id/attach", {
    headers: commandHeaders,
    params,
    payload: AttachPaymentMethod,
    success: PaymentMethod,
    error: commandErrors
  }).annotate(OpenApi.Description, ATTACH),
  HttpApiEndpoint.post("detach", "/v1/payment_methods/:id/detach", {
    headers: commandHeaders,
    params,
    success: PaymentMethod,
    error: commandErrors
  }).annotate(OpenApi.Description, DETACH)
)
