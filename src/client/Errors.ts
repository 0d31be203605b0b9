/**
 * The errors of a call: one class for each error type of the API (semantics errors.table), and one for each way of
 * getting no response from Till.
 *
 * Fields of the API keep the API's names. No error contains a request, a header or a body, so none contains the API
 * key.
 */
import { Data } from "effect"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"

/** The fields of every error. */
interface CallFields {
  readonly message: string
  /** The HTTP status of the response; null without a response. */
  readonly status: number | null
  /** The response's `X-Request-Id`, which Till also logs. */
  readonly request_id: string | null
  /** The `Idempotency-Key` of a POST. A call with the same key repeats the same request. */
  readonly idempotency_key: string | null
  /** Seconds to wait, from the response's `Retry-After`. */
  readonly retry_after: number | null
}

/** The fields of an error response of the API. */
interface ErrorFields extends CallFields {
  readonly code: string
  /** The parameter that caused the error. */
  readonly param: string | null
  readonly doc_url: string | null
}

/** The request is invalid, or the state of an object does not allow it. */
export class InvalidRequestError extends Data.TaggedError("InvalidRequestError")<ErrorFields> {
  readonly type = "invalid_request_error"
}

/** The API key does not exist, or does not permit the call. */
export class AuthenticationError extends Data.TaggedError("AuthenticationError")<ErrorFields> {
  readonly type = "authentication_error"
}

/** The card was declined. */
export class PaymentError extends Data.TaggedError("PaymentError")<
  ErrorFields & {
    readonly decline_code: string | undefined
    /** ID of the failed charge. */
    readonly charge: string | undefined
    /**
     * The PaymentIntent after the decline; with a publishable key, its visible part (semantics
     * keys.publishable.payment_intents).
     */
    readonly payment_intent: PaymentIntent | undefined
  }
> {
  readonly type = "payment_error"
}

/** Too many requests; see `retry_after`. */
export class RateLimitError extends Data.TaggedError("RateLimitError")<ErrorFields> {
  readonly type = "rate_limit_error"
}

/** Till could not carry out the request, and changed nothing. */
export class ApiError extends Data.TaggedError("ApiError")<ErrorFields> {
  readonly type = "api_error"
}

/** No response, an incomplete one, or none in time. Whether the request was carried out is unknown. */
export class ConnectionError extends Data.TaggedError("ConnectionError")<CallFields> {
  readonly type = "connection_error"
}

/** A response that is not Till's, such as that of a proxy. Whether the request was carried out is unknown. */
export class UnexpectedResponseError extends Data.TaggedError("UnexpectedResponseError")<CallFields> {
  readonly type = "unexpected_response_error"
}

export type TillError =
  | InvalidRequestError
  | AuthenticationError
  | PaymentError
  | RateLimitError
  | ApiError
  | ConnectionError
  | UnexpectedResponseError

const classes = [
  InvalidRequestError,
  AuthenticationError,
  PaymentError,
  RateLimitError,
  ApiError,
  ConnectionError,
  UnexpectedResponseError
]

// `console.log` prints Effect's errors as bare fields. Without this inspection function, it prints name and stack too.
for (const { prototype } of classes) {
  Object.defineProperty(prototype, Symbol.for("nodejs.util.inspect.custom"), { value: undefined })
}

/** Returns whether a thrown value is an error of the client. */
export const isTillError = (error: unknown): error is TillError => classes.some((Class) => error instanceof Class)
