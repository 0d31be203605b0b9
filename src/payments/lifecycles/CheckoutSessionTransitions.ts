/**
 * Transitions of Checkout Sessions, shared by the session's operations and by its payment (semantics checkout.states,
 * checkout.payment_intent).
 *
 * Every change goes through this file, which checks the state table and the invariants: a transition with a bug throws,
 * and its command commits nothing. A PaymentIntent names its session in its hidden part. When the payment moves (by the
 * session, by a confirmation of the PaymentIntent, by an authentication, by a timer), `followPayment` moves the session
 * in the same record, after the payment's own events.
 */
import { Effect } from "effect"
import type { BillingDetails } from "../../domain/Address.ts"
import {
  type CheckoutPaymentStatus,
  type CheckoutSession,
  type CustomerDetails,
  FAILED_ATTEMPTS_MAX,
  FAILED_ATTEMPTS_PAUSE_MILLIS,
  violatedInvariant
} from "../../domain/CheckoutSession.ts"
import { type CheckoutSessionOperation, checkoutSessionStates, stateOf } from "../../domain/CheckoutSessionStates.ts"
import type { ResourceMissing } from "../../domain/Errors.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import { latestCharge } from "../../domain/PaymentIntentInvariants.ts"
import type { PaymentIntentOperation } from "../../domain/PaymentIntentStates.ts"
import type { Document } from "../../engine/log/Document.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import * as Customers from "./Customers.ts"
import { CHECKOUT_SESSION, type CheckoutSessionHidden, findDocument } from "../shared/Documents.ts"
import { emit } from "../shared/Events.ts"
import { countCompleted, findLinkOf, type PaymentLinkDocument } from "./PaymentLinkUse.ts"
import { timer, timerId } from "../shared/TimerNames.ts"

/** A session as changed by the running command, with its hidden part, and the payment link that it comes from. */
export interface CheckoutSessionDocument extends Pick<
  Document<CheckoutSession, CheckoutSessionHidden>,
  "value" | "hidden"
> {
  readonly link: PaymentLinkDocument | null
}

/** Finds the session of the path. Fails with `ResourceMissing` if there is none. */
export const find = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<CheckoutSessionDocument, ResourceMissing, Transaction> {
  const { hidden, value } = yield* findDocument(CHECKOUT_SESSION, id)
  return { value, hidden, link: yield* findLinkOf(value) }
})

/** Finds the session that a PaymentIntent or a timer names. Only expired ones are deleted, with their PaymentIntent. */
export const findExisting = (id: string): Effect.Effect<CheckoutSessionDocument, never, Transaction> =>
  Effect.orDie(find(id))

/** Applies one transition of an operation to the session and writes it. */
export const step = (
  transaction: Transaction,
  operation: CheckoutSessionOperation,
  { hidden, link, value }: CheckoutSessionDocument,
  changes: Partial<CheckoutSession>,
  hiddenChanges: Partial<CheckoutSessionHidden> = {}
): CheckoutSessionDocument => {
  const after = { value: { ...value, ...changes }, hidden: { ...hidden, ...hiddenChanges }, link }
  checkoutSessionStates.requireTransition(value.id, operation, stateOf(value), stateOf(after.value))
  save(transaction, after.value, after.hidden)
  return after
}

/** Writes the session with its new hidden part. Throws if an invariant is violated. */
export const save = (transaction: Transaction, session: CheckoutSession, hidden: CheckoutSessionHidden): void => {
  const violated = violatedInvariant(session, hidden.customAmount !== null)
  if (violated !== undefined) throw new Error(`${session.id} would not be sound: ${violated}`)
  transaction.put(CHECKOUT_SESSION, session, hidden)
}

/**
 * Creates the customer that a session requires and lacks (semantics checkout.customer). An attempt calls it before it
 * writes anything else, so the customer's event comes first and the charge already names the customer.
 */
export const createCustomer = Effect.fnUntraced(function* (
  document: CheckoutSessionDocument,
  billingDetails: BillingDetails | null
): Effect.fn.Return<CheckoutSessionDocument, never, Transaction> {
  const { customer, customer_creation } = document.value
  if (customer_creation !== "always" || customer !== null) return document
  const transaction = yield* Transaction
  const { email, name, phone } = detailsAtCompletion(document, billingDetails)
  const { id } = yield* Effect.orDie(Customers.create({ email, name, phone }))
  return step(transaction, "confirm", document, { customer: id })
})

/** Completes an open session (semantics checkout.states). */
export const complete = (
  transaction: Transaction,
  document: CheckoutSessionDocument,
  payment_status: CheckoutPaymentStatus,
  payment: { readonly billingDetails: BillingDetails | null; readonly isProcessing: boolean }
): CheckoutSessionDocument => {
  const { id } = document.value
  const customer_details = detailsAtCompletion(document, payment.billingDetails)
  const changes = { status: "complete", payment_status, url: null, customer_details } as const
  const hidden = { collected: null, awaitsSettlement: payment.isProcessing }
  const completed = step(transaction, "confirm", document, changes, hidden)
  clearTimers(transaction, document)
  if (document.link !== null) countCompleted(transaction, document.link)
  emit(transaction, "checkout.session.completed", id)
  return completed
}

