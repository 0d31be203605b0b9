/** Refunds (spec: Refunds; semantics refunds.*). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { PaymentIntentId } from "../domain/Identifiers.ts"
import { CreateRefund, Refund, UpdateRefund } from "../domain/Refund.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Access.ts"
import { List, listQuery } from "./List.ts"

const params = { id: Schema.String }

export const Refunds = HttpApiGroup.make("refunds").add(
  HttpApiEndpoint.post("create", "/v1/refunds", {
    headers: commandHeaders,
    payload: CreateRefund,
    success: Refund,
    error: commandErrors
  }),
  HttpApiEndpoint.get("list", "/v1/refunds", {
    headers: requestHeaders,
    query: { ...listQuery, payment_intent: Schema.optionalKey(PaymentIntentId) },
    success: List(Refund),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/refunds/:id", {
    headers: requestHeaders,
    params,
    success: Refund,
    error: errors
  }),
  HttpApiEndpoint.post("update", "/v1/refunds/:id", {
    headers: commandHeaders,
    params,
    payload: UpdateRefund,
    success: Refund,
    error: commandErrors
  })
)
