/**
 * The errors of a call: one class for each error type of the API (semantics errors.table), and one for each way of
 * getting no response from Till.
 *
 * Fields of the API keep the API's names. No error contains a request, a header or a body, so none contains the API
 * key.
 */
import type { PaymentIntent } from "./Contract.ts"

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

/** Fields of a declined card's error. */
interface PaymentErrorFields extends ErrorFields {
  readonly decline_code: string | undefined
  /** ID of the failed charge. */
  readonly charge: string | undefined
  /**
   * The PaymentIntent after the decline; with a publishable key, its visible part (semantics
   * keys.publishable.payment_intents).
   */
  readonly payment_intent: PaymentIntent | undefined
}

/** Makes the base of an error class: an `Error` with fields, and a `_tag` for `Effect.catchTag`. */
const errorClass = <Tag extends string, Fields extends CallFields>(tag: Tag): ErrorClass<Tag, Fields> =>
  class extends Error {
    readonly _tag = tag

    static {
      Object.defineProperty(this.prototype, "name", { value: tag, configurable: true, writable: true })
    }

    constructor(fields: Fields) {
      super(fields.message)
      Object.assign(this, fields)
    }
  } as never

type ErrorClass<Tag extends string, Fields> = new (fields: Fields) => Error & Fields & { readonly _tag: Tag }

/** The request is invalid, or the state of an object does not allow it. */
export class InvalidRequestError extends errorClass<"InvalidRequestError", ErrorFields>("InvalidRequestError") {
  readonly type = "invalid_request_error"
}

/** The API key does not exist, or does not permit the call. */
export class AuthenticationError extends errorClass<"AuthenticationError", ErrorFields>("AuthenticationError") {
  readonly type = "authentication_error"
}

/** The card was declined. */
export class PaymentError extends errorClass<"PaymentError", PaymentErrorFields>("PaymentError") {
  readonly type = "payment_error"
}

/** Too many requests; see `retry_after`. */
export class RateLimitError extends errorClass<"RateLimitError", ErrorFields>("RateLimitError") {
  readonly type = "rate_limit_error"
}

/** Till could not carry out the request, and changed nothing. */
export class ApiError extends errorClass<"ApiError", ErrorFields>("ApiError") {
  readonly type = "api_error"
}

/** No response, an incomplete one, or none in time. Whether the request was carried out is unknown. */
export class ConnectionError extends errorClass<"ConnectionError", CallFields>("ConnectionError") {
  readonly type = "connection_error"
}

/** A response that is not Till's, such as that of a proxy. Whether the request was carried out is unknown. */
export class UnexpectedResponseError extends errorClass<"UnexpectedResponseError", CallFields>(
  "UnexpectedResponseError"
) {
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

/** Returns whether a thrown value is an error of the client. */
export const isTillError = (error: unknown): error is TillError => classes.some((Class) => error instanceof Class)
