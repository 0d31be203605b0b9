/** How a PaymentIntent begins, whoever asked for it. */
import { PREFIXES } from "../domain/Identifiers.ts"
import type { CaptureMethod, ConfirmationMethod, PaymentIntent } from "../domain/PaymentIntent.ts"
import type { Metadata } from "../domain/Metadata.ts"
import { secondsOf } from "../domain/Time.ts"
import type { Transaction } from "../engine/Transaction.ts"
import { isLive, merchantIdOf } from "./AccountIds.ts"
import * as Charges from "./Charges.ts"

/** What is agreed on at the beginning. */
export interface PaymentTerms {
  /** Minor units, at least 1. */
  readonly amount: number
  /** In lower case. */
  readonly currency: string
  readonly captureMethod: CaptureMethod
  readonly confirmationMethod: ConfirmationMethod
  readonly customer: string | null
  readonly paymentMethod: string | null
  readonly description: string | null
  readonly statementDescriptor: string | null
  /** Minor units. Only shown (semantics S19). */
  readonly applicationFeeAmount: number | null
  readonly metadata: Metadata
}

/** A PaymentIntent that nothing has happened to; it is yet to be saved. */
export const newPaymentIntent = (transaction: Transaction, terms: PaymentTerms): PaymentIntent => {
  const id = transaction.newId(PREFIXES.payment_intent)
  return {
    id,
    object: "payment_intent",
    amount: terms.amount,
    currency: terms.currency,
    status: terms.paymentMethod === null ? "requires_payment_method" : "requires_confirmation",
    created: secondsOf(transaction.now),
    livemode: isLive(transaction.account),
    amount_received: 0,
    amount_capturable: 0,
    capture_method: terms.captureMethod,
    confirmation_method: terms.confirmationMethod,
    customer: terms.customer,
    payment_method: terms.paymentMethod,
    description: terms.description,
    statement_descriptor: terms.statementDescriptor,
    application_fee_amount: terms.applicationFeeAmount,
    metadata: terms.metadata,
    merchant_id: merchantIdOf(transaction.account),
    client_secret: `${id}_secret_${transaction.newSecret(24)}`,
    next_action: null,
    latest_charge: null,
    charges: Charges.noCharges(id),
    canceled_at: null,
    cancellation_reason: null
  }
}
