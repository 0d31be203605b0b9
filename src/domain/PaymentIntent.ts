/** PaymentIntents (spec: PaymentIntent; semantics §1.12, §6). */
import { Schema } from "effect"
import { Charge } from "./Charge.ts"
import { DeclineCode } from "./Cards.ts"
import { ChargeId, CustomerId, MerchantId, PaymentIntentId, PaymentMethodId } from "./Identifiers.ts"
import { Metadata } from "./Metadata.ts"
import { Amount, AmountOrZero } from "./Money.ts"
import { PaymentIntentStatus } from "./PaymentIntentStates.ts"
import { text } from "./Text.ts"
import { Timestamp } from "./Time.ts"

export { PaymentIntentStatus } from "./PaymentIntentStates.ts"

export const CaptureMethod = Schema.Literals(["automatic", "manual"])
export type CaptureMethod = typeof CaptureMethod.Type

export const ConfirmationMethod = Schema.Literals(["automatic", "manual"])
export type ConfirmationMethod = typeof ConfirmationMethod.Type

/** What a client may give as the reason (semantics I-5). */
export const RequestedCancellationReason = Schema.Literals([
  "abandoned",
  "duplicate",
  "fraudulent",
  "requested_by_customer"
])
export type RequestedCancellationReason = typeof RequestedCancellationReason.Type

/** `automatic`: nobody asked; a hold or a session expired. */
export const CancellationReason = Schema.Literals([...RequestedCancellationReason.literals, "automatic"])
export type CancellationReason = typeof CancellationReason.Type

export const PaymentIntentDescription = text()

/** What the payer's bank statement calls the payment. */
export const StatementDescriptor = text(22)

/** What the payer answers when asked to authenticate. */
export const AuthenticationOutcome = Schema.Literals(["success", "failure"])
export type AuthenticationOutcome = typeof AuthenticationOutcome.Type

/** Why the last attempt failed. */
export const LastPaymentError = Schema.Struct({
  type: Schema.Literal("payment_error"),
  code: Schema.Literals(["card_declined", "payment_intent_authentication_failure"]),
  message: Schema.String,
  decline_code: Schema.optionalKey(DeclineCode),
  charge: Schema.optionalKey(ChargeId),
  payment_method: Schema.optionalKey(PaymentMethodId)
}).annotate({ identifier: "LastPaymentError" })
export type LastPaymentError = typeof LastPaymentError.Type

/** What the payer has to do next (semantics I-13). */
export const NextAction = Schema.Struct({
  type: Schema.Literal("redirect_to_url"),
  redirect_to_url: Schema.Struct({ url: Schema.String, return_url: Schema.NullOr(Schema.String) })
}).annotate({ identifier: "NextAction" })

/** The newest charges, newest first (semantics H1). */
export const EmbeddedCharges = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Charge),
  has_more: Schema.Boolean,
  url: Schema.String,
  next_cursor: Schema.NullOr(ChargeId)
}).annotate({ identifier: "EmbeddedCharges" })
export type EmbeddedCharges = typeof EmbeddedCharges.Type

/** Amounts in minor units, times in Unix seconds. */
export const PaymentIntent = Schema.Struct({
  id: PaymentIntentId,
  object: Schema.Literal("payment_intent"),
  amount: Amount,
  currency: Schema.String,
  status: PaymentIntentStatus,
  created: Timestamp,
  livemode: Schema.Boolean,
  amount_received: AmountOrZero,
  amount_capturable: AmountOrZero,
  capture_method: CaptureMethod,
  confirmation_method: ConfirmationMethod,
  customer: Schema.NullOr(CustomerId),
  payment_method: Schema.NullOr(PaymentMethodId),
  description: Schema.NullOr(Schema.String),
  statement_descriptor: Schema.NullOr(Schema.String),
  application_fee_amount: Schema.NullOr(AmountOrZero),
  metadata: Metadata,
  merchant_id: MerchantId,
  client_secret: Schema.String,
  last_payment_error: Schema.optionalKey(LastPaymentError),
  next_action: Schema.NullOr(NextAction),
  latest_charge: Schema.NullOr(ChargeId),
  charges: EmbeddedCharges,
  canceled_at: Schema.NullOr(Timestamp),
  cancellation_reason: Schema.NullOr(CancellationReason)
}).annotate({ identifier: "PaymentIntent" })
export type PaymentIntent = typeof PaymentIntent.Type

/** What a publishable key may see (semantics A6). */
export const PUBLISHABLE_FIELDS = [
  "id",
  "object",
  "amount",
  "currency",
  "status",
  "capture_method",
  "confirmation_method",
  "client_secret",
  "created",
  "livemode",
  "payment_method",
  "next_action",
  "last_payment_error",
  "canceled_at",
  "cancellation_reason"
] as const satisfies ReadonlyArray<keyof PaymentIntent>

/** The projection for a publishable key (semantics A6). */
export const publishable = (paymentIntent: PaymentIntent): Pick<PaymentIntent, (typeof PUBLISHABLE_FIELDS)[number]> =>
  Object.fromEntries(
    PUBLISHABLE_FIELDS.filter((field) => field in paymentIntent).map((field) => [field, paymentIntent[field]])
  ) as Pick<PaymentIntent, (typeof PUBLISHABLE_FIELDS)[number]>
