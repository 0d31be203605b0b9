/** Refunds (spec: Refund; semantics §1.14, §2.4, §6). */
import { Schema } from "effect"
import { ChargeId, PaymentIntentId, RefundId } from "./Identifiers.ts"
import { Metadata } from "./Metadata.ts"
import { Amount } from "./Money.ts"
import { RefundStatus } from "./RefundStates.ts"
import { Timestamp } from "./Time.ts"

export { RefundStatus } from "./RefundStates.ts"

/** Why the merchant refunds (semantics F2). */
export const RefundReason = Schema.Literals(["duplicate", "fraudulent", "requested_by_customer"])
export type RefundReason = typeof RefundReason.Type

/** Why the money could not be returned (semantics F8). */
export const RefundFailureReason = Schema.Literals(["expired_or_canceled_card"])
export type RefundFailureReason = typeof RefundFailureReason.Type

/** `amount` in minor units, `created` in Unix seconds. */
export const Refund = Schema.Struct({
  id: RefundId,
  object: Schema.Literal("refund"),
  amount: Amount,
  currency: Schema.String,
  payment_intent: PaymentIntentId,
  status: RefundStatus,
  created: Timestamp,
  livemode: Schema.Boolean,
  charge: ChargeId,
  reason: Schema.optionalKey(RefundReason),
  /** Only of a refund that failed. */
  failure_reason: Schema.optionalKey(RefundFailureReason),
  metadata: Metadata
}).annotate({ identifier: "Refund" })
export type Refund = typeof Refund.Type
