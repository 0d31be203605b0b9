/** Payment methods (semantics H3, §6). */
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Schema } from "effect"
import { CreatePaymentMethod, PaymentMethod } from "../domain/PaymentMethod.ts"
import { commandHeaders, requestHeaders, WithoutClientSecret } from "./Access.ts"
import { commandErrors, errors } from "./Errors.ts"

export const PaymentMethods = HttpApiGroup.make("payment_methods").add(
  HttpApiEndpoint.post("create", "/v1/payment_methods", {
    headers: commandHeaders,
    payload: CreatePaymentMethod,
    success: PaymentMethod,
    error: commandErrors
  }).annotate(WithoutClientSecret, true),
  HttpApiEndpoint.get("retrieve", "/v1/payment_methods/:id", {
    headers: requestHeaders,
    params: { id: Schema.String },
    success: PaymentMethod,
    error: errors
  })
)
