/**
 * Non-negative decimal numbers with up to 12 digits on either side of the point, exactly: as integers scaled by 10^12.
 * No floating point is involved anywhere (semantics N4).
 */

/** Digits on either side of the point. */
const DIGITS_MAX = 12
const ONE = 10n ** BigInt(DIGITS_MAX)

/** A number times 10^12. */
export type Scaled = bigint

/** What clients may write (semantics PR13). */
export const DECIMAL_PATTERN = /^\d{1,12}(\.\d{1,12})?$/u
export const DECIMAL_RULE = "a decimal string with at most 12 digits before and 12 digits after the point"

/** The exact value of a text that matches `DECIMAL_PATTERN`. */
export const parseDecimal = (text: string): Scaled => {
  if (!DECIMAL_PATTERN.test(text)) throw new Error(`${text} is not a decimal number`)
  const [whole, fraction = ""] = text.split(".")
  return BigInt(`${whole}${fraction.padEnd(DIGITS_MAX, "0")}`)
}

/** A whole number. */
export const scaledOf = (integer: number): Scaled => BigInt(integer) * ONE

/** The shortest text of a number: no leading zeros, and no trailing ones behind the point. */
export const formatDecimal = (scaled: Scaled): string => {
  const fraction = (scaled % ONE).toString().padStart(DIGITS_MAX, "0").replace(/0+$/u, "")
  const whole = (scaled / ONE).toString()
  return fraction === "" ? whole : `${whole}.${fraction}`
}

/** The nearest whole number; the greater one of two that are equally near (semantics N4). */
export const roundHalfUp = (scaled: Scaled): bigint => (scaled + ONE / 2n) / ONE

/** Whether there is nothing behind the point. */
export const isWhole = (scaled: Scaled): boolean => scaled % ONE === 0n
