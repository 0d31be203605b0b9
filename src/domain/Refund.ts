/** Refunds (spec: Refund; semantics refunds.*). */
import { Schema } from "effect"
import { ChargeId, PaymentIntentId, RefundId } from "./Identifiers.ts"
import { Metadata, MetadataParameter } from "./Metadata.ts"
import { Amount } from "./Money.ts"
import { type OperationOf, stateTable } from "./StateTable.ts"
import { unsettable } from "./Text.ts"
import { Timestamp } from "./Time.ts"

/** `requires_action` and `canceled` are reserved; no refund has them yet. */
export const RefundStatus = Schema.Literals(["pending", "succeeded", "failed", "requires_action", "canceled"])
export type RefundStatus = typeof RefundStatus.Type

/** The state table of refunds (semantics refunds.states). A step without a row leaves the refund as it is. */
export const refundStates = stateTable<RefundStatus>()({
  /** The processor returns the final result, or another one after all. */
  settle: { pending: ["succeeded", "failed"], succeeded: ["failed"], failed: ["succeeded"] },
  update: { pending: ["pending"], succeeded: ["succeeded"], failed: ["failed"] }
})

export type RefundOperation = OperationOf<typeof refundStates>

/** The merchant's reasons for a refund (semantics refunds.reason). */
export const RefundReason = Schema.Literals(["duplicate", "fraudulent", "requested_by_customer"])

/** The reasons for a failed refund (semantics refunds.effects). */
export const RefundFailureReason = Schema.Literals(["expired_or_canceled_card", "unknown"])
export type RefundFailureReason = typeof RefundFailureReason.Type

/** `amount` is in minor units, `created` in Unix seconds. */
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
  /** Set on failed refunds only. */
  failure_reason: Schema.optionalKey(RefundFailureReason),
  metadata: Metadata
}).annotate({ identifier: "Refund" })
export type Refund = typeof Refund.Type

/** The body of a creation. `amount` is in minor units. Null is the same as absent (semantics parameters.null). */
export const CreateRefund = Schema.Struct({
  payment_intent: PaymentIntentId,
  amount: Schema.optionalKey(Schema.NullOr(Amount)).annotate({
    description: "At most the amount left to refund, which is the default."
  }),
  reason: Schema.optionalKey(Schema.NullOr(RefundReason)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreateRefund" })
export type CreateRefund = typeof CreateRefund.Type

/** The body of an update; only metadata can change (semantics refunds.update). */
export const UpdateRefund = Schema.Struct({
  metadata: Schema.optionalKey(unsettable(MetadataParameter))
}).annotate({ identifier: "UpdateRefund" })
export type UpdateRefund = typeof UpdateRefund.Type
