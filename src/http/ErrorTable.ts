/**
 * The table that maps every failure to its response (semantics errors.table). It also defines which failures are stored
 * and repeated for the idempotency key (semantics idempotency.stored, idempotency.released). A failure without a row
 * does not compile.
 */
import type { ErrorType } from "../api/Errors.ts"
import { withoutCardNumbers } from "../domain/Cards.ts"
import type { DomainError } from "../domain/Errors.ts"
import type { IdempotencyKeyInUse, IdempotencyKeyReuse, Unavailable } from "../engine/Accounts.ts"
import { encode } from "../engine/log/Document.ts"
import type { HttpError, InvalidJson } from "../server/HttpErrors.ts"
import { DEPTH_MAX } from "./JsonBody.ts"

/** The failures of a request. All other errors are defects, and answered as such. */
export type Failure = DomainError | HttpError | Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse

export interface WireError {
  readonly status: number
  readonly type: ErrorType
  readonly code: string
  readonly message: string
  readonly param: string | null
  /** True if the response is stored under the idempotency key, because executing the request has produced it. */
  readonly stored: boolean
  readonly headers?: Readonly<Record<string, string>>
  /** Further fields of the error object. */
  readonly details?: {
    readonly decline_code: string
    readonly charge: string
    readonly payment_intent: object
  }
}

type Row<F> = (failure: F) => WireError

const invalidRequest = (
  status: number,
  code: string,
  message: string,
  param: string | null,
  headers?: WireError["headers"]
): WireError => ({
  status,
  type: "invalid_request_error",
  code,
  message,
  param: param === null ? null : withoutCardNumbers(param),
  stored: false,
  ...(headers && { headers })
})

const kept = (error: WireError): WireError => ({ ...error, stored: true })

const unauthenticated = (code: string, message: string): WireError => ({
  status: 401,
  type: "authentication_error",
  code,
  message,
  param: null,
  stored: false,
  headers: { "www-authenticate": 'Basic realm="payments"' }
})

const unavailable = (status: number, code: string, message: string, headers?: WireError["headers"]): WireError => ({
  status,
  type: "api_error",
  code,
  message,
  param: null,
  stored: false,
  ...(headers && { headers })
})

const retryAfterOneSecond = { "retry-after": "1" }

const tooMany = (what: string, retryAfterSeconds: number): WireError => ({
  status: 429,
  type: "rate_limit_error",
  code: "rate_limit_exceeded",
  message: `${what} Please retry after the period specified in the Retry-After header.`,
  param: null,
  stored: false,
  headers: { "retry-after": String(retryAfterSeconds) }
})

