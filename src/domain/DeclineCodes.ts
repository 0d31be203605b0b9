/** Why an issuer declines, and what the payer is told (spec: Decline codes; semantics §5). */
import { Schema } from "effect"

export const DECLINE_MESSAGES = {
  generic_decline: "Your card was declined.",
  insufficient_funds: "Your card has insufficient funds.",
  lost_card: "Your card was declined.",
  stolen_card: "Your card was declined.",
  expired_card: "Your card has expired.",
  incorrect_cvc: "Your card's security code is incorrect.",
  processing_error: "An error occurred while processing your card. Try again.",
  do_not_honor: "Your card was declined."
} as const

export type DeclineCode = keyof typeof DECLINE_MESSAGES

export const DeclineCode = Schema.Literals(Object.keys(DECLINE_MESSAGES) as ReadonlyArray<DeclineCode>)
