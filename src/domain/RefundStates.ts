/**
 * The state table of refunds (semantics F3, §2.4): which step is possible in which status, and where it leads.
 * A status that is no key of a step's row is one that the step leaves as it is.
 */
import { Schema } from "effect"

/** `requires_action` and `canceled` are reserved: no refund has them so far. */
export const RefundStatus = Schema.Literals(["pending", "succeeded", "failed", "requires_action", "canceled"])
export type RefundStatus = typeof RefundStatus.Type

type Row = Partial<Record<RefundStatus, ReadonlyArray<RefundStatus>>>

const REFUND_TRANSITIONS = {
  /** The processor says later what became of the refund. */
  settle: { pending: ["succeeded", "failed"], succeeded: ["failed"] },
  /** Metadata. */
  update: { pending: ["pending"], succeeded: ["succeeded"], failed: ["failed"] }
} as const satisfies Record<string, Row>

export type RefundOperation = keyof typeof REFUND_TRANSITIONS

/** Whether a step may lead from one status to another. */
export const isRefundTransition = (operation: RefundOperation, from: RefundStatus, to: RefundStatus): boolean =>
  (REFUND_TRANSITIONS[operation] as Row)[from]?.includes(to) ?? false