export const clearTimers = (transaction: Transaction, { hidden, value }: CheckoutSessionDocument): void => {
  transaction.clearTimer(timerId("checkout.session.expire", value.id))
  if (hidden.closedUntil !== null) transaction.clearTimer(timerId("checkout.session.reopen", value.id))
}

/** Applies a step of the session's PaymentIntent to the session. Every step of the PaymentIntent calls it once. */
export const followPayment = (
  transaction: Transaction,
  document: CheckoutSessionDocument,
  operation: PaymentIntentOperation,
  paymentIntent: PaymentIntent
): CheckoutSessionDocument => {
  switch (operation) {
    case "confirm":
    case "authenticate":
      return followAttempt(transaction, document, paymentIntent)
    case "settle":
      return followSettlement(transaction, document, paymentIntent)
    case "capture":
      return step(transaction, "capture", document, { payment_status: "paid" })
    default:
      return document
  }
}

/** Counts a declined attempt or failed authentication. At the limit, the session refuses payments for the pause. */
const countFailure = (transaction: Transaction, document: CheckoutSessionDocument): CheckoutSessionDocument => {
  const failedAttempts = document.hidden.failedAttempts + 1
  if (failedAttempts < FAILED_ATTEMPTS_MAX || document.hidden.closedUntil !== null) {
    return step(transaction, "confirm", document, {}, { failedAttempts })
  }
  const closedUntil = transaction.now + FAILED_ATTEMPTS_PAUSE_MILLIS
  transaction.setTimer(timer("checkout.session.reopen", document.value.id, closedUntil))
  return step(transaction, "confirm", document, {}, { failedAttempts, closedUntil })
}

/** Accepts payments again at the end of the pause, and resets the count (semantics checkout.attempts). */
export const reopenWhenDue = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const document = yield* findExisting(id)
  if (document.value.status !== "open") return
  step(transaction, "confirm", document, {}, { failedAttempts: 0, closedUntil: null })
})

/**
 * Applies an attempt: it completes the session, or pays for a completed one whose first payment failed to settle. A
 * failed attempt on an open session is counted and changes no visible field.
 */
const followAttempt = (
  transaction: Transaction,
  document: CheckoutSessionDocument,
  paymentIntent: PaymentIntent
): CheckoutSessionDocument => {
  const isProcessing = paymentIntent.status === "processing"
  const isPaying = isProcessing || paymentIntent.status === "succeeded" || paymentIntent.status === "requires_capture"
  if (!isPaying) {
    const hasFailed = paymentIntent.status === "requires_payment_method" && document.value.status === "open"
    return hasFailed ? countFailure(transaction, document) : document
  }
  const payment_status = paymentStatusOf(paymentIntent)
  if (document.value.status !== "open") return step(transaction, "pay_again", document, { payment_status })
  const billingDetails = latestCharge(paymentIntent)!.billing_details
  return complete(transaction, document, payment_status, { billingDetails, isProcessing })
}

/** Applies the settlement of a processing payment. Emits an event only for the payment that completed the session. */
const followSettlement = (
  transaction: Transaction,
  document: CheckoutSessionDocument,
  paymentIntent: PaymentIntent
): CheckoutSessionDocument => {
  const payment_status = paymentStatusOf(paymentIntent)
  const settled = step(transaction, "settle", document, { payment_status }, { awaitsSettlement: false })
  if (!document.hidden.awaitsSettlement) return settled
  const hasFailed = paymentIntent.status === "requires_payment_method"
  const event = hasFailed ? "async_payment_failed" : "async_payment_succeeded"
  emit(transaction, `checkout.session.${event}`, settled.value.id)
  return settled
}

/** Returns the payment status: a session can complete before it is paid (semantics checkout.payment_status). */
const paymentStatusOf = ({ status }: PaymentIntent): CheckoutPaymentStatus =>
  status === "succeeded" ? "paid" : "unpaid"

/** Merges the details: entered, then known, then of the card (semantics checkout.customer_details). */
const detailsAtCompletion = (
  { hidden, value }: CheckoutSessionDocument,
  billingDetails: BillingDetails | null
): CustomerDetails => {
  const details = hidden.collected ?? value.customer_details
  return {
    email: details?.email ?? billingDetails?.email ?? null,
    name: details?.name ?? billingDetails?.name ?? null,
    phone: details?.phone ?? billingDetails?.phone ?? null,
    address: details?.address ?? billingDetails?.address ?? null
  }
}
