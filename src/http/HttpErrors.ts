/** A request fails with one of these before any payments logic sees it (semantics §1.1–§1.3). ErrorTable says how. */
import { Data } from "effect"

/** The request has no `Authorization` header (A1). */
export class CredentialsMissing extends Data.TaggedError("CredentialsMissing") {}
/** The request has a bearer token, which is what many take an API key for (9.26). */
export class CredentialsBearer extends Data.TaggedError("CredentialsBearer") {}
/** The key is unknown, revoked or not readable (A2). */
export class CredentialsInvalid extends Data.TaggedError("CredentialsInvalid") {}
/** The key was rolled, and its grace is over (A3). */
export class ApiKeyExpired extends Data.TaggedError("ApiKeyExpired") {}
/** The `X-API-Version` is not supported (V1). */
export class InvalidApiVersion extends Data.TaggedError("InvalidApiVersion")<{ readonly version: string }> {}
/** No route has this path (T15). */
export class RouteNotFound extends Data.TaggedError("RouteNotFound")<{
  readonly method: string
  readonly path: string
}> {}
/** The path exists, for other methods (T15). */
export class MethodNotAllowed extends Data.TaggedError("MethodNotAllowed")<{
  readonly method: string
  readonly path: string
  readonly allowed: ReadonlyArray<string>
}> {}
/** The sender has sent more requests in a minute than the installation allows (R1). */
export class RateLimitExceeded extends Data.TaggedError("RateLimitExceeded")<{
  /** Until requests are taken again, in seconds. */
  readonly retryAfterSeconds: number
}> {}
/** The bytes are not HTTP, or they are HTTP/1.1 without `Host`. */
export class InvalidHttp extends Data.TaggedError("InvalidHttp") {}
/** The headers are longer than 16 KiB. */
export class RequestHeadersTooLarge extends Data.TaggedError("RequestHeadersTooLarge") {}
/** The request did not come to its end in time. */
export class RequestTimeout extends Data.TaggedError("RequestTimeout") {}
/** The body is longer than 1 MiB (T6). */
export class RequestTooLarge extends Data.TaggedError("RequestTooLarge") {}
/** The body is not declared as JSON (T3). */
export class UnsupportedMediaType extends Data.TaggedError("UnsupportedMediaType") {}
/** The body is not JSON, not UTF-8, or nested too deeply (T4, §8.13). */
export class InvalidJson extends Data.TaggedError("InvalidJson") {}
/** The route does not support this `expand[]` (E1). */
export class FieldNotExpandable extends Data.TaggedError("FieldNotExpandable")<{
  readonly field: string
  /** The route's method and template, such as `GET /v1/payment_intents/{id}`. */
  readonly route: string
}> {}

export type HttpError =
  | CredentialsMissing
  | CredentialsBearer
  | CredentialsInvalid
  | ApiKeyExpired
  | InvalidApiVersion
  | RouteNotFound
  | MethodNotAllowed
  | RateLimitExceeded
  | InvalidHttp
  | RequestHeadersTooLarge
  | RequestTimeout
  | RequestTooLarge
  | UnsupportedMediaType
  | InvalidJson
  | FieldNotExpandable
