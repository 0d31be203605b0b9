/**
 * One failure of each kind, rendered by the table that answers requests, so that the examples on the error pages are
 * always right. The compiler rejects a kind of failure without an example.
 */
import * as Domain from "../../domain/Errors.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import { IdempotencyKeyInUse, IdempotencyKeyReuse, Unavailable } from "../../engine/Accounts.ts"
import { envelope, type Failure, internalError, type WireError, wireErrorOf } from "../../http/ErrorTable.ts"
import * as Http from "../../server/HttpErrors.ts"

/** A decline's `payment_intent`, reduced to the relevant fields. */
const PAYMENT_INTENT = {
  id: "pi_1fK3dV9ab7Qe0TzXw5MnR2Lc",
  object: "payment_intent",
  status: "requires_payment_method"
} as PaymentIntent

const PRODUCT = "prod_1fK3dV9ab7Qe0TzXw5MnR2Lc"
const PRICE = "price_1fK3dV9ab7Qe0TzXw5MnR2Lc"
const PAYMENT_METHOD = "pm_1fK3dV9ab7Qe0TzXw5MnR2Lc"
const API_KEY = "key_1fK3dV9ab7Qe0TzXw5MnR2Lc"

/** By the failure's tag. */
export const FAILURES: { readonly [Tag in Failure["_tag"]]: Extract<Failure, { readonly _tag: Tag }> } = {
  ParameterMissing: new Domain.ParameterMissing({ param: "amount" }),
  ParameterInvalid: new Domain.ParameterInvalid({ param: "amount", rule: "an integer from 1 to 999999999999" }),
  FieldNotExpandable: new Http.FieldNotExpandable({ field: "charges", route: "GET /v1/payment_intents/{id}" }),
  ParameterUnknown: new Domain.ParameterUnknown({ param: "capture_metod" }),
  ParametersExclusive: new Domain.ParametersExclusive({ first: "starting_after", second: "ending_before" }),
  InvalidJson: new Http.InvalidJson({ problem: "syntax", byte: 27 }),
  InvalidHttp: new Http.InvalidHttp(),
  InvalidApiVersion: new Http.InvalidApiVersion({ version: "2019-01-01" }),
  RequestHeadersTooLarge: new Http.RequestHeadersTooLarge(),
  RequestTimeout: new Http.RequestTimeout(),
  RequestTooLarge: new Http.RequestTooLarge(),
  UnsupportedMediaType: new Http.UnsupportedMediaType(),
  RouteNotFound: new Http.RouteNotFound({ method: "GET", path: "/v1/payment_intent" }),
  MethodNotAllowed: new Http.MethodNotAllowed({ method: "DELETE", path: "/v1/prices", allowed: ["GET", "POST"] }),

  CredentialsMissing: new Http.CredentialsMissing(),
  CredentialsBearer: new Http.CredentialsBearer(),
  CredentialsInvalid: new Http.CredentialsInvalid(),
  ApiKeyExpired: new Http.ApiKeyExpired(),
  SecretKeyRequired: new Domain.SecretKeyRequired(),
  TestModeOnly: new Domain.TestModeOnly(),
  RequestLogOff: new Domain.RequestLogOff(),
  RateLimitExceeded: new Http.RateLimitExceeded({ retryAfterSeconds: 30 }),

  ResourceMissing: new Domain.ResourceMissing({
    kind: "Customer",
    id: "cus_1fK3dV9ab7Qe0TzXw5MnR2Lc",
    param: "customer"
  }),
  LookupKeyTaken: new Domain.LookupKeyTaken({ lookupKey: "standard_monthly" }),
  ProductHasPrices: new Domain.ProductHasPrices({ id: PRODUCT }),
  PaymentMethodTaken: new Domain.PaymentMethodTaken({ id: PAYMENT_METHOD }),
  ApiKeyInUse: new Domain.ApiKeyInUse({ id: API_KEY }),
  PriceInactive: new Domain.PriceInactive({ id: PRICE, param: "line_items[0][price]" }),
  ProductInactive: new Domain.ProductInactive({ id: PRODUCT, param: "line_items[0][price]" }),

  AmountTooLarge: new Domain.AmountTooLarge({ param: "amount_to_capture", max: 2000 }),
  RefundTooLarge: new Domain.RefundTooLarge(),
  ChargeAlreadyRefunded: new Domain.ChargeAlreadyRefunded(),
  PaymentIntentUnexpectedState: new Domain.PaymentIntentUnexpectedState({
    status: "succeeded",
    operation: "capture",
    allowed: ["requires_capture"],
    param: "id"
  }),
  PaymentMethodRequired: new Domain.PaymentMethodRequired(),
  PaymentIntentBelongsToSession: new Domain.PaymentIntentBelongsToSession({
    checkoutSession: "cs_1fK3dV9ab7Qe0TzXw5MnR2Lc",
    open: true
  }),
  CheckoutSessionUnexpectedState: new Domain.CheckoutSessionUnexpectedState({
    status: "complete",
    operation: "expired"
  }),
  PaymentLinkInactive: new Domain.PaymentLinkInactive({ id: "plink_1fK3dV9ab7Qe0TzXw5MnR2Lc" }),
  TooManyAttempts: new Domain.TooManyAttempts({ retryAfterSeconds: 3600 }),
  ProcessorNotConfigured: new Domain.ProcessorNotConfigured(),
  ProcessorUnavailable: new Domain.ProcessorUnavailable({}),
  CardDataRefused: new Domain.CardDataRefused({ param: "payment_method_data[card]" }),
  OperationInProgress: new Domain.OperationInProgress({ id: "op_1fK3dV9ab7Qe0TzXw5MnR2Lc", param: "id" }),
  CustomerHasPayment: new Domain.CustomerHasPayment({ id: "pi_1fK3dV9ab7Qe0TzXw5MnR2Lc" }),
  ProcessorRefused: new Domain.ProcessorRefused({ message: "The token is unknown.", param: "payment_method" }),
  CardDeclined: new Domain.CardDeclined({
    declineCode: "insufficient_funds",
    message: "Your card has insufficient funds.",
    charge: "ch_1fK3dV9ab7Qe0TzXw5MnR2Lc",
    paymentIntent: PAYMENT_INTENT
  }),

  IdempotencyKeyInUse: new IdempotencyKeyInUse(),
  IdempotencyKeyReuse: new IdempotencyKeyReuse(),
  Unavailable: new Unavailable({ reason: "Till stops." })
}

/** An error as its page shows it. */
export interface ErrorExample {
  readonly status: number
  readonly type: string
  readonly code: string
  readonly param: string | null
  /** Null if no response has this code. */
  readonly body: string | null
}

const example = (error: WireError, docsUrl: string): ErrorExample => ({
  status: error.status,
  type: error.type,
  code: error.code,
  param: error.param,
  body: envelope(error, docsUrl)
})

/** An authentication failure appears in the PaymentIntent; no response has this code. */
const AUTHENTICATION_FAILURE: ErrorExample = {
  status: 402,
  type: "payment_error",
  code: "payment_intent_authentication_failure",
  param: null,
  body: null
}

/** All examples in the order of the index; some codes have several. */
export const examples = (docsUrl: string): ReadonlyArray<ErrorExample> => [
  ...Object.values(FAILURES).map((failure) => example(wireErrorOf(failure), docsUrl)),
  AUTHENTICATION_FAILURE,
  example(internalError, docsUrl)
]
