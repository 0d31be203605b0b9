/**
 * One attempt to charge a PaymentIntent's payment method, and each of its outcomes (semantics §2.2).
 *
 * A decline is an outcome like any other: it is committed, and `CardDeclined` is what the command returns.
 */
import { Effect } from "effect"
import type { Charge } from "../domain/Charge.ts"
import { CardDeclined, ProcessorUnavailable } from "../domain/Errors.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { latestCharge } from "../domain/PaymentIntentInvariants.ts"
import type { PaymentIntentOperation } from "../domain/PaymentIntentStates.ts"
import { Transaction } from "../engine/Transaction.ts"
import * as Charges from "./Charges.ts"
import * as CheckoutSessionPayments from "./CheckoutSessionPayments.ts"
import type { PaymentIntentHidden } from "./Documents.ts"
import { CHARGE } from "./Documents.ts"
import type { Occurrence } from "./Events.ts"
import { emit } from "./Events.ts"
import { change, find, lasting, save } from "./PaymentIntentChanges.ts"
import type { PaymentSource } from "./PaymentMethods.ts"
import { resolve } from "./PaymentMethods.ts"
import { PaymentsConfig } from "./PaymentsConfig.ts"
import type { Authorization, Declined, Settlement } from "./Processor.ts"
import { processorFor } from "./Processor.ts"
import { timer } from "./TimerNames.ts"

export interface AttemptOptions {
  /** What the attempt is part of. */
  readonly operation: PaymentIntentOperation
  /** Whether the payer has authenticated for it. */
  readonly authenticated: boolean
  /** Where to send the payer after an authentication. */
  readonly returnUrl: string | null
  /** What is hidden of the PaymentIntent. */
  readonly hidden: PaymentIntentHidden | undefined
}

/** Charges the payment method, or reserves the amount on it, and writes what came of it. */
export const attempt = Effect.fnUntraced(function* (
  paymentIntent: PaymentIntent,
  source: PaymentSource,
  { authenticated, hidden, operation, returnUrl }: AttemptOptions
) {
  const transaction = yield* Transaction
  const config = yield* PaymentsConfig
  const processor = yield* processorFor(paymentIntent.livemode)
  const authorization = processor.authorize({
    token: source.token,
    card: source.card,
    authenticated,
    now: transaction.now
  })
  if (authorization.kind === "unavailable") return yield* new ProcessorUnavailable()
  const session = hidden?.checkoutSession
  const completes = authorization.kind === "approved" || authorization.kind === "pending"
  const attempted: Attempted = {
    transaction,
    config,
    operation,
    hidden: lasting(hidden),
    paymentIntent: completes
      ? yield* CheckoutSessionPayments.withCustomer(session, paymentIntent, source.billingDetails)
      : paymentIntent
  }
  const outcome = outcomeOf(attempted, source, authorization, returnUrl)
  yield* CheckoutSessionPayments.attempted(session, outcome)
  return outcome
})

/** Applies the outcome of a payment that was processing. Does nothing if it is not processing any more. */
export const settle = Effect.fnUntraced(function* (id: string) {
  const transaction = yield* Transaction
  const config = yield* PaymentsConfig
  const { hidden, value: paymentIntent } = yield* find(id)
  if (paymentIntent.status !== "processing") return
  const processor = yield* processorFor(paymentIntent.livemode)
  const charge = latestCharge(paymentIntent)!
  const { token } = yield* resolve(charge.payment_method, "payment_method")
  const attempted: Attempted = { transaction, config, operation: "settle", hidden: lasting(hidden), paymentIntent }
  const outcome = conclude(attempted, charge, processor.settle(token))
  yield* CheckoutSessionPayments.settled(hidden?.checkoutSession, outcome)
})

interface Attempted {
  readonly transaction: Transaction
  readonly config: PaymentsConfig["Service"]
  readonly operation: PaymentIntentOperation
  readonly paymentIntent: PaymentIntent
  /** What stays hidden of it. */
  readonly hidden: PaymentIntentHidden | undefined
}

const outcomeOf = (
  attempted: Attempted,
  source: PaymentSource,
  authorization: Exclude<Authorization, { readonly kind: "unavailable" }>,
  returnUrl: string | null
): PaymentIntent | CardDeclined => {
  switch (authorization.kind) {
    case "challenge":
      return challenge(attempted, source, returnUrl)
    case "pending":
      return process(attempted, source, authorization.settlesAfterMillis)
    default:
      return conclude(
        attempted,
        Charges.pendingCharge(attempted.transaction, attempted.paymentIntent, source),
        authorization
      )
  }
}

