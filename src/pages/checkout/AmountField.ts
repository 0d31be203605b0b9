/**
 * The field in which a payer chooses an amount (semantics 9.14): its bounds, what it shows at first, and what is said
 * wherever the page shows an amount that hangs on it. `assets/amount.js` reads what is in it, here and in the browser.
 */
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import { AMOUNT_MAX } from "../../domain/Money.ts"
import type { CheckoutSessionHidden } from "../../payments/Documents.ts"
import type { Bounds, Money } from "../../html/assets/amount.js"
import { formatAmount, plainAmount, readAmountWithin } from "../../html/assets/amount.js"
import { moneyOf } from "../../html/Money.ts"

/** Amounts in minor units. */
export interface AmountField extends Money, Bounds {
  /** Place of the line that the amount is of, from 0. */
  readonly line: number
  /** The other lines come to this. */
  readonly others: number
  /** The amount that was chosen last, or is proposed; null if there is none. */
  readonly offered: number | null
}

interface Choosable {
  readonly session: CheckoutSession
  readonly hidden: CheckoutSessionHidden
}

/** The field of a session; null if its payer has no amount to choose. */
export const amountFieldOf = ({ hidden, session }: Choosable, locale: string): AmountField | null => {
  if (hidden.customAmount === null) return null
  const { line, maximum, minimum, others } = hidden.customAmount
  return {
    ...moneyOf(session.currency!, locale),
    line,
    others,
    minimum,
    maximum: Math.min(maximum ?? AMOUNT_MAX, AMOUNT_MAX - others),
    // Without a payment, nothing was chosen, and nothing is proposed.
    offered: session.payment_intent === null ? null : session.amount_total! - others
  }
}

/** What is in the field at first. */
export const offeredIn = (field: AmountField): string =>
  field.offered === null ? "" : plainAmount(field.offered, field)

/** The amount in the field, in minor units; null if it is none that the payer can choose. */
export const chosenIn = (field: AmountField, entered: string): number | null =>
  readAmountWithin(entered, field).minor ?? null

/** What is wrong with the field, in words for the payer; undefined if nothing is. */
export const complaintAbout = (field: AmountField, entered: string): string | undefined =>
  readAmountWithin(entered, field).problem

/** Says what can be entered. */
export const hintOf = (field: AmountField): string => {
  const { maximum, minimum, others } = field
  const [least, most] = [formatAmount(minimum, field), formatAmount(maximum, field)]
  const isCapped = maximum < AMOUNT_MAX - others
  if (minimum === maximum) return `Exactly ${least}.`
  if (isCapped) return minimum > 1 ? `From ${least} to ${most}.` : `Up to ${most}.`
  return minimum > 1 ? `At least ${least}.` : "You choose how much."
}

/** The price of the line, and the total, with the amount that was chosen; null if it is yet to be. */
export const pricesWith = (
  field: AmountField,
  chosen: number | null
): { readonly line: string; readonly total: string } => {
  const { others } = field
  if (chosen !== null) return { line: formatAmount(chosen, field), total: formatAmount(others + chosen, field) }
  return { line: OPEN, total: others === 0 ? OPEN : `${formatAmount(others, field)} + ${OPEN.toLowerCase()}` }
}

const OPEN = "Your amount"