/** Returns the start of a sentence that names an amount by its parameter. */
const amountNamed = (param: string): string => {
  if (param === "line_items") return "The total of `line_items`"
  if (param.includes("[")) return `\`${param}\``
  const words = param.replaceAll("_", " ")
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Describes the cause of an unreadable body without repeating any of it: it may contain a card. */
const notJson = ({ byte, problem }: InvalidJson): string => {
  switch (problem) {
    case "syntax":
      return `The request body is not valid JSON at byte ${byte}.`
    case "encoding":
      return `The request body is not UTF-8 at byte ${byte}.`
    case "byte_order_mark":
      return "The request body must be JSON without a byte-order mark."
    case "depth":
      return `The request body must be JSON of at most ${DEPTH_MAX} levels.`
  }
}

/** The response to a defect or an unexpected failure (semantics errors.internal). */
export const internalError: WireError = unavailable(500, "internal_error", "An unexpected error occurred.")

const table: { readonly [Tag in Failure["_tag"]]: Row<Extract<Failure, { readonly _tag: Tag }>> } = {
  CredentialsMissing: () =>
    unauthenticated(
      "authentication_failed",
      "You did not provide an API key. Send it as the username of HTTP Basic authentication, with an empty password."
    ),
  CredentialsBearer: () =>
    unauthenticated(
      "authentication_failed",
      "Send the API key by HTTP Basic, as the user name with an empty password."
    ),
  CredentialsInvalid: () => unauthenticated("authentication_failed", "Invalid API key provided."),
  ApiKeyExpired: () => unauthenticated("api_key_expired", "This API key has expired."),
  SecretKeyRequired: () => ({
    status: 403,
    type: "authentication_error",
    code: "secret_key_required",
    message: "This operation requires a secret API key.",
    param: null,
    stored: false
  }),
  TestModeOnly: () => invalidRequest(400, "test_mode_only", "This operation is only available in test mode.", null),

  RequestLogOff: () =>
    invalidRequest(
      400,
      "request_log_off",
      "This installation keeps no log of requests: TILL_REQUEST_LOG_DAYS is 0.",
      null
    ),
  InvalidApiVersion: ({ version }) =>
    invalidRequest(400, "invalid_api_version", text`Unknown API version '${version}'.`, "X-API-Version"),
  RateLimitExceeded: ({ retryAfterSeconds }) => tooMany("Too many requests.", retryAfterSeconds),
  RouteNotFound: ({ method, path }) =>
    invalidRequest(404, "route_not_found", text`Unrecognized request URL (${method} ${path}).`, null),
  MethodNotAllowed: ({ allowed, method, path }) =>
    invalidRequest(
      405,
      "method_not_allowed",
      text`The method ${method} is not allowed for ${path}; it takes ${allowed.join(", ")}.`,
      null,
      { allow: allowed.join(", ") }
    ),
  InvalidHttp: () =>
    invalidRequest(400, "invalid_http", "The request is not valid HTTP.", null, { connection: "close" }),
  RequestHeadersTooLarge: () =>
    invalidRequest(431, "request_headers_too_large", "The request's headers must be at most 16 KiB in all.", null),
  RequestTimeout: () => invalidRequest(408, "request_timeout", "The request did not arrive in time.", null),
  RequestTooLarge: ({ isOfPublishableKey = false }) =>
    invalidRequest(
      413,
      "request_too_large",
      isOfPublishableKey
        ? "With a publishable key, the request body must be at most 64 KiB (65536 bytes)."
        : "The request body must be at most 1 MiB (1048576 bytes).",
      null,
      { connection: "close" }
    ),
  UnsupportedMediaType: () =>
    invalidRequest(415, "unsupported_media_type", "Content-Type must be application/json.", null),
  InvalidJson: (failure) => invalidRequest(400, "invalid_json", notJson(failure), null),

  ParameterUnknown: ({ param }) =>
    invalidRequest(400, "parameter_unknown", text`Received unknown parameter: ${param}.`, param),
  ParameterMissing: ({ param }) =>
    invalidRequest(400, "parameter_missing", text`Missing required parameter: \`${param}\`.`, param),
  ParameterInvalid: ({ param, rule }) =>
    invalidRequest(
      400,
      "parameter_invalid",
      param === null ? `The request body must be ${rule}.` : `${text`The \`${param}\` field`} must be ${rule}.`,
      param
    ),
  ParametersExclusive: ({ first, second }) =>
    invalidRequest(400, "parameters_exclusive", text`Only one of ${first} and ${second} may be sent.`, second),
  FieldNotExpandable: ({ field, route }) =>
    invalidRequest(400, "parameter_invalid", text`The field '${field}' is not expandable on ${route}.`, "expand[]"),
  ResourceMissing: ({ id, kind, param }) =>
    invalidRequest(404, "resource_missing", text`No ${kind} found with ID '${id}'.`, param),

  IdempotencyKeyInUse: () =>
    invalidRequest(
      409,
      "idempotency_key_in_use",
      "A request with this idempotency key is still in progress.",
      null,
      retryAfterOneSecond
    ),
  IdempotencyKeyReuse: () =>
    invalidRequest(
      422,
      "idempotency_key_reuse",
      "This idempotency key has already been used with different request parameters.",
      null
    ),

  AmountTooLarge: ({ max, param }) =>
    kept(invalidRequest(400, "amount_too_large", `${amountNamed(param)} must be at most ${max}.`, param)),
  RefundTooLarge: () =>
    kept(
      invalidRequest(400, "amount_too_large", "The refund amount exceeds the amount available to refund.", "amount")
    ),
  ChargeAlreadyRefunded: () =>
    kept(
      invalidRequest(400, "charge_already_refunded", "The charge has already been fully refunded.", "payment_intent")
    ),
  LookupKeyTaken: ({ lookupKey }) =>
    kept(
      invalidRequest(
        400,
        "resource_already_exists",
        text`A price already uses the lookup_key '${lookupKey}'.`,
        "lookup_key"
      )
    ),
  ProductHasPrices: ({ id }) =>
    kept(invalidRequest(400, "resource_in_use", `The product '${id}' has prices; set active=false instead.`, "id")),
  PaymentMethodTaken: ({ id }) =>
    kept(invalidRequest(400, "resource_in_use", `The payment method '${id}' belongs to another customer.`, "id")),
  ApiKeyInUse: ({ id }) =>
    kept(invalidRequest(400, "resource_in_use", `The API key '${id}' makes this request; use another key.`, "id")),
  PaymentIntentUnexpectedState: ({ allowed, operation, param, status }) =>
    kept(
      invalidRequest(
        400,
        "payment_intent_unexpected_state",
        `This PaymentIntent's status is \`${status}\`; ${operation} requires one of: ${allowed.join(", ")}.`,
        param
      )
    ),
  PaymentMethodRequired: () =>
    kept(
      invalidRequest(
        400,
        "payment_intent_unexpected_state",
        "This PaymentIntent has no payment method; provide payment_method or payment_method_data.",
        "payment_method"
      )
    ),
  PaymentIntentBelongsToSession: ({ checkoutSession, open }) => {
    const advice = open ? "; expire the session instead" : ", which settled its terms"
    const message = `This PaymentIntent belongs to Checkout Session ${checkoutSession}${advice}.`
    return kept(invalidRequest(400, "payment_intent_unexpected_state", message, "id"))
  },
  CheckoutSessionUnexpectedState: ({ operation, status }) =>
    kept(
      invalidRequest(
        400,
        "checkout_session_unexpected_state",
        `This Checkout Session's status is \`${status}\`; only \`open\` sessions can be ${operation}.`,
        "id"
      )
    ),
  TooManyAttempts: ({ retryAfterSeconds }) =>
    tooMany("Too many attempts to pay for this Checkout Session have failed.", retryAfterSeconds),
  PaymentLinkInactive: ({ id }) =>
    kept(
      invalidRequest(
        400,
        "payment_link_inactive",
        `The payment link '${id}' takes no more payments: it is not active, or its limit is reached.`,
        "id"
      )
    ),
  PriceInactive: ({ id, param }) =>
    kept(invalidRequest(400, "price_inactive", `The price '${id}' is inactive.`, param)),
  ProductInactive: ({ id, param }) =>
    kept(invalidRequest(400, "product_inactive", `The product '${id}' is inactive.`, param)),
  ProcessorNotConfigured: () =>
    kept(invalidRequest(400, "processor_not_configured", "No payment processor is configured for live mode.", null)),
  ProcessorUnavailable: ({ retryAfterSeconds: seconds }) => {
    const headers = seconds === undefined ? undefined : { "retry-after": String(seconds) }
    return unavailable(500, "processor_unavailable", "The payment processor did not answer.", headers)
  },
  CardDataRefused: ({ param }) =>
    invalidRequest(
      400,
      "card_data_refused",
      text`The processor takes cards by token only: send its token in place of ${param}.`,
      param
    ),
  OperationInProgress: ({ id, param }) =>
    invalidRequest(
      409,
      "operation_in_progress",
      `The operation '${id}' of this PaymentIntent has no outcome yet; try again when it has.`,
      param,
      retryAfterOneSecond
    ),
  CustomerHasPayment: ({ id }) =>
    invalidRequest(
      409,
      "customer_has_payment",
      `The PaymentIntent '${id}' of this customer is in progress; capture or cancel it, or wait for its end.`,
      "id"
    ),
  ProcessorRefused: ({ message, param }) =>
    kept(invalidRequest(400, "processor_refused", `The processor refused: ${withoutCardNumbers(message)}`, param)),
  CardDeclined: ({ charge, declineCode, message, paymentIntent }) => ({
    status: 402,
    type: "payment_error",
    code: "card_declined",
    message,
    param: null,
    stored: true,
    details: { decline_code: declineCode, charge, payment_intent: paymentIntent }
  }),

  Unavailable: () =>
    unavailable(
      503,
      "service_unavailable",
      "The service cannot answer at the moment. Please try again.",
      retryAfterOneSecond
    )
}

