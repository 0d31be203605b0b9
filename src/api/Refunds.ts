/** Refunds (spec: Refunds; semantics §1.14). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { PaymentIntentId } from "../domain/Identifiers.ts"
import { MetadataParameter } from "../domain/Metadata.ts"
import { Amount } from "../domain/Money.ts"
import { Refund, RefundReason } from "../domain/Refund.ts"
import { unsettable } from "../domain/Text.ts"
import { commandErrors, errors } from "./Errors.ts"
import { commandHeaders, requestHeaders } from "./Headers.ts"
import { List, listQuery } from "./List.ts"

export const CreateRefund = Schema.Struct({
  payment_intent: PaymentIntentId,
  amount: Schema.optionalKey(Schema.NullOr(Amount)).annotate({
    description: "At most what is left to refund, and that by default."
  }),
  reason: Schema.optionalKey(Schema.NullOr(RefundReason)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreateRefund" })

export const UpdateRefund = Schema.Struct({
  metadata: Schema.optionalKey(unsettable(MetadataParameter))
}).annotate({ identifier: "UpdateRefund" })

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
