/**
 * Errors of a request before any payments logic runs (semantics requests.*, parameters.*, responses.*, keys.*,
 * idempotency.*). `ErrorTable.ts` maps them to responses.
 */
import { Schema } from "effect"

/** The request has no `Authorization` header (semantics keys.missing). */
export class CredentialsMissing extends Schema.TaggedError<CredentialsMissing>()("CredentialsMissing", {}) {}
/** The request has a bearer token, as other APIs' keys are sent (semantics keys.bearer). */
export class CredentialsBearer extends Schema.TaggedError<CredentialsBearer>()("CredentialsBearer", {}) {}
/** The key is unknown, revoked or not readable (semantics keys.invalid). */
export class CredentialsInvalid extends Schema.TaggedError<CredentialsInvalid>()("CredentialsInvalid", {}) {}
/** The key was rolled, and its grace is over (semantics keys.expired). */
export class ApiKeyExpired extends Schema.TaggedError<ApiKeyExpired>()("ApiKeyExpired", {}) {}
/** The `X-API-Version` is not supported (semantics versions.unknown). */
export class InvalidApiVersion extends Schema.TaggedError<InvalidApiVersion>()("InvalidApiVersion", {
  version: Schema.String
}) {}
/** No route has this path (semantics requests.paths). */
export class RouteNotFound extends Schema.TaggedError<RouteNotFound>()("RouteNotFound", {
  method: Schema.String,
  path: Schema.String
}) {}
/** The path exists for other methods only (semantics requests.paths). */
export class MethodNotAllowed extends Schema.TaggedError<MethodNotAllowed>()("MethodNotAllowed", {
  method: Schema.String,
  path: Schema.String,
  allowed: Schema.Array(Schema.String)
}) {}
/** The sender has exceeded the requests per minute that the installation allows (semantics limits.rate). */
export class RateLimitExceeded extends Schema.TaggedError<RateLimitExceeded>()("RateLimitExceeded", {
  /** Seconds until requests are accepted again. */
  retryAfterSeconds: Schema.Number
}) {}
/** The bytes are not HTTP, or they are HTTP/1.1 without `Host`. */
export class InvalidHttp extends Schema.TaggedError<InvalidHttp>()("InvalidHttp", {}) {}
/** The headers are longer than 16 KiB. */
export class RequestHeadersTooLarge extends Schema.TaggedError<RequestHeadersTooLarge>()(
  "RequestHeadersTooLarge",
  {}
) {}
/** The request did not arrive completely in time. */
export class RequestTimeout extends Schema.TaggedError<RequestTimeout>()("RequestTimeout", {}) {}
/** The body is longer than 1 MiB, or than the 64 KiB that a publishable key may send (semantics requests.size). */
export class RequestTooLarge extends Schema.TaggedError<RequestTooLarge>()("RequestTooLarge", {
  isOfPublishableKey: Schema.optionalKey(Schema.Boolean)
}) {}
/** The body is not declared as JSON (semantics requests.body). */
export class UnsupportedMediaType extends Schema.TaggedError<UnsupportedMediaType>()("UnsupportedMediaType", {}) {}
/** The body is not JSON, not UTF-8, or nested too deeply (semantics requests.json). */
export class InvalidJson extends Schema.TaggedError<InvalidJson>()("InvalidJson", {
  problem: Schema.Literals(["syntax", "encoding", "byte_order_mark", "depth"]),
  /** Offset of the first invalid byte, from 0; the body's length if the body ends too early. */
  byte: Schema.optionalKey(Schema.Number)
}) {}
/** The route does not support this `expand[]` (semantics expand.unknown). */
export class FieldNotExpandable extends Schema.TaggedError<FieldNotExpandable>()("FieldNotExpandable", {
  field: Schema.String,
  /** The route's method and template, such as `GET /v1/payment_intents/{id}`. */
  route: Schema.String
}) {}

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
