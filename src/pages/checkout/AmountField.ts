/**
 * The field in which a payer chooses an amount (semantics pages.amount): its bounds, its first value, and the prices
 * that depend on it. `assets/amount.js` reads the field here and in the browser.
 */
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import { AMOUNT_MAX } from "../../domain/Money.ts"
import type { CheckoutSessionHidden } from "../../payments/shared/Documents.ts"
import { type Bounds, formatAmount, type Money, plainAmount, readAmountWithin } from "../../html/assets/amount.js"
import { moneyOf, problemText } from "../../html/Money.ts"
import type { Translation } from "../../html/Translation.ts"

/** Amounts in minor units. */
export interface AmountField extends Money, Bounds {
  /** Index of the line that the amount belongs to. */
  readonly line: number
  /** Sum of the other lines. */
  readonly others: number
  /** The amount chosen last, or the suggested one; null if there is none. */
  readonly offered: number | null
  readonly translation: Translation
}

interface Choosable {
  readonly session: CheckoutSession
  readonly hidden: CheckoutSessionHidden
}

/** The session's amount field; null if the payer does not choose an amount. */
export const amountFieldOf = ({ hidden, session }: Choosable, translation: Translation): AmountField | null => {
  if (hidden.customAmount === null) return null
  const { line, maximum, minimum, others } = hidden.customAmount
  return {
    ...moneyOf(session.currency!, translation.moneyLocale),
    translation,
    line,
    others,
    minimum,
    maximum: Math.min(maximum ?? AMOUNT_MAX, AMOUNT_MAX - others),
    // Without a payment, no amount was chosen or suggested.
    offered: session.payment_intent === null ? null : session.amount_total! - others
  }
}

/** The field's first value. */
export const offeredIn = (field: AmountField): string =>
  field.offered === null ? "" : plainAmount(field.offered, field)

/** The entered amount in minor units; null if it is invalid or out of bounds. */
export const chosenIn = (field: AmountField, entered: string): number | null =>
  readAmountWithin(entered, field).minor ?? null

/** The error about the entered amount; undefined if it is valid. */
export const complaintAbout = (field: AmountField, entered: string): string | undefined => {
  const read = readAmountWithin(entered, field)
  return read.problem === undefined ? undefined : problemText(read, field.translation)
}

/** The hint about possible amounts. */
export const hintOf = (field: AmountField): string => {
  const { maximum, minimum, others, translation } = field
  const [least, most] = [formatAmount(minimum, field), formatAmount(maximum, field)]
  const isCapped = maximum < AMOUNT_MAX - others
  if (minimum === maximum) return translation.text("amount.exactly", { amount: least })
  if (isCapped && minimum > 1) return translation.text("amount.between", { least, most })
  if (isCapped) return translation.text("amount.up_to", { amount: most })
  return minimum > 1 ? translation.text("amount.at_least", { amount: least }) : translation.text("amount.any")
}

/** Price of the line and total with the chosen amount, or texts in their place while it is null. */
export const pricesWith = (
  field: AmountField,
  chosen: number | null
): { readonly line: string; readonly total: string } => {
  const { others, translation } = field
  if (chosen !== null) return { line: formatAmount(chosen, field), total: formatAmount(others + chosen, field) }
  const open = translation.text("amount.open")
  const amount = formatAmount(others, field)
  return { line: open, total: others === 0 ? open : translation.text("amount.open_total", { amount }) }
}
