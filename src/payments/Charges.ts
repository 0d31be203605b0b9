/** Charges, and how a PaymentIntent embeds them. Values are immutable: each function gives a new one. */
import type { Charge } from "../domain/Charge.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import type { EmbeddedCharges, PaymentIntent } from "../domain/PaymentIntent.ts"
import { secondsOf } from "../domain/Time.ts"
import type { Transaction } from "../engine/Transaction.ts"
import type { PaymentSource } from "./PaymentMethods.ts"
import type { Declined } from "./Processor.ts"

/** Charges that a PaymentIntent shows (semantics H1). */
const EMBEDDED_MAX = 10

/** The charge of a new attempt; it takes on the PaymentIntent's metadata (semantics M4). */
export const pendingCharge = (
  transaction: Transaction,
  paymentIntent: PaymentIntent,
  source: PaymentSource
): Charge => ({
  id: transaction.newId(PREFIXES.charge),
  object: "charge",
  amount: paymentIntent.amount,
  currency: paymentIntent.currency,
  status: "pending",
  created: secondsOf(transaction.now),
  livemode: paymentIntent.livemode,
  amount_captured: 0,
  amount_refunded: 0,
  payment_intent: paymentIntent.id,
  payment_method: source.id,
  failure_code: null,
  failure_message: null,
  metadata: paymentIntent.metadata,
  captured: false,
  paid: false,
  refunded: false,
  released_at: null,
  customer: paymentIntent.customer,
  description: paymentIntent.description,
  merchant_id: paymentIntent.merchant_id,
  decline_code: null,
  billing_details: source.billingDetails,
  payment_method_details: { type: "card", card: source.card }
})

/** Approved, and captured at once: minor units, 0 for an authorization that is yet to be captured. */
export const approved = (charge: Charge, amountCaptured: number): Charge => ({
  ...charge,
  status: "succeeded",
  paid: true,
  captured: amountCaptured > 0,
  amount_captured: amountCaptured
})

export const failed = (charge: Charge, { declineCode, message }: Declined): Charge => ({
  ...charge,
  status: "failed",
  failure_code: declineCode,
  failure_message: message,
  decline_code: declineCode
})

/** Captured later, in full or in part; the rest of the authorization is given back (semantics I-16). */
export const captured = (charge: Charge, amount: number): Charge => ({
  ...charge,
  captured: true,
  amount_captured: amount
})

/** The authorization is given back uncaptured. */
export const released = (charge: Charge, now: number): Charge => ({ ...charge, released_at: secondsOf(now) })

/** More of the captured amount is refunded or being refunded, or less where a refund failed (semantics F7, F8). */
export const refunded = (charge: Charge, amount: number): Charge => {
  const amount_refunded = charge.amount_refunded + amount
  return { ...charge, amount_refunded, refunded: amount_refunded === charge.amount_captured }
}

export const noCharges = (paymentIntentId: string): EmbeddedCharges => ({
  object: "list",
  data: [],
  has_more: false,
  url: `/v1/charges?payment_intent=${paymentIntentId}`,
  next_cursor: null
})

/** The list with a charge in it: in its old place, or in front as the newest. */
export const embed = (charges: EmbeddedCharges, charge: Charge): EmbeddedCharges => {
  if (charges.data.some(({ id }) => id === charge.id)) {
    return { ...charges, data: charges.data.map((embedded) => (embedded.id === charge.id ? charge : embedded)) }
  }
  const data = [charge, ...charges.data].slice(0, EMBEDDED_MAX)
  const has_more = charges.data.length === EMBEDDED_MAX
  return { ...charges, data, has_more, next_cursor: has_more ? data.at(-1)!.id : null }
}
