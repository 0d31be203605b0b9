/** Amounts and currencies. Amounts are integers in the smallest unit of their currency; nothing is ever scaled (N3). */
import { Schema } from "effect"

/** The largest amount of one payment, in minor units (semantics N1). */
export const AMOUNT_MAX = 999_999_999_999

/** Descriptions of parameters say this, because a schema that is capped would be violated with another error. */
export const AMOUNT_CAP = `At most ${AMOUNT_MAX}.`

/** An amount to pay or to capture. The cap is not part of it: exceeding that is an error of its own (semantics N1). */
export const Amount = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({ rule: "a positive integer" })

/** An amount that may be zero, as in totals. */
export const AmountOrZero = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
  rule: "a non-negative integer"
})

/** Clients may write a currency code in either case (semantics N2). */
export const Currency = Schema.String.check(Schema.isPattern(/^[A-Za-z]{3}$/u)).annotate({
  rule: "a three-letter currency code"
})

/** Writes a currency code as it is stored and returned. */
export const normalizeCurrency = (currency: string): string => currency.toLowerCase()

/**
 * The currencies whose smallest unit is not a hundredth, by the digits behind the decimal point: those of ISO 4217, but
 * for MGA, which ISO 4217 gives two, and ISK, which it gives none and which is therefore not here (semantics N3).
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

/** The number of digits behind the decimal point; 2 for a code that ISO 4217 does not have. */
export const decimalsOf = (currency: string): number => DECIMALS.get(normalizeCurrency(currency)) ?? 2
