/** Giving a payment up: by request, because its hold was not used in time, or because its Checkout Session expired. */
import { Effect } from "effect"
import type { CancellationReason, PaymentIntent } from "../domain/PaymentIntent.ts"
import { latestCharge } from "../domain/PaymentIntentInvariants.ts"
import { secondsOf } from "../domain/Time.ts"
import type { Document } from "../engine/Document.ts"
import { Transaction } from "../engine/Transaction.ts"
import * as Charges from "./Charges.ts"
import type { PaymentIntentHidden } from "./Documents.ts"
import { CHARGE } from "./Documents.ts"
import { emit } from "./Events.ts"
import { change, lasting, save } from "./PaymentIntentChanges.ts"
import { timerId } from "./TimerNames.ts"

/** Cancels the PaymentIntent, and gives a held amount back (semantics §2.2). */
export const giveUp = Effect.fnUntraced(function* (
  operation: "cancel" | "expire_hold" | "expire_session",
  { hidden, value: paymentIntent }: Document<PaymentIntent, PaymentIntentHidden | undefined>,
  reason: CancellationReason | null
) {
  const transaction = yield* Transaction
  const held = paymentIntent.status === "requires_capture" ? latestCharge(paymentIntent)! : undefined
  const charge = held === undefined ? undefined : Charges.released(held, transaction.now)
  const canceled = change(operation, paymentIntent, {
    status: "canceled",
    canceled_at: secondsOf(transaction.now),
    cancellation_reason: reason,
    amount_capturable: 0,
    next_action: null,
    ...(charge === undefined ? {} : { charges: Charges.embed(paymentIntent.charges, charge) })
  })
  save(transaction, canceled, lasting(hidden))
  if (charge !== undefined) {
    transaction.put(CHARGE, charge)
    transaction.clearTimer(timerId("payment_intent.expire_hold", paymentIntent.id))
    if (operation === "expire_hold") emit(transaction, "charge.expired", charge.id)
    else emit(transaction, "charge.updated", charge.id, { released_at: null })
  }
  emit(transaction, "payment_intent.canceled", paymentIntent.id)
  return canceled
})
