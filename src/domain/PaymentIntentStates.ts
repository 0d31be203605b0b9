/** The state table of PaymentIntents (semantics payment_intents.states). */
import { Schema } from "effect"
import { type OperationOf, stateTable } from "./StateTable.ts"

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

/** The statuses after an attempt: by a confirmation, or by an authentication that continues it. */
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
  /** Amount, currency, customer, capture method. Drops a pending action, which was about other terms. */
  update_terms: {
    requires_payment_method: ["requires_payment_method"],
    requires_confirmation: ["requires_confirmation"],
    requires_action: ["requires_confirmation"]
  },
  /** Statement descriptor and future usage. Keeps a pending action: the payer is not asked about them. */
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
  /**
   * A decline after a passed authentication leads to `requires_payment_method`, as a failed authentication does. A
   * remote processor may need time after it (semantics operations.states).
   */
  authenticate: {
    requires_action: ["succeeded", "requires_capture", "requires_payment_method", "requires_confirmation", "processing"]
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
  /** Its Checkout Session expires while open. */
  expire_session: {
    requires_payment_method: ["canceled"],
    requires_confirmation: ["canceled"],
    requires_action: ["canceled"]
  },
  /** Changes the charge only. */
  refund: { succeeded: ["succeeded"] }
})

export type PaymentIntentOperation = OperationOf<typeof paymentIntentStates>
