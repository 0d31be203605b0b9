/**
 * Advice after a failed payment, beside the card field that it is about (semantics pages.declines). It reveals no more
 * than the decline's own message, which does not say that a card was reported lost or stolen.
 */
import type { DeclineCode } from "../../domain/Cards.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { PaymentMethod } from "../../domain/PaymentMethod.ts"
import type { TextKey } from "../../html/texts/Catalogue.ts"
import type { Translation } from "../../html/Translation.ts"
import { type CardField, type FieldErrors, TOKEN_FIELD } from "./CheckoutForm.ts"
import { CHOICE, isSaved } from "./SavedCards.ts"

interface Advice {
  readonly field: CardField
  readonly text: Extract<TextKey, `advice.${string}`>
  /** Fields to type again. The page's script empties them, and keeps the others. */
  readonly again: ReadonlyArray<CardField>
}

const ANOTHER_CARD: Advice = {
  field: "card_number",
  text: "advice.another_card",
  again: ["card_number", "card_expiry", "card_cvc"]
}

/** The payer was absent, or failed to authenticate. */
export const AFTER_AUTHENTICATION: Advice = { ...ANOTHER_CARD, text: "advice.authentication" }

export const ADVICE: Readonly<Record<DeclineCode, Advice>> = {
  generic_decline: ANOTHER_CARD,
  insufficient_funds: { ...ANOTHER_CARD, text: "advice.insufficient_funds" },
  lost_card: ANOTHER_CARD,
  stolen_card: ANOTHER_CARD,
  expired_card: { field: "card_expiry", text: "advice.expired_card", again: ["card_expiry"] },
  incorrect_cvc: { field: "card_cvc", text: "advice.incorrect_cvc", again: ["card_cvc"] },
  processing_error: { field: "card_number", text: "advice.processing_error", again: [] },
  do_not_honor: { ...ANOTHER_CARD, text: "advice.do_not_honor" },
  authentication_required: AFTER_AUTHENTICATION
}

export interface Advised {
  /** The advice by field. */
  readonly errors: FieldErrors
  /** Fields to type again. */
  readonly again: ReadonlyArray<CardField>
}

/** The advice for the last attempt; none if it has not failed. */
export const adviceOf = (
  { last_payment_error: failure }: PaymentIntent,
  saved: ReadonlyArray<PaymentMethod>,
  translation: Translation,
  isFramed: boolean
): Advised => {
  if (failure === undefined) return { errors: {}, again: [] }
  if (isSaved(saved, failure.payment_method))
    return { errors: { [CHOICE]: translation.text("saved.failed") }, again: [] }
  const isDecline = failure.code === "card_declined"
  const { again, field, text } = isDecline ? ADVICE[failure.decline_code ?? "generic_decline"] : AFTER_AUTHENTICATION
  // The fields are in the processor's page, which Till cannot empty.
  if (isFramed) return { errors: { [TOKEN_FIELD]: translation.text(text) }, again: [] }
  return { errors: { [field]: translation.text(text) }, again }
}
