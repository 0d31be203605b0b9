/** The error envelope (semantics errors.envelope) as part of the contract. */
import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"

export const ErrorType = Schema.Literals([
  "invalid_request_error",
  "authentication_error",
  "payment_error",
  "rate_limit_error",
  "api_error"
])
export type ErrorType = typeof ErrorType.Type

export const ErrorResponse = Schema.Struct({
  error: Schema.Struct({
    type: ErrorType,
    code: Schema.String,
    message: Schema.String,
    param: Schema.NullOr(Schema.String),
    doc_url: Schema.String,
    decline_code: Schema.optionalKey(Schema.String),
    charge: Schema.optionalKey(Schema.String),
    payment_intent: Schema.optionalKey(Schema.Unknown)
  })
}).annotate({ identifier: "ErrorResponse" })

const withStatus = (status: number) => ErrorResponse.pipe(HttpApiSchema.status(status))

export const errors = [400, 401, 403, 404, 429, 500, 503].map(withStatus)

/** The errors of a request with a body and an idempotency key. */
export const commandErrors = [...errors, ...[409, 413, 415, 422].map(withStatus)]

/** The errors of a request that charges a card. */
export const paymentErrors = [...commandErrors, withStatus(402)]
