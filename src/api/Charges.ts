/** Charges: read-only, because only PaymentIntents and refunds change them (semantics charges.list). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Charge } from "../domain/Charge.ts"
import { CustomerId, PaymentIntentId } from "../domain/Identifiers.ts"
import { errors } from "./Errors.ts"
import { requestHeaders } from "./Access.ts"
import { List, listQuery } from "./List.ts"

export const Charges = HttpApiGroup.make("charges").add(
  HttpApiEndpoint.get("list", "/v1/charges", {
    headers: requestHeaders,
    query: {
      ...listQuery,
      payment_intent: Schema.optionalKey(PaymentIntentId),
      customer: Schema.optionalKey(CustomerId)
    },
    success: List(Charge),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/charges/:id", {
    headers: requestHeaders,
    params: { id: Schema.String },
    success: Charge,
    error: errors
  })
)
