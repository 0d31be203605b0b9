/**
 * How the lifecycle changes a PaymentIntent. Every change goes through here, so that none can leave the state table
 * or break an invariant: a lifecycle with a bug dies, and its command commits nothing.
 */
import { Effect } from "effect"
import { PaymentIntentUnexpectedState } from "../domain/Errors.ts"
import type { LastPaymentError, PaymentIntent } from "../domain/PaymentIntent.ts"
import { violatedInvariant } from "../domain/PaymentIntentInvariants.ts"
import type { PaymentIntentOperation } from "../domain/PaymentIntentStates.ts"
import { paymentIntentStates } from "../domain/PaymentIntentStates.ts"
import type { Transaction } from "../engine/Transaction.ts"
import type { PaymentIntentHidden } from "./Documents.ts"
import { findDocument, PAYMENT_INTENT } from "./Documents.ts"

/** New values of fields; null for `last_payment_error` removes it (semantics T12). */
export type PaymentIntentChanges = Partial<Omit<PaymentIntent, "id" | "object" | "last_payment_error">> & {
  readonly last_payment_error?: LastPaymentError | null
}

/** The PaymentIntent of the path, or the one that a parameter refers to, with what is hidden of it. */
export const find = (id: string, param: "id" | "payment_intent" = "id") => findDocument(PAYMENT_INTENT, id, param)

/** Fails unless the state table allows the operation (semantics §2.1, `✗`). */
export const requireAllowed = (
  operation: PaymentIntentOperation,
  { status }: PaymentIntent,
  words: string = operation,
  param: "id" | "payment_intent" = "id"
): Effect.Effect<void, PaymentIntentUnexpectedState> => {
  if (paymentIntentStates.isAllowed(operation, status)) return Effect.void
  const allowed = paymentIntentStates.statesFor(operation)
  return Effect.fail(new PaymentIntentUnexpectedState({ status, operation: words, allowed, param }))
}

/** The PaymentIntent after one step of an operation. */
export const change = (
  operation: PaymentIntentOperation,
  before: PaymentIntent,
  { last_payment_error, ...changes }: PaymentIntentChanges
): PaymentIntent => {
  const status = changes.status ?? before.status
  paymentIntentStates.requireTransition(before.id, operation, before.status, status)
  if (last_payment_error === undefined) return { ...before, ...changes }
  const { last_payment_error: _, ...rest } = before
  return last_payment_error === null ? { ...rest, ...changes } : { ...rest, ...changes, last_payment_error }
}

/** What stays hidden of a PaymentIntent whatever happens to it: the Checkout Session that it belongs to. */
export const lasting = (hidden: PaymentIntentHidden | undefined): PaymentIntentHidden | undefined =>
  hidden?.checkoutSession === undefined ? undefined : { checkoutSession: hidden.checkoutSession }

/** Whether the payer has authenticated for a charge of the PaymentIntent to a payment method (semantics 9.3). */
export const isAuthenticated = (
  hidden: PaymentIntentHidden | undefined,
  { amount, currency }: PaymentIntent,
  paymentMethod: string | null
): boolean => {
  const passed = hidden?.authentication
  return (
    passed !== undefined &&
    passed.paymentMethod === paymentMethod &&
    passed.currency === currency &&
    passed.amount >= amount
  )
}

/**
 * Writes the PaymentIntent, with what is to be hidden of it from now on. An authentication that does not cover what is
 * written ends here, so going back to the former terms does not bring it back.
 */
export const save = (transaction: Transaction, paymentIntent: PaymentIntent, hidden?: PaymentIntentHidden): void => {
  const violated = violatedInvariant(paymentIntent)
  if (violated !== undefined) throw new Error(`${paymentIntent.id} would not be sound: ${violated}`)
  const holds = isAuthenticated(hidden, paymentIntent, paymentIntent.payment_method)
  transaction.put(PAYMENT_INTENT, paymentIntent, holds ? hidden : lasting(hidden))
}