const conclude = (attempted: Attempted, charge: Charge, settlement: Settlement): PaymentIntent | CardDeclined =>
  settlement.kind === "declined"
    ? decline(attempted, charge, settlement)
    : attempted.paymentIntent.capture_method === "automatic"
      ? approve(attempted, charge)
      : reserve(attempted, charge)

/** Outcome "approve, automatic": the money is taken. */
const approve = (attempted: Attempted, pending: Charge): PaymentIntent => {
  const { operation, paymentIntent } = attempted
  const charge = Charges.approved(pending, paymentIntent.amount)
  const succeeded = change(operation, paymentIntent, {
    status: "succeeded",
    payment_method: charge.payment_method,
    amount_received: paymentIntent.amount,
    next_action: null,
    last_payment_error: null,
    ...withCharge(paymentIntent, charge)
  })
  write(attempted, succeeded, charge, "charge.succeeded", "payment_intent.succeeded")
  return succeeded
}

/** Outcome "approve, manual": the amount is held on the card until it is captured, released, or the hold expires. */
const reserve = (attempted: Attempted, pending: Charge): PaymentIntent => {
  const { config, operation, paymentIntent, transaction } = attempted
  const charge = Charges.approved(pending, 0)
  const reserved = change(operation, paymentIntent, {
    status: "requires_capture",
    payment_method: charge.payment_method,
    amount_capturable: paymentIntent.amount,
    next_action: null,
    last_payment_error: null,
    ...withCharge(paymentIntent, charge)
  })
  write(attempted, reserved, charge, "charge.succeeded", "payment_intent.amount_capturable_updated")
  transaction.setTimer(
    timer("payment_intent.expire_hold", paymentIntent.id, transaction.now + config.authorizationHoldSeconds * 1000)
  )
  return reserved
}

/** Outcome "decline": the attempt stays on record, and another payment method can be tried. */
const decline = (attempted: Attempted, pending: Charge, declined: Declined) => {
  const { operation, paymentIntent } = attempted
  const charge = Charges.failed(pending, declined)
  const returned = change(operation, paymentIntent, {
    status: "requires_payment_method",
    payment_method: null,
    next_action: null,
    last_payment_error: {
      type: "payment_error",
      code: "card_declined",
      message: declined.message,
      decline_code: declined.declineCode,
      charge: charge.id,
      payment_method: charge.payment_method
    },
    ...withCharge(paymentIntent, charge)
  })
  write(attempted, returned, charge, "charge.failed", "payment_intent.payment_failed")
  return new CardDeclined({
    declineCode: declined.declineCode,
    message: declined.message,
    charge: charge.id,
    paymentIntent: returned
  })
}

/** Outcome "async start": the answer comes later. */
const process = (attempted: Attempted, source: PaymentSource, settlesAfterMillis: number): PaymentIntent => {
  const { operation, paymentIntent, transaction } = attempted
  const charge = Charges.pendingCharge(transaction, paymentIntent, source)
  const processing = change(operation, paymentIntent, {
    status: "processing",
    payment_method: source.id,
    next_action: null,
    ...withCharge(paymentIntent, charge)
  })
  write(attempted, processing, charge, "charge.pending", "payment_intent.processing")
  transaction.setTimer(timer("payment_intent.settle", paymentIntent.id, transaction.now + settlesAfterMillis))
  return processing
}

/** Outcome "3DS needed": the payer has to authenticate; nothing is charged yet (semantics I-13). */
const challenge = (
  { config, hidden, operation, paymentIntent, transaction }: Attempted,
  source: PaymentSource,
  returnUrl: string | null
): PaymentIntent => {
  const { client_secret, id } = paymentIntent
  const challenged = change(operation, paymentIntent, {
    status: "requires_action",
    payment_method: source.id,
    next_action: {
      type: "redirect_to_url",
      redirect_to_url: {
        url: `${config.publicUrl}/authenticate/${id}?client_secret=${client_secret}`,
        return_url: returnUrl
      }
    }
  })
  save(transaction, challenged, hidden)
  emit(transaction, "payment_intent.requires_action", id)
  return challenged
}

const withCharge = ({ charges }: PaymentIntent, charge: Charge) => ({
  latest_charge: charge.id,
  charges: Charges.embed(charges, charge)
})

/** Both documents first, then both events: each event shows the outcome, not a step towards it. */
const write = (
  { hidden, transaction }: Attempted,
  paymentIntent: PaymentIntent,
  charge: Charge,
  chargeEvent: Occurrence,
  paymentIntentEvent: Occurrence
): void => {
  transaction.put(CHARGE, charge)
  save(transaction, paymentIntent, hidden)
  emit(transaction, chargeEvent, charge.id)
  emit(transaction, paymentIntentEvent, paymentIntent.id)
}
