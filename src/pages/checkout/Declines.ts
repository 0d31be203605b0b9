/**
 * Advice after a failed payment, beside the card field that it is about (semantics pages.declines). It reveals no more
 * than the decline's own message, which does not say that a card was reported lost or stolen.
 */
import type { DeclineCode } from "../../domain/Cards.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { PaymentMethod } from "../../domain/PaymentMethod.ts"
import type { CardField, FieldErrors } from "./CheckoutForm.ts"
import { AFTER_FAILURE, CHOICE, isSaved } from "./SavedCards.ts"

interface Advice {
  readonly field: CardField
  readonly text: string
}

const ANOTHER_CARD: Advice = { field: "card_number", text: "Try another card, or ask your bank about this one." }

/** The payer was absent, or failed to authenticate. */
export const AFTER_AUTHENTICATION: Advice = {
  field: "card_number",
  text: "Enter your card again to confirm it once more, or pay with another card."
}

export const ADVICE: Readonly<Record<DeclineCode, Advice>> = {
  generic_decline: ANOTHER_CARD,
  insufficient_funds: { field: "card_number", text: "Pay with another card, or top this one up first." },
  lost_card: ANOTHER_CARD,
  stolen_card: ANOTHER_CARD,
  expired_card: { field: "card_expiry", text: "Check the date on your card, or pay with another card." },
  incorrect_cvc: { field: "card_cvc", text: "Enter your card again, with the security code printed on it." },
  processing_error: { field: "card_number", text: "Enter your card again in a moment, or pay with another card." },
  do_not_honor: { field: "card_number", text: "Ask your bank for the reason, or pay with another card." },
  authentication_required: AFTER_AUTHENTICATION
}

/** The advice for the last attempt by field; empty if it has not failed. */
export const adviceOf = (
  { last_payment_error: failure }: PaymentIntent,
  saved: ReadonlyArray<PaymentMethod>
): FieldErrors => {
  if (failure === undefined) return {}
  if (isSaved(saved, failure.payment_method)) return { [CHOICE]: AFTER_FAILURE }
  const isDecline = failure.code === "card_declined"
  const { field, text } = isDecline ? ADVICE[failure.decline_code ?? "generic_decline"] : AFTER_AUTHENTICATION
  return { [field]: text }
}
