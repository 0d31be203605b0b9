/** PaymentIntents, and the bodies of requests for them (spec: PaymentIntent; semantics payment_intents.*). */
import { Schema } from "effect"
import { Charge } from "./Charge.ts"
import { DeclineCode } from "./Cards.ts"
import { ChargeId, CustomerId, MerchantId, PaymentIntentId, PaymentMethodId } from "./Identifiers.ts"
import { Metadata, MetadataParameter } from "./Metadata.ts"
import { Amount, AMOUNT_CAP, AmountOrZero, Currency } from "./Money.ts"
import { PendingOperation } from "./Operation.ts"
import { PaymentIntentStatus } from "./PaymentIntentStates.ts"
import { PaymentMethodData, PaymentMethodType } from "./PaymentMethod.ts"
import { RedirectUrl } from "./RedirectUrl.ts"
import { text, unsettable } from "./Text.ts"
import { Timestamp } from "./Time.ts"

export { PaymentIntentStatus } from "./PaymentIntentStates.ts"

export const CaptureMethod = Schema.Literals(["automatic", "manual"])
export type CaptureMethod = typeof CaptureMethod.Type

export const ConfirmationMethod = Schema.Literals(["automatic", "manual"])
export type ConfirmationMethod = typeof ConfirmationMethod.Type

/** The reasons that a client can give (semantics payment_intents.cancel). */
export const RequestedCancellationReason = Schema.Literals([
  "abandoned",
  "duplicate",
  "fraudulent",
  "requested_by_customer"
])

/** `automatic`: canceled by the expiry of a hold or a session. */
export const CancellationReason = Schema.Literals([...RequestedCancellationReason.literals, "automatic"])
export type CancellationReason = typeof CancellationReason.Type

export const PaymentIntentDescription = text()

/** The name of the payment on the payer's bank statement. */
export const StatementDescriptor = text(22)

export const AuthenticationOutcome = Schema.Literals(["success", "failure"])
export type AuthenticationOutcome = typeof AuthenticationOutcome.Type

/** How the card will be charged later: with the payer present, or without. */
export const FutureUsage = Schema.Literals(["on_session", "off_session"])
export type FutureUsage = typeof FutureUsage.Type

const FUTURE_USAGE = {
  description:
    "Attaches the payment method to the PaymentIntent's `customer`, which is then required, when the payment " +
    "succeeds or is authorized. The payment stands even if the payment method can no longer be attached."
}

export const LastPaymentError = Schema.Struct({
  type: Schema.Literal("payment_error"),
  code: Schema.Literals(["card_declined", "payment_intent_authentication_failure"]),
  message: Schema.String,
  decline_code: Schema.optionalKey(DeclineCode),
  charge: Schema.optionalKey(ChargeId),
  payment_method: Schema.optionalKey(PaymentMethodId)
}).annotate({ identifier: "LastPaymentError" })
export type LastPaymentError = typeof LastPaymentError.Type

/** The action that the payer has to take next (semantics payment_intents.authentication). */
export const NextAction = Schema.Struct({
  type: Schema.Literal("redirect_to_url"),
  redirect_to_url: Schema.Struct({ url: Schema.String, return_url: Schema.NullOr(Schema.String) })
}).annotate({ identifier: "NextAction" })

/** The charges that a PaymentIntent shows (semantics charges.embedded). */
export const EMBEDDED_CHARGES_MAX = 10

/** The newest charges, newest first (semantics charges.embedded). */
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
  setup_future_usage: Schema.NullOr(FutureUsage),
  metadata: Metadata,
  merchant_id: MerchantId,
  client_secret: Schema.String,
  last_payment_error: Schema.optionalKey(LastPaymentError),
  next_action: Schema.NullOr(NextAction),
  latest_charge: Schema.NullOr(ChargeId),
  charges: EmbeddedCharges,
  canceled_at: Schema.NullOr(Timestamp),
  cancellation_reason: Schema.NullOr(CancellationReason),
  /** Absent unless an operation has no outcome yet (semantics operations.one). */
  pending_operation: Schema.optionalKey(PendingOperation)
}).annotate({ identifier: "PaymentIntent" })
export type PaymentIntent = typeof PaymentIntent.Type

/** The description of `return_url` (semantics payment_intents.authentication). */
export const RETURN_URL =
  "The page to which the payer returns from an authentication, with `payment_intent`, `payment_intent_client_secret` " +
  "and `redirect_status`, which is `succeeded` or `failed`, appended to the query; the rest of the URL is unchanged. " +
  "Without it, Till's page shows the outcome."

const OFF_SESSION =
  "With `true`, the payer is absent and cannot authenticate: a card that requires it is declined, with the decline " +
  "code `authentication_required`. Secret keys only."

