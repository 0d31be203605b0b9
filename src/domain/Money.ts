/** Amounts and currencies. An amount is an integer in the smallest unit, never scaled (semantics money.decimals). */
import { Schema } from "effect"

/** The largest amount of one payment, in minor units (semantics money.limits). */
export const AMOUNT_MAX = 999_999_999_999

/** Part of the descriptions of parameters. A maximum in the schema would imply another error code. */
export const AMOUNT_CAP = `At most ${AMOUNT_MAX}.`

/** An amount to pay or to capture. It has no cap here: exceeding it is another error (semantics money.limits). */
export const Amount = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({ rule: "a positive integer" })

/** An amount that may be zero, as in totals. */
export const AmountOrZero = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
  rule: "a non-negative integer"
})

/** A currency code in a request, in either case (semantics money.currencies). */
export const Currency = Schema.String.check(Schema.isPattern(/^[A-Za-z]{3}$/u)).annotate({
  rule: "a three-letter currency code"
})

export const normalizeCurrency = (currency: string): string => currency.toLowerCase()

/**
 * Currencies whose smallest unit is not a hundredth, by decimal digits, after ISO 4217. Two differ from it: MGA, which
 * has two digits there, and ISK, which has none there and two here (semantics money.decimals).
 */
const CURRENCIES_BY_DECIMALS: Readonly<Record<number, string>> = {
  0: "bif clp djf gnf jpy kmf krw mga pyg rwf ugx uyi vnd vuv xaf xof xpf",
  3: "bhd iqd jod kwd lyd omr tnd",
  4: "clf uyw"
}

const DECIMALS: ReadonlyMap<string, number> = new Map(
  Object.entries(CURRENCIES_BY_DECIMALS).flatMap(([decimals, currencies]) =>
    currencies.split(" ").map((currency) => [currency, Number(decimals)] as const)
  )
)

/** Returns the currencies with a number of decimal digits other than 2, which all others have. */
export const currenciesWith = (decimals: number): ReadonlyArray<string> =>
  CURRENCIES_BY_DECIMALS[decimals]?.split(" ") ?? []

/** Returns the number of decimal digits of a currency; 2 for a code that ISO 4217 does not contain. */
export const decimalsOf = (currency: string): number => DECIMALS.get(normalizeCurrency(currency)) ?? 2
