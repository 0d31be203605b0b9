/**
 * Saved cards of a session's customer, for the payer to choose from (semantics pages.saved_cards). Anybody with the
 * session's link sees them, so they only show brand, last four digits and expiry date.
 */
import { isExpired } from "../../domain/Cards.ts"
import type { PaymentMethod } from "../../domain/PaymentMethod.ts"
import { brandName, markHtml } from "../../html/CardBrands.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import type { Translation } from "../../html/Translation.ts"

/** Maximum number of offered cards: the most recently attached ones. */
const OFFERED_MAX = 5

/** The choice of a new card. */
export const ANOTHER = ""

/** Name of the field with the chosen payment method's id, or `ANOTHER`. */
export const CHOICE = "payment_method"

/** Selects the cards to offer, in order: unexpired at `now` in milliseconds, and each card number once. */
export const offeredOf = (held: ReadonlyArray<PaymentMethod>, now: number): ReadonlyArray<PaymentMethod> => {
  const valid = held.filter(({ card }) => !isExpired(card, now))
  const numbers = valid.map(({ card }) => card.fingerprint)
  return valid.filter((_, index) => numbers.indexOf(numbers[index]!) === index).slice(0, OFFERED_MAX)
}

/** True if the choice is one of the cards. */
export const isSaved = (saved: ReadonlyArray<PaymentMethod>, choice: string | undefined): boolean =>
  saved.some(({ id }) => id === choice)

/**
 * The choice between saved cards and a new one. `described` are attributes of the first option, which gets the focus.
 */
export const savedCardsHtml = (
  saved: ReadonlyArray<PaymentMethod>,
  chosen: string,
  described: Child,
  error: string | undefined,
  translation: Translation
): Html =>
  html`<div class="field saved">
    ${saved.map(({ card, id }, index) =>
      option(id, id === chosen, index === 0 && described, [
        markHtml(card.brand),
        html`<span
          >${brandName(card.brand, translation.text("card.unknown"))}
          <bdi class="digits" dir="ltr">•••• ${card.last4}</bdi></span
        > `,
        html`<small>${translation.text("saved.expires", { date: expiryOf(card) })}</small>`
      ])
    )}
    ${option(ANOTHER, !isSaved(saved, chosen), null, html`<span>${translation.text("saved.another")}</span>`)}
    <p class="error" id="${CHOICE}-error">${error}</p>
  </div>`

/** The expiry date as on the card: `12 / 34`. */
const expiryOf = ({ exp_month, exp_year }: PaymentMethod["card"]): string =>
  `${String(exp_month).padStart(2, "0")} / ${String(exp_year).slice(-2)}`

const option = (value: string, isChosen: boolean, attributes: Child, text: Child): Html =>
  html`<label class="choice"
    ><input type="radio" name="${CHOICE}" value="${value}" ${isChosen && "checked"} ${attributes} /> ${text}</label
  >`
