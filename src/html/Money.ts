/** Formats amounts for payers, which are integers in the smallest unit (semantics money.decimals). */
import { decimalsOf } from "../domain/Money.ts"
import type { Money } from "./assets/amount.js"
import * as Amounts from "./assets/amount.js"

export const moneyOf = (currency: string, locale: string): Money => ({
  currency,
  decimals: decimalsOf(currency),
  locale
})

/** Formats an amount in minor units: `1050`, `usd`, `en` → `$10.50`. */
export const formatAmount = (amount: number, currency: string, locale: string): string =>
  Amounts.formatAmount(amount, moneyOf(currency, locale))

/** Maximum number of decimals: those of the currency plus those of a fractional minor unit. */
const DECIMALS_MAX = 16

/** Formats an amount with a fraction of a minor unit exactly, without its currency: `0.5`, `usd` → `0.005`. */
export const plainDecimal = (amount: string, currency: string): string => {
  const [whole, part = ""] = amount.split(".") as [string, string?]
  const major = Amounts.decimalAmount(Number(whole), moneyOf(currency, LOCALE_DEFAULT))
  return decimalsOf(currency) === 0 && part !== "" ? `${major}.${part}` : major + part
}

/** Formats an amount with a fraction of a minor unit in a language: `0.5`, `usd`, `en` → `$0.005`. */
export const formatDecimal = (amount: string, currency: string, locale: string): string => {
  const decimals = decimalsOf(currency)
  const exact = plainDecimal(amount, currency)
  const options = { minimumFractionDigits: decimals, maximumFractionDigits: DECIMALS_MAX }
  return new Intl.NumberFormat(locale, { style: "currency", currency, ...options }).format(
    exact as Intl.StringNumericLiteral
  )
}

const LOCALE_DEFAULT = "en"

/** The browser's preferred language, or English if amounts cannot be formatted in it. */
export const localeOf = (acceptLanguage: string | undefined): string => {
  const wanted = acceptLanguage?.split(",", 1)[0]?.split(";", 1)[0]?.trim() ?? ""
  // Longer tags are invalid or have extensions, which could select digits that the page's texts do not use.
  if (!/^[A-Za-z]{2,3}(-[A-Za-z]{4})?(-[A-Za-z]{2}|-[0-9]{3})?$/.test(wanted)) return LOCALE_DEFAULT
  return Intl.NumberFormat.supportedLocalesOf([wanted])[0] ?? LOCALE_DEFAULT
}
