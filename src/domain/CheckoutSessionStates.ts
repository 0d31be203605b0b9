/** The state table of Checkout Sessions (semantics checkout.states). A state includes the payment status. */
import { Schema } from "effect"
import { type OperationOf, stateTable } from "./StateTable.ts"

export const CheckoutSessionStatus = Schema.Literals(["open", "complete", "expired"])
export type CheckoutSessionStatus = typeof CheckoutSessionStatus.Type

export const CheckoutPaymentStatus = Schema.Literals(["unpaid", "paid", "no_payment_required"])
export type CheckoutPaymentStatus = typeof CheckoutPaymentStatus.Type

export type CheckoutSessionState =
  | "open unpaid"
  | "complete unpaid"
  | "complete paid"
  | "complete no_payment_required"
  | "expired unpaid"

export const checkoutSessionStates = stateTable<CheckoutSessionState>()({
  /** Metadata. */
  update: {
    "open unpaid": ["open unpaid"],
    "complete unpaid": ["complete unpaid"],
    "complete paid": ["complete paid"],
    "complete no_payment_required": ["complete no_payment_required"],
    "expired unpaid": ["expired unpaid"]
  },
  /** A decline and a pending authentication leave the session open. */
  confirm: {
    "open unpaid": ["open unpaid", "complete paid", "complete unpaid", "complete no_payment_required"]
  },
  /** By request or by the timer. */
  expire: { "open unpaid": ["expired unpaid"] },
  /** The payment that completed the session settles: held for a capture, paid, or failed. */
  settle: { "complete unpaid": ["complete unpaid", "complete paid"] },
  capture: { "complete unpaid": ["complete paid"] },
  /** Another attempt on the PaymentIntent, after a payment that failed to settle. */
  pay_again: { "complete unpaid": ["complete unpaid", "complete paid"] }
})

export type CheckoutSessionOperation = OperationOf<typeof checkoutSessionStates>

interface Stateful {
  readonly status: CheckoutSessionStatus
  readonly payment_status: CheckoutPaymentStatus
}

export const stateOf = ({ payment_status, status }: Stateful): CheckoutSessionState =>
  `${status} ${payment_status}` as CheckoutSessionState
