/**
 * What a payment does to the Checkout Session that it belongs to (semantics §2.3, I-18).
 *
 * A PaymentIntent names its session in its hidden part. Whatever moves the payment (the session, a confirmation of the
 * PaymentIntent itself, an authentication, a timer), the session hears of it here, in the same record and behind the
 * payment's own events. For a PaymentIntent without a session everything here does nothing.
 */
import { Effect } from "effect"
import type { BillingDetails } from "../domain/Address.ts"
import type { CheckoutPaymentStatus, CheckoutSession, CustomerDetails } from "../domain/CheckoutSession.ts"
import { CardDeclined, PaymentIntentBelongsToSession } from "../domain/Errors.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { latestCharge } from "../domain/PaymentIntentInvariants.ts"
import { Transaction } from "../engine/Transaction.ts"
import type { CheckoutSessionDocument } from "./CheckoutSessionChanges.ts"
import { change, known, save } from "./CheckoutSessionChanges.ts"
import * as Customers from "./Customers.ts"
import type { CheckoutSessionHidden } from "./Documents.ts"
import { emit } from "./Events.ts"
import { giveUp } from "./PaymentIntentCancellation.ts"
import * as PaymentIntentChanges from "./PaymentIntentChanges.ts"
import { timerId } from "./TimerNames.ts"

/** The id of the session that a PaymentIntent belongs to, if it belongs to one. */
type Owner = string | undefined

/**
 * The PaymentIntent with the customer that its session creates when it completes (semantics S9). To be called before the
 * attempt is written, because the customer's event comes first and the charge is the customer's already.
 */
export const withCustomer = (
  owner: Owner,
  paymentIntent: PaymentIntent,
  billingDetails: BillingDetails | null
): Effect.Effect<PaymentIntent, never, Transaction> =>
  owner === undefined
    ? Effect.succeed(paymentIntent)
    : Effect.map(
        Effect.flatMap(known(owner), (document) => createCustomer(document, billingDetails)),
        (customer) => (customer === null ? paymentIntent : { ...paymentIntent, customer })
      )

/** Creates the customer that a session wants and does not have; returns the id of the session's customer. */
export const createCustomer = Effect.fnUntraced(function* (
  { hidden, value: session }: CheckoutSessionDocument,
  billingDetails: BillingDetails | null
) {
  if (session.customer_creation !== "always" || session.customer !== null) return session.customer
  const transaction = yield* Transaction
  const { email, name, phone } = detailsAtCompletion(session, hidden, billingDetails)
  const { id } = yield* Effect.orDie(Customers.create({ email, name, phone }))
  save(transaction, change("confirm", session, { customer: id }), hidden)
  return id
})

/** An attempt was made: its outcome completes the session, or pays for one whose first payment failed to settle. */
export const attempted = Effect.fnUntraced(function* (owner: Owner, outcome: PaymentIntent | CardDeclined) {
  if (owner === undefined || outcome instanceof CardDeclined || outcome.status === "requires_action") return
  const document = yield* known(owner)
  const payment_status = paymentStatusOf(outcome)
  if (document.value.status === "open") {
    const details = { billingDetails: latestCharge(outcome)!.billing_details, paying: outcome.status === "processing" }
    return yield* complete(document, payment_status, details)
  }
  const transaction = yield* Transaction
  save(transaction, change("pay_again", document.value, { payment_status }), document.hidden)
})

/** A payment that was processing has settled. Only the one that completed the session is an event of the session's. */
export const settled = Effect.fnUntraced(function* (owner: Owner, outcome: PaymentIntent | CardDeclined) {
  if (owner === undefined) return
  const transaction = yield* Transaction
  const { hidden, value: session } = yield* known(owner)
  const payment_status = outcome instanceof CardDeclined ? "unpaid" : paymentStatusOf(outcome)
  save(transaction, change("settle", session, { payment_status }), { ...hidden, awaitsSettlement: false })
  if (!hidden.awaitsSettlement) return
  const event = outcome instanceof CardDeclined ? "async_payment_failed" : "async_payment_succeeded"
  emit(transaction, `checkout.session.${event}`, session.id)
})

