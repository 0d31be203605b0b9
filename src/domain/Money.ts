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
