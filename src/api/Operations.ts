/** Operations at processors: read-only, because only their outcomes change them (semantics operations.list). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { PaymentIntentId } from "../domain/Identifiers.ts"
import { Operation, OperationKind, OperationStatus } from "../domain/Operation.ts"
import { errors } from "./Errors.ts"
import { requestHeaders } from "./Access.ts"
import { List, listQuery } from "./List.ts"

export const Operations = HttpApiGroup.make("operations").add(
  HttpApiEndpoint.get("list", "/v1/operations", {
    headers: requestHeaders,
    query: {
      ...listQuery,
      payment_intent: Schema.optionalKey(PaymentIntentId),
      status: Schema.optionalKey(OperationStatus),
      kind: Schema.optionalKey(OperationKind)
    },
    success: List(Operation),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/operations/:id", {
    headers: requestHeaders,
    params: { id: Schema.String },
    success: Operation,
    error: errors
  })
)
