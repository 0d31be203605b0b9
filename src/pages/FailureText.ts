/** Why a payment has not gone through, in words for the payer. */
import type { PaymentIntent } from "../domain/PaymentIntent.ts"

/** The API's messages are for payers as well, but for the one that speaks about them (semantics §3). */
export const failureTextOf = ({ last_payment_error: failure }: PaymentIntent): string | null => {
  if (failure == null) return null
  if (failure.code === "payment_intent_authentication_failure") return "Your bank could not confirm that it was you."
  return failure.message
}
