/**
 * The failures of the model: one class per failure of semantics §3 that a lifecycle can produce.
 *
 * They are only data: no status codes, no wire types and no sentences for the public (`http` has one table for those),
 * except for a decline, whose message belongs to its decline code (semantics §5).
 */
import { Schema } from "effect"
import { DeclineCode } from "./Cards.ts"
import { CheckoutSessionStatus } from "./CheckoutSessionStates.ts"
import type { PaymentIntent } from "./PaymentIntent.ts"
import { PaymentIntentStatus } from "./PaymentIntentStates.ts"
import type { ParameterInvalid, ParameterMissing, ParametersExclusive, ParameterUnknown } from "./ParameterErrors.ts"

export { ParameterInvalid, ParameterMissing, ParametersExclusive, ParameterUnknown } from "./ParameterErrors.ts"

/** An object's kind as messages name it (semantics §3, last line). */
export const ResourceKind = Schema.Literals([
  "Customer",
  "PaymentIntent",
  "Checkout Session",
  "Product",
  "Price",
  "Refund",
  "Charge",
  "PaymentMethod",
  "WebhookEndpoint",
  "WebhookDelivery",
  "Event",
  "Request",
  "Line item",
  "API key",
  "Merchant",
  "Person",
  "Session"
])
export type ResourceKind = typeof ResourceKind.Type

/** The PaymentIntent of a decline, which goes on as the very object that it is: a lifecycle has made it, no client. */
const PaymentIntentAsItIs = Schema.declare(
  (value): value is PaymentIntent =>
    typeof value === "object" && value !== null && "object" in value && value.object === "payment_intent"
)

/** An amount above what is possible: the cap of semantics N1, or the amount authorized. */
export class AmountTooLarge extends Schema.TaggedError<AmountTooLarge>()("AmountTooLarge", {
  param: Schema.String,
  /** Minor units. */
  max: Schema.Number
}) {}

/** A refund of more than what is left of the captured amount (semantics F5; wire code `amount_too_large`). */
export class RefundTooLarge extends Schema.TaggedError<RefundTooLarge>()("RefundTooLarge", {}) {}

/** Nothing is left to refund (semantics F5). */
export class ChargeAlreadyRefunded extends Schema.TaggedError<ChargeAlreadyRefunded>()("ChargeAlreadyRefunded", {}) {}

/** Another price has the lookup key, and it was not asked to hand it over (semantics PR17). */
export class LookupKeyTaken extends Schema.TaggedError<LookupKeyTaken>()("LookupKeyTaken", {
  lookupKey: Schema.String
}) {}

/** A product with prices cannot be deleted (semantics PR2). */
export class ProductHasPrices extends Schema.TaggedError<ProductHasPrices>()("ProductHasPrices", {
  id: Schema.String
}) {}

/** Another customer has the payment method (semantics 9.18; wire code `resource_in_use`). */
export class PaymentMethodTaken extends Schema.TaggedError<PaymentMethodTaken>()("PaymentMethodTaken", {
  id: Schema.String
}) {}

/** The key that was to be revoked is the one that asks (semantics 9.17; wire code `resource_in_use`). */
export class ApiKeyInUse extends Schema.TaggedError<ApiKeyInUse>()("ApiKeyInUse", {
  id: Schema.String
}) {}

/** No such object in this environment, or not any more. */
export class ResourceMissing extends Schema.TaggedError<ResourceMissing>()("ResourceMissing", {
  kind: ResourceKind,
  id: Schema.String,
  /** `id` for the object of the path, else the parameter that refers to it (semantics T17). */
  param: Schema.String
}) {}

/** The PaymentIntent's status does not allow the operation (semantics §2.1, `✗`). */
export class PaymentIntentUnexpectedState extends Schema.TaggedError<PaymentIntentUnexpectedState>()(
  "PaymentIntentUnexpectedState",
  {
    status: PaymentIntentStatus,
    /** Words for a message, e.g. `confirm` or "update of `amount`". */
    operation: Schema.String,
    /** The statuses that would allow it. */
    allowed: Schema.Array(PaymentIntentStatus),
    param: Schema.Literals(["id", "payment_intent"])
  }
) {}

