/**
 * Amounts as payers read them. Nothing is computed: an amount counts the smallest unit of its currency (semantics N3).
 */
import { decimalsOf } from "../domain/Money.ts"
import type { Money } from "./assets/amount.js"
import * as Amounts from "./assets/amount.js"

/** How amounts of a currency are written in a language. */
export const moneyOf = (currency: string, locale: string): Money => ({
  currency,
  decimals: decimalsOf(currency),
  locale
})

/** An amount in minor units, as is usual in a language: `1050`, `usd`, `en` → `$10.50`. */
export const formatAmount = (amount: number, currency: string, locale: string): string =>
  Amounts.formatAmount(amount, moneyOf(currency, locale))

/** Decimals of currencies and of amounts, together. */
const DECIMALS_MAX = 16

/** An amount that need not be whole, to the last digit and without its currency: `0.5`, `usd` → `0.005`. */
export const plainDecimal = (amount: string, currency: string): string => {
  const [whole, part = ""] = amount.split(".") as [string, string?]
  const major = Amounts.decimalAmount(Number(whole), moneyOf(currency, LOCALE_DEFAULT))
  return decimalsOf(currency) === 0 && part !== "" ? `${major}.${part}` : major + part
}

/** The same as is usual in a language: `0.5`, `usd`, `en` → `$0.005`. */
export const formatDecimal = (amount: string, currency: string, locale: string): string => {
  const decimals = decimalsOf(currency)
  const exact = plainDecimal(amount, currency)
  const options = { minimumFractionDigits: decimals, maximumFractionDigits: DECIMALS_MAX }
  return new Intl.NumberFormat(locale, { style: "currency", currency, ...options }).format(
    exact as Intl.StringNumericLiteral
  )
}

const LOCALE_DEFAULT = "en"

/** The language that a browser asks for first, or English if amounts cannot be written in that. */
export const localeOf = (acceptLanguage: string | undefined): string => {
  const wanted = acceptLanguage?.split(",", 1)[0]?.split(";", 1)[0]?.trim() ?? ""
  // Longer tags are no languages, or have extensions, which could choose other digits than the page's texts have.
  if (!/^[A-Za-z]{2,3}(-[A-Za-z]{4})?(-[A-Za-z]{2}|-[0-9]{3})?$/.test(wanted)) return LOCALE_DEFAULT
  return Intl.NumberFormat.supportedLocalesOf([wanted])[0] ?? LOCALE_DEFAULT
}