/** Returns the row of a failure. */
export const wireErrorOf = (failure: Failure): WireError => (table[failure._tag] as Row<Failure>)(failure)

/** Encodes the body of an error response: all five keys, and the details of a decline. */
export const envelope = ({ code, details, message, param, type }: WireError, docsUrl: string): string => {
  const error = JSON.stringify({ type, code, message, param, doc_url: `${docsUrl}/errors/${code}` })
  if (details === undefined) return `{"error":${error}}`
  const { charge, decline_code, payment_intent } = details
  const rest = JSON.stringify({ decline_code, charge })
  return `{"error":${error.slice(0, -1)},${rest.slice(1, -1)},"payment_intent":${encode(payment_intent)}}}`
}

/** Returns the response to a failure. */
export const answerOf = (error: WireError, docsUrl: string) => ({
  status: error.status,
  body: envelope(error, docsUrl),
  headers: error.headers
})

/**
 * Fills a client's text into a message: names of parameters, ids. A card number that was sent in the wrong place does
 * not appear in the message. Numbers are the service's own.
 */
const text = (parts: TemplateStringsArray, ...values: ReadonlyArray<string | number>): string =>
  String.raw({ raw: parts }, ...values.map((value) => (typeof value === "number" ? value : withoutCardNumbers(value))))
