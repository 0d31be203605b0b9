/**
 * The state table of refunds (semantics F3, §2.4): which step is possible in which status, and where it leads. A status that
 * a step has no row for is one that it leaves as it is.
 */
import { Schema } from "effect"
import type { OperationOf } from "./StateTable.ts"
import { stateTable } from "./StateTable.ts"

/** `requires_action` and `canceled` are reserved: no refund has them so far. */
export const RefundStatus = Schema.Literals(["pending", "succeeded", "failed", "requires_action", "canceled"])
export type RefundStatus = typeof RefundStatus.Type

export const refundStates = stateTable<RefundStatus>()({
  /** The processor says later what became of the refund. */
  settle: { pending: ["succeeded", "failed"], succeeded: ["failed"] },
  /** Metadata. */
  update: { pending: ["pending"], succeeded: ["succeeded"], failed: ["failed"] }
})

export type RefundOperation = OperationOf<typeof refundStates>