/** Confirm without any payment method, known or sent (semantics I-7; wire code `payment_intent_unexpected_state`). */
export class PaymentMethodRequired extends Schema.TaggedError<PaymentMethodRequired>()("PaymentMethodRequired", {}) {}

/**
 * An operation that would bypass the Checkout Session that the PaymentIntent belongs to (semantics I-18; wire code
 * `payment_intent_unexpected_state`).
 */
export class PaymentIntentBelongsToSession extends Schema.TaggedError<PaymentIntentBelongsToSession>()(
  "PaymentIntentBelongsToSession",
  {
    checkoutSession: Schema.String,
    /** The session can still be paid, or expired. */
    open: Schema.Boolean
  }
) {}

/** The Checkout Session's status does not allow the operation (semantics §2.3, `✗`). */
export class CheckoutSessionUnexpectedState extends Schema.TaggedError<CheckoutSessionUnexpectedState>()(
  "CheckoutSessionUnexpectedState",
  {
    status: CheckoutSessionStatus,
    /** Completes "only `open` sessions can be …". */
    operation: Schema.Literals(["confirmed", "expired"])
  }
) {}

/**
 * So many attempts to pay for the Checkout Session have failed that it takes none for a while (semantics 9.29; wire
 * code `rate_limit_exceeded`).
 */
export class TooManyAttempts extends Schema.TaggedError<TooManyAttempts>()("TooManyAttempts", {
  /** Until it takes some again, in seconds. */
  retryAfterSeconds: Schema.Int
}) {}

/** A price that is not active, where only an active one will do (semantics S3, PR5). */
export class PriceInactive extends Schema.TaggedError<PriceInactive>()("PriceInactive", {
  id: Schema.String,
  param: Schema.String
}) {}

/** A product that is not active, in a Checkout Session (semantics S3, PR18). */
export class ProductInactive extends Schema.TaggedError<ProductInactive>()("ProductInactive", {
  id: Schema.String,
  param: Schema.String
}) {}

/** Live mode has no card processor (semantics A10). */
export class ProcessorNotConfigured extends Schema.TaggedError<ProcessorNotConfigured>()(
  "ProcessorNotConfigured",
  {}
) {}

/** The card processor did not answer; nothing was changed. */
export class ProcessorUnavailable extends Schema.TaggedError<ProcessorUnavailable>()("ProcessorUnavailable", {}) {}

/**
 * The issuer declined. The attempt is committed (semantics 9.25), so an operation never fails with it: it succeeds with
 * a `Result` whose failure this is.
 */
export class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", {
  declineCode: DeclineCode,
  /** For the payer, by decline code (semantics §5). */
  message: Schema.String,
  /** `ch_…` of the failed attempt. */
  charge: Schema.String,
  /** The PaymentIntent as the decline left it. */
  paymentIntent: PaymentIntentAsItIs
}) {}

/** An operation of test mode only was asked for in live mode (semantics §8.27). */
export class TestModeOnly extends Schema.TaggedError<TestModeOnly>()("TestModeOnly", {}) {}

/** The installation keeps no log of requests (semantics 9.78). */
export class RequestLogOff extends Schema.TaggedError<RequestLogOff>()("RequestLogOff", {}) {}

/** A publishable key was used for what needs a secret key (semantics A5, I-12). */
export class SecretKeyRequired extends Schema.TaggedError<SecretKeyRequired>()("SecretKeyRequired", {}) {}

/** Every failure that a lifecycle can answer with. */
export type DomainError =
  | ParameterMissing
  | ParameterInvalid
  | ParameterUnknown
  | ParametersExclusive
  | AmountTooLarge
  | LookupKeyTaken
  | ProductHasPrices
  | PaymentMethodTaken
  | ApiKeyInUse
  | RefundTooLarge
  | ChargeAlreadyRefunded
  | ResourceMissing
  | PaymentIntentUnexpectedState
  | PaymentMethodRequired
  | PaymentIntentBelongsToSession
  | CheckoutSessionUnexpectedState
  | TooManyAttempts
  | PriceInactive
  | ProductInactive
  | ProcessorNotConfigured
  | ProcessorUnavailable
  | CardDeclined
  | TestModeOnly
  | RequestLogOff
  | SecretKeyRequired
