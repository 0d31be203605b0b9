/**
 * The state table of PaymentIntents (semantics §2.1): which operation is allowed in which status, and where it may
 * lead.
 */
import { Schema } from "effect"
import type { OperationOf } from "./StateTable.ts"
import { stateTable } from "./StateTable.ts"

const PAYMENT_INTENT_STATUSES = [
  "requires_payment_method",
  "requires_confirmation",
  "requires_action",
  "processing",
  "requires_capture",
  "canceled",
  "succeeded"
] as const

export const PaymentIntentStatus = Schema.Literals(PAYMENT_INTENT_STATUSES)
export type PaymentIntentStatus = typeof PaymentIntentStatus.Type

/** A confirmation, or an authentication that runs the attempt at once, may lead to these. */
const ATTEMPTED = [
  "succeeded",
  "requires_capture",
  "requires_payment_method",
  "requires_action",
  "processing"
] as const satisfies ReadonlyArray<PaymentIntentStatus>

export const paymentIntentStates = stateTable<PaymentIntentStatus>()({
  /** Description and metadata. */
  update_details: {
    requires_payment_method: ["requires_payment_method"],
    requires_confirmation: ["requires_confirmation"],
    requires_action: ["requires_action"],
    processing: ["processing"],
    requires_capture: ["requires_capture"],
    canceled: ["canceled"],
    succeeded: ["succeeded"]
  },
  /** Amount, currency, customer, capture method. A pending action is dropped: the payer was asked about other terms. */
  update_terms: {
    requires_payment_method: ["requires_payment_method"],
    requires_confirmation: ["requires_confirmation"],
    requires_action: ["requires_confirmation"]
  },
  /**
   * Statement descriptor and future usage. The payer is not asked about them, so they drop no action; a charge that was
   * made has those of its time.
   */
  update_until_charged: {
    requires_payment_method: ["requires_payment_method"],
    requires_confirmation: ["requires_confirmation"],
    requires_action: ["requires_action"]
  },
  set_payment_method: {
    requires_payment_method: ["requires_confirmation"],
    requires_confirmation: ["requires_confirmation"],
    requires_action: ["requires_confirmation"]
  },
  unset_payment_method: {
    requires_payment_method: ["requires_payment_method"],
    requires_confirmation: ["requires_payment_method"],
    requires_action: ["requires_payment_method"]
  },
  confirm: {
    requires_payment_method: ATTEMPTED,
    requires_confirmation: ATTEMPTED,
    requires_action: ATTEMPTED
  },
  /** A decline after a successful authentication leads to `requires_payment_method`, as a failed one does. */
  authenticate: {
    requires_action: ["succeeded", "requires_capture", "requires_payment_method", "requires_confirmation"]
  },
  settle: { processing: ["succeeded", "requires_capture", "requires_payment_method"] },
  capture: { requires_capture: ["succeeded"] },
  cancel: {
    requires_payment_method: ["canceled"],
    requires_confirmation: ["canceled"],
    requires_action: ["canceled"],
    requires_capture: ["canceled"]
  },
  expire_hold: { requires_capture: ["canceled"] },
  /** The Checkout Session that it belongs to expires while it is open. */
  expire_session: {
    requires_payment_method: ["canceled"],
    requires_confirmation: ["canceled"],
    requires_action: ["canceled"]
  },
  /** Only what its charge shows changes. */
  refund: { succeeded: ["succeeded"] }
})

export type PaymentIntentOperation = OperationOf<typeof paymentIntentStates>