const attempt = {
  payment_method: Schema.optionalKey(Schema.NullOr(PaymentMethodId)).annotate({
    description: "In test mode, also a test card's: `pm_card_visa`."
  }),
  payment_method_data: Schema.optionalKey(Schema.NullOr(PaymentMethodData)),
  payment_method_type: Schema.optionalKey(Schema.NullOr(PaymentMethodType)),
  return_url: Schema.optionalKey(Schema.NullOr(RedirectUrl)).annotate({ description: RETURN_URL }),
  setup_future_usage: Schema.optionalKey(Schema.NullOr(FutureUsage)).annotate(FUTURE_USAGE),
  off_session: Schema.optionalKey(Schema.NullOr(Schema.Boolean)).annotate({ description: OFF_SESSION })
}

/** Describes parameters that only an attempt uses (semantics payment_intents.create). */
const WITH_CONFIRM = { description: "Only with `confirm: true`." }

/** The body of a creation. Amounts in minor units; null and "" count as absent (semantics parameters.null). */
export const CreatePaymentIntent = Schema.Struct({
  amount: Amount.annotate({ description: AMOUNT_CAP }),
  currency: Currency,
  capture_method: Schema.optionalKey(Schema.NullOr(CaptureMethod)),
  confirmation_method: Schema.optionalKey(Schema.NullOr(ConfirmationMethod)),
  customer: Schema.optionalKey(Schema.NullOr(CustomerId)),
  description: Schema.optionalKey(Schema.NullOr(PaymentIntentDescription)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter)),
  confirm: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  ...attempt,
  payment_method_data: attempt.payment_method_data.annotate(WITH_CONFIRM),
  payment_method_type: attempt.payment_method_type.annotate(WITH_CONFIRM),
  return_url: attempt.return_url.annotate({ description: `${WITH_CONFIRM.description} ${RETURN_URL}` }),
  off_session: attempt.off_session.annotate({ description: `${WITH_CONFIRM.description} ${OFF_SESSION}` }),
  statement_descriptor: Schema.optionalKey(Schema.NullOr(StatementDescriptor))
}).annotate({ identifier: "CreatePaymentIntent" })
export type CreatePaymentIntent = typeof CreatePaymentIntent.Type

const UNTIL_CHARGED =
  "Can change until the charge: in `requires_payment_method`, `requires_confirmation` and `requires_action`."

/** The body of an update. Null, and "" for a text, unset a field (semantics parameters.empty_text). */
export const UpdatePaymentIntent = Schema.Struct({
  amount: Schema.optionalKey(Amount).annotate({ description: AMOUNT_CAP }),
  currency: Schema.optionalKey(Currency),
  customer: Schema.optionalKey(Schema.NullOr(CustomerId)),
  description: Schema.optionalKey(Schema.NullOr(PaymentIntentDescription)),
  metadata: Schema.optionalKey(unsettable(MetadataParameter)),
  payment_method: Schema.optionalKey(Schema.NullOr(PaymentMethodId)),
  capture_method: Schema.optionalKey(CaptureMethod),
  statement_descriptor: Schema.optionalKey(Schema.NullOr(StatementDescriptor)).annotate({
    description: UNTIL_CHARGED
  }),
  setup_future_usage: Schema.optionalKey(Schema.NullOr(FutureUsage)).annotate({
    description: `${FUTURE_USAGE.description} ${UNTIL_CHARGED}`
  })
}).annotate({ identifier: "UpdatePaymentIntent" })
export type UpdatePaymentIntent = typeof UpdatePaymentIntent.Type

/** The body of a confirmation. A secret key's `client_secret` is only checked (semantics keys.client_secret). */
export const ConfirmPaymentIntent = Schema.Struct({
  ...attempt,
  client_secret: Schema.optionalKey(Schema.NullOr(text()))
}).annotate({ identifier: "ConfirmPaymentIntent" })
export type ConfirmPaymentIntent = typeof ConfirmPaymentIntent.Type

/** The body of a capture; the rest of the held amount is released (semantics payment_intents.capture). */
export const CapturePaymentIntent = Schema.Struct({
  amount_to_capture: Schema.optionalKey(Schema.NullOr(Amount)).annotate({
    description: "At most the PaymentIntent's `amount`, which is the default."
  })
}).annotate({ identifier: "CapturePaymentIntent" })
export type CapturePaymentIntent = typeof CapturePaymentIntent.Type

/** The body of a cancellation, with the client's reason (semantics payment_intents.cancel). */
export const CancelPaymentIntent = Schema.Struct({
  cancellation_reason: Schema.optionalKey(Schema.NullOr(RequestedCancellationReason))
}).annotate({ identifier: "CancelPaymentIntent" })
export type CancelPaymentIntent = typeof CancelPaymentIntent.Type
