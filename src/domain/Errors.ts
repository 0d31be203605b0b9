/**
 * The errors of the model: one class per error of semantics errors.table that a lifecycle can fail with.
 *
 * They are data only: no status codes, no wire types and no messages (`http` has one table for those), except for a
 * decline, whose message belongs to its decline code (semantics test_cards.declines).
 */
import { Schema } from "effect"
import { DeclineCode } from "./Cards.ts"
import { CheckoutSessionStatus } from "./CheckoutSessionStates.ts"
import type { PaymentIntent } from "./PaymentIntent.ts"
import { PaymentIntentStatus } from "./PaymentIntentStates.ts"
import type { ParameterInvalid, ParameterMissing, ParametersExclusive, ParameterUnknown } from "./ParameterErrors.ts"

export { ParameterInvalid, ParameterMissing, ParametersExclusive, ParameterUnknown } from "./ParameterErrors.ts"

/** An object's kind as messages name it (semantics errors.kinds). */
export const ResourceKind = Schema.Literals([
  "Customer",
  "PaymentIntent",
  "Checkout Session",
  "Payment Link",
  "Product",
  "Price",
  "Refund",
  "Charge",
  "Operation",
  "PaymentMethod",
  "WebhookEndpoint",
  "WebhookDelivery",
  "Event",
  "Request",
  "Line item",
  "API key",
  "Processor",
  "Merchant",
  "Person",
  "Session",
  "Note"
])
export type ResourceKind = typeof ResourceKind.Type

/** The PaymentIntent of a decline, not validated or copied: a lifecycle made it, not a client. */
const PaymentIntentAsItIs = Schema.declare(
  (value): value is PaymentIntent =>
    typeof value === "object" && value !== null && "object" in value && value.object === "payment_intent"
)

/** An amount above the cap of semantics money.limits, or above the authorized amount. */
export class AmountTooLarge extends Schema.TaggedError<AmountTooLarge>()("AmountTooLarge", {
  param: Schema.String,
  /** Minor units. */
  max: Schema.Number
}) {}

/** A refund above the remaining captured amount (semantics refunds.create; wire code `amount_too_large`). */
export class RefundTooLarge extends Schema.TaggedError<RefundTooLarge>()("RefundTooLarge", {}) {}

/** Nothing is left to refund (semantics refunds.create). */
export class ChargeAlreadyRefunded extends Schema.TaggedError<ChargeAlreadyRefunded>()("ChargeAlreadyRefunded", {}) {}

/** Another price has the lookup key, and the request does not transfer it (semantics prices.lookup_key). */
export class LookupKeyTaken extends Schema.TaggedError<LookupKeyTaken>()("LookupKeyTaken", {
  lookupKey: Schema.String
}) {}

/** A product with prices cannot be deleted (semantics products.delete). */
export class ProductHasPrices extends Schema.TaggedError<ProductHasPrices>()("ProductHasPrices", {
  id: Schema.String
}) {}

/** Another customer has the payment method (semantics payment_methods.attach; wire code `resource_in_use`). */
export class PaymentMethodTaken extends Schema.TaggedError<PaymentMethodTaken>()("PaymentMethodTaken", {
  id: Schema.String
}) {}

/** The key to revoke authenticates the request itself (semantics keys.revoke; wire code `resource_in_use`). */
export class ApiKeyInUse extends Schema.TaggedError<ApiKeyInUse>()("ApiKeyInUse", {
  id: Schema.String
}) {}

/** The object does not exist in this environment, or was deleted. */
export class ResourceMissing extends Schema.TaggedError<ResourceMissing>()("ResourceMissing", {
  kind: ResourceKind,
  id: Schema.String,
  /** `id` for the object of the path, else the parameter that names it (semantics parameters.references). */
  param: Schema.String
}) {}

/** The PaymentIntent's status does not allow the operation (semantics payment_intents.states, `✗`). */
export class PaymentIntentUnexpectedState extends Schema.TaggedError<PaymentIntentUnexpectedState>()(
  "PaymentIntentUnexpectedState",
  {
    status: PaymentIntentStatus,
    /** The operation in the message, e.g. `confirm` or "update of `amount`". */
    operation: Schema.String,
    allowed: Schema.Array(PaymentIntentStatus),
    param: Schema.Literals(["id", "payment_intent"])
  }
) {}

/** A confirmation without any payment method (semantics payment_intents.confirm). */
export class PaymentMethodRequired extends Schema.TaggedError<PaymentMethodRequired>()("PaymentMethodRequired", {}) {}

