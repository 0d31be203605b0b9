/**
 * What can go wrong in the model: one class per failure of semantics §3 that a lifecycle can produce.
 *
 * Only data: no status codes, no wire types and no sentences for the public (`http` has one table for those), except
 * for a decline, whose message belongs to its decline code (semantics §5).
 */
import { Data } from "effect"
import type { CheckoutSessionStatus } from "./CheckoutSessionStates.ts"
import type { DeclineCode } from "./DeclineCodes.ts"
import type { PaymentIntent, PaymentIntentStatus } from "./PaymentIntent.ts"

/** How an object's kind is called in messages (semantics §3, last line). */
export type ResourceKind =
  | "Customer"
  | "PaymentIntent"
  | "Checkout Session"
  | "Product"
  | "Price"
  | "Refund"
  | "Charge"
  | "PaymentMethod"
  | "WebhookEndpoint"
  | "WebhookDelivery"
  | "Event"
  | "Line item"
  | "API key"

/** A required parameter, or one that is required under the given circumstances, is absent. */
export class ParameterMissing extends Data.TaggedError("ParameterMissing")<{
  /** Path of the parameter, e.g. `payment_method_data[card][number]` (semantics T8). */
  readonly param: string
}> {}

/** A parameter is of the wrong type, out of range, or refers to something that does not fit. */
export class ParameterInvalid extends Data.TaggedError("ParameterInvalid")<{
  /** Null only if the whole body is meant. */
  readonly param: string | null
  /** Completes "The `param` field must be …". */
  readonly rule: string
}> {}

/** A parameter that the operation does not know. */
export class ParameterUnknown extends Data.TaggedError("ParameterUnknown")<{ readonly param: string }> {}

/** Two parameters that exclude each other were both sent. */
export class ParametersExclusive extends Data.TaggedError("ParametersExclusive")<{
  readonly first: string
  /** The one that the error names. */
  readonly second: string
}> {}

/** An amount above what is possible: the cap of semantics N1, or the amount authorized. */
export class AmountTooLarge extends Data.TaggedError("AmountTooLarge")<{
  readonly param: string
  /** Minor units. */
  readonly max: number
}> {}

/** A refund of more than what is left of the captured amount (semantics F5; wire code `amount_too_large`). */
export class RefundTooLarge extends Data.TaggedError("RefundTooLarge")<{}> {}

/** Nothing is left to refund (semantics F5). */
export class ChargeAlreadyRefunded extends Data.TaggedError("ChargeAlreadyRefunded")<{}> {}

/** Another price has the lookup key, and it was not asked to hand it over (semantics PR17). */
export class LookupKeyTaken extends Data.TaggedError("LookupKeyTaken")<{ readonly lookupKey: string }> {}

/** A product with prices cannot be deleted (semantics PR2). */
export class ProductHasPrices extends Data.TaggedError("ProductHasPrices")<{ readonly id: string }> {}

/** No such object in this environment, or not any more. */
export class ResourceMissing extends Data.TaggedError("ResourceMissing")<{
  readonly kind: ResourceKind
  readonly id: string
  /** `id` for the object of the path, else the parameter that refers to it (semantics T17). */
  readonly param: string
}> {}

/** The PaymentIntent's status does not allow the operation (semantics §2.1, `✗`). */
export class PaymentIntentUnexpectedState extends Data.TaggedError("PaymentIntentUnexpectedState")<{
  readonly status: PaymentIntentStatus
  /** Words for a message, e.g. `confirm` or "update of `amount`". */
  readonly operation: string
  /** The statuses that would allow it. */
  readonly allowed: ReadonlyArray<PaymentIntentStatus>
  readonly param: "id" | "payment_intent"
}> {}

/** Confirm without any payment method, known or sent (semantics I-7; wire code `payment_intent_unexpected_state`). */
export class PaymentMethodRequired extends Data.TaggedError("PaymentMethodRequired")<{}> {}

/**
 * An operation that would bypass the Checkout Session that the PaymentIntent belongs to (semantics I-18; wire code
 * `payment_intent_unexpected_state`).
 */
export class PaymentIntentBelongsToSession extends Data.TaggedError("PaymentIntentBelongsToSession")<{
  readonly checkoutSession: string
  /** Whether the session can still be paid, or expired. */
  readonly open: boolean
}> {}

/** The Checkout Session's status does not allow the operation (semantics §2.3, `✗`). */
export class CheckoutSessionUnexpectedState extends Data.TaggedError("CheckoutSessionUnexpectedState")<{
  readonly status: CheckoutSessionStatus
  /** Completes "only `open` sessions can be …". */
  readonly operation: "confirmed" | "expired"
}> {}

/** A price that is not active, where only an active one will do (semantics S3, PR5). */
export class PriceInactive extends Data.TaggedError("PriceInactive")<{
  readonly id: string
  readonly param: string
}> {}

/** A product that is not active, in a Checkout Session (semantics S3, PR18). */
export class ProductInactive extends Data.TaggedError("ProductInactive")<{
  readonly id: string
  readonly param: string
}> {}

/** Live mode has no card processor (semantics A10). */
export class ProcessorNotConfigured extends Data.TaggedError("ProcessorNotConfigured")<{}> {}

/** The card processor did not answer; nothing was changed. */
export class ProcessorUnavailable extends Data.TaggedError("ProcessorUnavailable")<{}> {}

/**
 * The issuer declined. The attempt is committed (semantics 9.25), so an operation never fails with it: it succeeds with
 * a `Result` whose failure this is.
 */
export class CardDeclined extends Data.TaggedError("CardDeclined")<{
  readonly declineCode: DeclineCode
  /** For the payer, by decline code (semantics §5). */
  readonly message: string
  /** `ch_…` of the failed attempt. */
  readonly charge: string
  /** The PaymentIntent as the decline left it. */
  readonly paymentIntent: PaymentIntent
}> {}

/** An operation of test mode only was asked for in live mode (semantics §8.27). */
export class TestModeOnly extends Data.TaggedError("TestModeOnly")<{}> {}

/** A publishable key was used for what needs a secret key (semantics A5, I-12). */
export class SecretKeyRequired extends Data.TaggedError("SecretKeyRequired")<{}> {}

/** Every failure that a lifecycle can answer with. */
export type DomainError =
  | ParameterMissing
  | ParameterInvalid
  | ParameterUnknown
  | ParametersExclusive
  | AmountTooLarge
  | LookupKeyTaken
  | ProductHasPrices
  | RefundTooLarge
  | ChargeAlreadyRefunded
  | ResourceMissing
  | PaymentIntentUnexpectedState
  | PaymentMethodRequired
  | PaymentIntentBelongsToSession
  | CheckoutSessionUnexpectedState
  | PriceInactive
  | ProductInactive
  | ProcessorNotConfigured
  | ProcessorUnavailable
  | CardDeclined
  | TestModeOnly
  | SecretKeyRequired