/** The held amount, or a part of it, was taken. */
export const captured = Effect.fnUntraced(function* (owner: Owner) {
  if (owner === undefined) return
  const transaction = yield* Transaction
  const { hidden, value: session } = yield* known(owner)
  save(transaction, change("capture", session, { payment_status: "paid" }), hidden)
})

/** Fails for what would change the terms that the payer is or was shown (semantics I-18). */
export const requireNoSession = Effect.fnUntraced(function* (owner: Owner) {
  if (owner === undefined) return
  return yield* new PaymentIntentBelongsToSession({ checkoutSession: owner, open: yield* isOpen(owner) })
})

/** Fails as long as the session can be expired instead (semantics I-18, 9.5): a complete one cannot be any more. */
export const requireNoOpenSession = Effect.fnUntraced(function* (owner: Owner) {
  if (owner === undefined || !(yield* isOpen(owner))) return
  return yield* new PaymentIntentBelongsToSession({ checkoutSession: owner, open: true })
})

/** Whether the session can still be paid, or expired by request. */
const isOpen = Effect.fnUntraced(function* (owner: string) {
  const { value: session } = yield* known(owner)
  return session.status === "open"
})

/** Completes an open session (semantics §2.3). */
export const complete = Effect.fnUntraced(function* (
  { hidden, value: session }: CheckoutSessionDocument,
  payment_status: CheckoutPaymentStatus,
  payment: { readonly billingDetails: BillingDetails | null; readonly paying: boolean }
) {
  const transaction = yield* Transaction
  const completed = change("confirm", session, {
    status: "complete",
    payment_status,
    url: null,
    customer_details: detailsAtCompletion(session, hidden, payment.billingDetails)
  })
  save(transaction, completed, { ...hidden, collected: null, awaitsSettlement: payment.paying })
  transaction.clearTimer(timerId("checkout.session.expire", session.id))
  emit(transaction, "checkout.session.completed", session.id)
  return completed
})

/** Expires an open session, and gives its payment up (semantics S16). */
export const expire = Effect.fnUntraced(function* ({ hidden, value: session }: CheckoutSessionDocument) {
  const transaction = yield* Transaction
  const expired = change("expire", session, { status: "expired", url: null })
  if (session.payment_intent !== null) {
    const paymentIntent = yield* Effect.orDie(PaymentIntentChanges.find(session.payment_intent))
    yield* giveUp("expire_session", paymentIntent, "automatic")
  }
  save(transaction, expired, { ...hidden, collected: null })
  transaction.clearTimer(timerId("checkout.session.expire", session.id))
  emit(transaction, "checkout.session.expired", session.id)
  return expired
})

/** Expires a session whose time has come, unless it was completed or expired before (semantics S17). */
export const expireWhenDue = Effect.fnUntraced(function* (id: string) {
  const document = yield* known(id)
  if (document.value.status === "open") yield* expire(document)
})

/** Manual capture and asynchronous payments complete a session that is not paid yet (semantics S8). */
const paymentStatusOf = ({ status }: PaymentIntent): CheckoutPaymentStatus =>
  status === "succeeded" ? "paid" : "unpaid"

/** What the payer entered, then what was known before, then what came with the card (semantics S11). */
const detailsAtCompletion = (
  session: CheckoutSession,
  { collected }: CheckoutSessionHidden,
  billingDetails: BillingDetails | null
): CustomerDetails => {
  const details = collected ?? session.customer_details
  return {
    email: details?.email ?? billingDetails?.email ?? null,
    name: details?.name ?? billingDetails?.name ?? null,
    phone: details?.phone ?? billingDetails?.phone ?? null,
    address: details?.address ?? billingDetails?.address ?? null
  }
}