/** An operation that bypasses the payment's session (semantics checkout.payment_intent). */
export class PaymentIntentBelongsToSession extends Schema.TaggedError<PaymentIntentBelongsToSession>()(
  "PaymentIntentBelongsToSession",
  {
    checkoutSession: Schema.String,
    /** Whether the session can still be paid or expired. */
    open: Schema.Boolean
  }
) {}

/** The Checkout Session's status does not allow the operation (semantics checkout.states, `✗`). */
export class CheckoutSessionUnexpectedState extends Schema.TaggedError<CheckoutSessionUnexpectedState>()(
  "CheckoutSessionUnexpectedState",
  {
    status: CheckoutSessionStatus,
    /** Completes "only `open` sessions can be …". */
    operation: Schema.Literals(["confirmed", "expired"])
  }
) {}

/** Too many attempts failed, so the Checkout Session refuses payments for a pause (semantics checkout.attempts). */
export class TooManyAttempts extends Schema.TaggedError<TooManyAttempts>()("TooManyAttempts", {
  retryAfterSeconds: Schema.Int
}) {}

/** The payment link of a Checkout Session takes no more payments (semantics payment_links.late). */
export class PaymentLinkInactive extends Schema.TaggedError<PaymentLinkInactive>()("PaymentLinkInactive", {
  id: Schema.String
}) {}

/** An inactive price where an active one is required (semantics checkout.line_items, products.default_price). */
export class PriceInactive extends Schema.TaggedError<PriceInactive>()("PriceInactive", {
  id: Schema.String,
  param: Schema.String
}) {}

/** A product that is not active, in a Checkout Session (semantics checkout.line_items, prices.inactive_product). */
export class ProductInactive extends Schema.TaggedError<ProductInactive>()("ProductInactive", {
  id: Schema.String,
  param: Schema.String
}) {}

/** Live mode has no card processor (semantics keys.live_processor). */
export class ProcessorNotConfigured extends Schema.TaggedError<ProcessorNotConfigured>()(
  "ProcessorNotConfigured",
  {}
) {}

/** The card processor did not respond, or is out of order; nothing was changed. */
export class ProcessorUnavailable extends Schema.TaggedError<ProcessorUnavailable>()("ProcessorUnavailable", {
  retryAfterSeconds: Schema.optionalKey(Schema.Int)
}) {}

/** Card data for a processor that takes only tokens (semantics payment_methods.token). */
export class CardDataRefused extends Schema.TaggedError<CardDataRefused>()("CardDataRefused", {
  param: Schema.String
}) {}

/** An operation of the payment has no outcome yet (semantics operations.one). */
export class OperationInProgress extends Schema.TaggedError<OperationInProgress>()("OperationInProgress", {
  id: Schema.String,
  param: Schema.Literals(["id", "payment_intent"])
}) {}

/** A payment of the customer is in progress, so their data cannot be erased (semantics erasure.request). */
export class CustomerHasPayment extends Schema.TaggedError<CustomerHasPayment>()("CustomerHasPayment", {
  /** `pi_…` */
  id: Schema.String
}) {}

/** The processor refused the request, and never carries it out (semantics operations.refused). */
export class ProcessorRefused extends Schema.TaggedError<ProcessorRefused>()("ProcessorRefused", {
  message: Schema.String,
  param: Schema.NullOr(Schema.String)
}) {}

/**
 * A decline by the issuer. The attempt is committed (semantics idempotency.stored), so an operation never fails with
 * this error: it succeeds with a `Result` that has this failure.
 */
export class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", {
  declineCode: DeclineCode,
  /** Message for the payer, by decline code (semantics test_cards.declines). */
  message: Schema.String,
  /** `ch_…` of the failed attempt. */
  charge: Schema.String,
  /** The PaymentIntent after the decline. */
  paymentIntent: PaymentIntentAsItIs
}) {}

/** An operation of test mode, requested in live mode (semantics test_helpers.test_mode). */
export class TestModeOnly extends Schema.TaggedError<TestModeOnly>()("TestModeOnly", {}) {}

/** The installation stores no request log (semantics request_log.list). */
export class RequestLogOff extends Schema.TaggedError<RequestLogOff>()("RequestLogOff", {}) {}

/** A publishable key was used where a secret key is required (semantics keys.publishable). */
export class SecretKeyRequired extends Schema.TaggedError<SecretKeyRequired>()("SecretKeyRequired", {}) {}

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
  | PaymentLinkInactive
  | PriceInactive
  | ProductInactive
  | ProcessorNotConfigured
  | ProcessorUnavailable
  | OperationInProgress
  | CustomerHasPayment
  | ProcessorRefused
  | CardDataRefused
  | CardDeclined
  | TestModeOnly
  | RequestLogOff
  | SecretKeyRequired
