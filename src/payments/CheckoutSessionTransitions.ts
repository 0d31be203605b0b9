/**
 * The steps of Checkout Sessions that their operations and their payments share (semantics §2.3, I-18).
 *
 * Every change goes through here, so that none can leave the state table or break an invariant: a lifecycle with a bug
 * dies, and its command commits nothing. A PaymentIntent names its session in its hidden part. Whatever moves the
 * payment (the session, a confirmation of the PaymentIntent itself, an authentication, a timer), `followPayment` moves
 * the session in the same record, behind the payment's own events.
 */
import { Effect } from "effect"
import type { BillingDetails } from "../domain/Address.ts"
import type { CheckoutPaymentStatus, CheckoutSession, CustomerDetails } from "../domain/CheckoutSession.ts"
import { FAILED_ATTEMPTS_MAX, FAILED_ATTEMPTS_PAUSE_MILLIS, violatedInvariant } from "../domain/CheckoutSession.ts"
import type { CheckoutSessionOperation } from "../domain/CheckoutSessionStates.ts"
import { checkoutSessionStates, stateOf } from "../domain/CheckoutSessionStates.ts"
import type { ResourceMissing } from "../domain/Errors.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { latestCharge } from "../domain/PaymentIntentInvariants.ts"
import type { PaymentIntentOperation } from "../domain/PaymentIntentStates.ts"
import type { Document } from "../engine/log/Document.ts"
import { Transaction } from "../engine/actor/Transaction.ts"
import * as Customers from "./Customers.ts"
import type { CheckoutSessionHidden } from "./Documents.ts"
import { CHECKOUT_SESSION, findDocument } from "./Documents.ts"
import { emit } from "./Events.ts"
import { timer, timerId } from "./TimerNames.ts"

/** Holds a session as the command has left it so far, and what is hidden of it. */
export type CheckoutSessionDocument = Pick<Document<CheckoutSession, CheckoutSessionHidden>, "value" | "hidden">

/** Finds the session of the path. Fails with `ResourceMissing` if there is none. */
export const find = (id: string): Effect.Effect<CheckoutSessionDocument, ResourceMissing, Transaction> =>
  findDocument(CHECKOUT_SESSION, id)

/** Finds the session that a PaymentIntent or a timer names. It is there, because sessions are never deleted. */
export const findExisting = (id: string): Effect.Effect<CheckoutSessionDocument, never, Transaction> =>
  Effect.orDie(find(id))

/** Moves the session by one step of an operation, and writes it. */
export const step = (
  transaction: Transaction,
  operation: CheckoutSessionOperation,
  { hidden, value }: CheckoutSessionDocument,
  changes: Partial<CheckoutSession>,
  hiddenChanges: Partial<CheckoutSessionHidden> = {}
): CheckoutSessionDocument => {
  const after = { value: { ...value, ...changes }, hidden: { ...hidden, ...hiddenChanges } }
  checkoutSessionStates.requireTransition(value.id, operation, stateOf(value), stateOf(after.value))
  save(transaction, after.value, after.hidden)
  return after
}

/** Writes the session, with what is to be hidden of it from now on. */
export const save = (transaction: Transaction, session: CheckoutSession, hidden: CheckoutSessionHidden): void => {
  const violated = violatedInvariant(session, hidden.customAmount !== null)
  if (violated !== undefined) throw new Error(`${session.id} would not be sound: ${violated}`)
  transaction.put(CHECKOUT_SESSION, session, hidden)
}

/**
 * Creates the customer that a session wants and does not have (semantics S9). An attempt calls it before anything of
 * the attempt is written: the customer's event comes first, and the charge is the customer's already.
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

/** Completes an open session (semantics §2.3). */
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
  emit(transaction, "checkout.session.completed", id)
  return completed
}

/** A session that has ended has nothing to wait for. */
export const clearTimers = (transaction: Transaction, { hidden, value }: CheckoutSessionDocument): void => {
  transaction.clearTimer(timerId("checkout.session.expire", value.id))
  if (hidden.closedUntil !== null) transaction.clearTimer(timerId("checkout.session.reopen", value.id))
}

/** Moves the session where a step of its PaymentIntent takes it. Every step of the PaymentIntent calls it once. */
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

/** Counts an attempt that a decline or a failed authentication has ended; the last one closes the session's form. */
const countFailure = (transaction: Transaction, document: CheckoutSessionDocument): CheckoutSessionDocument => {
  const failedAttempts = document.hidden.failedAttempts + 1
  if (failedAttempts < FAILED_ATTEMPTS_MAX || document.hidden.closedUntil !== null) {
    return step(transaction, "confirm", document, {}, { failedAttempts })
  }
  const closedUntil = transaction.now + FAILED_ATTEMPTS_PAUSE_MILLIS
  transaction.setTimer(timer("checkout.session.reopen", document.value.id, closedUntil))
  return step(transaction, "confirm", document, {}, { failedAttempts, closedUntil })
}

/** Lets a session that had too many failed attempts take payments again. The count begins anew (semantics 9.29). */
export const reopenWhenDue = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const document = yield* findExisting(id)
  if (document.value.status !== "open") return
  step(transaction, "confirm", document, {}, { failedAttempts: 0, closedUntil: null })
})

/**
 * An attempt completes the session, or pays for one whose first payment failed to settle. A failed one is counted while
 * the session is open, and changes nothing that is seen.
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

/** A payment that was processing has settled. Only the one that completed the session is an event of the session's. */
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

/** Manual capture and asynchronous payments complete a session that is not paid yet (semantics S8). */
const paymentStatusOf = ({ status }: PaymentIntent): CheckoutPaymentStatus =>
  status === "succeeded" ? "paid" : "unpaid"

/** Prefers what the payer entered, then what was known before, then what came with the card (semantics S11). */
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
