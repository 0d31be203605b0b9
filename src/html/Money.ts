/** Formats amounts for payers, which are integers in the smallest unit (semantics money.decimals). */
import { decimalsOf } from "../domain/Money.ts"
import type { Money, Problem, ProblemKind } from "./assets/amount.js"
import * as Amounts from "./assets/amount.js"
import { ENGLISH, type Translation } from "./Translation.ts"

export const moneyOf = (currency: string, locale: string): Money => ({
  currency,
  decimals: decimalsOf(currency),
  locale
})

/** Formats an amount in minor units: `1050`, `usd`, `en` → `$10.50`. */
export const formatAmount = (amount: number, currency: string, locale: string): string =>
  Amounts.formatAmount(amount, moneyOf(currency, locale))

/** The texts about amounts that cannot be accepted, with names of values in braces. */
export const problemTextsOf = (translation: Translation): Readonly<Record<ProblemKind, string>> => ({
  missing: translation.text("amount.missing"),
  ambiguous: translation.text("amount.ambiguous", { one: "{one}", other: "{other}" }),
  unreadable: translation.text("amount.unreadable", { example: "{example}" }),
  fraction: translation.text("amount.fraction", { example: "{example}" }),
  decimals: translation.text("amount.decimals", { count: "{count}", example: "{example}" }),
  too_small: translation.text("amount.too_small", { amount: "{amount}" }),
  too_large: translation.text("amount.too_large", { amount: "{amount}" })
})

/** The text about an amount that cannot be accepted. */
export const problemText = (problem: Problem, translation = ENGLISH): string =>
  Amounts.problemText(problem, problemTextsOf(translation))

/** Maximum number of decimals: those of the currency plus those of a fractional minor unit. */
const DECIMALS_MAX = 16

/** Formats an amount with a fraction of a minor unit exactly, without its currency: `0.5`, `usd` → `0.005`. */
export const plainDecimal = (amount: string, currency: string): string => {
  const [whole, part = ""] = amount.split(".") as [string, string?]
  const major = Amounts.decimalAmount(Number(whole), moneyOf(currency, "en"))
  return decimalsOf(currency) === 0 && part !== "" ? `${major}.${part}` : major + part
}

/** Formats an amount with a fraction of a minor unit in a language: `0.5`, `usd`, `en` → `$0.005`. */
export const formatDecimal = (amount: string, currency: string, locale: string): string => {
  const decimals = decimalsOf(currency)
  const exact = plainDecimal(amount, currency)
  const options = { minimumFractionDigits: decimals, maximumFractionDigits: DECIMALS_MAX }
  const format = new Intl.NumberFormat(locale, { style: "currency", currency, ...options })
  return Amounts.withSignBehindLetters(format.format(exact as Intl.StringNumericLiteral))
}
