/**
 * A call fails with one of these: one class for each error type of the API (semantics §3), and one for each way of
 * getting no answer of Till's at all.
 *
 * Fields that the API has carry the API's names. No error holds a request, a header or a body, so the API key is in
 * none of them.
 */
import { Data } from "effect"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"

/** Every error knows this. */
interface CallFields {
  readonly message: string
  /** The HTTP status of the answer; null if there was none. */
  readonly status: number | null
  /** The answer's `X-Request-Id`, which Till's log has as well. */
  readonly request_id: string | null
  /** The `Idempotency-Key` of a POST: to call again with it is to repeat the same request. */
  readonly idempotency_key: string | null
  /** Seconds that the answer asked to wait for. */
  readonly retry_after: number | null
}

/** The API says this about an error. */
interface ErrorFields extends CallFields {
  readonly code: string
  /** The parameter that is to blame. */
  readonly param: string | null
  readonly doc_url: string | null
}

/** The request cannot be carried out as it is, or not in the state that things are in. */
export class InvalidRequestError extends Data.TaggedError("InvalidRequestError")<ErrorFields> {
  readonly type = "invalid_request_error"
}

/** There is no such API key, or it does not permit the call. */
export class AuthenticationError extends Data.TaggedError("AuthenticationError")<ErrorFields> {
  readonly type = "authentication_error"
}

/** The card was declined. */
export class PaymentError extends Data.TaggedError("PaymentError")<
  ErrorFields & {
    readonly decline_code: string | undefined
    /** ID of the failed charge. */
    readonly charge: string | undefined
    /** The PaymentIntent as the decline left it; to a publishable key, what that may see of it (semantics A6). */
    readonly payment_intent: PaymentIntent | undefined
  }
> {
  readonly type = "payment_error"
}

/** Too many requests; see `retry_after`. */
export class RateLimitError extends Data.TaggedError("RateLimitError")<ErrorFields> {
  readonly type = "rate_limit_error"
}

/** Till could not carry the request out, and has changed nothing. */
export class ApiError extends Data.TaggedError("ApiError")<ErrorFields> {
  readonly type = "api_error"
}

/** No answer, or not the whole of it, or not in time. Nobody knows whether the request was carried out. */
export class ConnectionError extends Data.TaggedError("ConnectionError")<CallFields> {
  readonly type = "connection_error"
}

/** An answer that is not Till's, as that of a proxy in between. Nobody knows whether the request was carried out. */
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

// Effect lets `console.log` show its errors as bare fields. Who logs what a call threw wants its name and stack as
// well.
for (const { prototype } of classes) {
  Object.defineProperty(prototype, Symbol.for("nodejs.util.inspect.custom"), { value: undefined })
}

/** True if something that was thrown is an error of the client. */
export const isTillError = (error: unknown): error is TillError => classes.some((Class) => error instanceof Class)
