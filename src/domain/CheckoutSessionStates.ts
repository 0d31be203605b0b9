/**
 * The state table of Checkout Sessions (semantics §2.3): what may happen to a session in which state, and where it may
 * lead. A state is a session's status with its payment status, because both move together.
 */
import { Schema } from "effect"
import type { OperationOf } from "./StateTable.ts"
import { stateTable } from "./StateTable.ts"

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
  /** A decline and an authentication that is yet to come leave it open. */
  confirm: {
    "open unpaid": ["open unpaid", "complete paid", "complete unpaid", "complete no_payment_required"]
  },
  /** By request, or because its time has come. */
  expire: { "open unpaid": ["expired unpaid"] },
  /** The payment that it was completed with settles: held for a capture, taken, or failed. */
  settle: { "complete unpaid": ["complete unpaid", "complete paid"] },
  /** The held amount is taken. */
  capture: { "complete unpaid": ["complete paid"] },
  /** After a payment that failed to settle, another attempt on the PaymentIntent. */
  pay_again: { "complete unpaid": ["complete unpaid", "complete paid"] }
})

export type CheckoutSessionOperation = OperationOf<typeof checkoutSessionStates>

interface Stateful {
  readonly status: CheckoutSessionStatus
  readonly payment_status: CheckoutPaymentStatus
}

/** The state of a session, as the table names it. */
export const stateOf = ({ payment_status, status }: Stateful): CheckoutSessionState =>
  `${status} ${payment_status}` as CheckoutSessionState
