/** The currencies of ISO 4217, from the standard's list in the package `currency-codes`. */
import { data } from "currency-codes"

/** Gold, test codes and units of account, for which the standard has no minor unit. */
const WITHOUT_MINOR_UNIT = new Set("XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XTS XUA XXX".split(" "))

/** The codes in lower case, with their decimals. */
export const ISO_CURRENCIES: ReadonlyArray<{ readonly code: string; readonly decimals: number }> = data
  .filter(({ code }) => !WITHOUT_MINOR_UNIT.has(code))
  .map(({ code, digits }) => ({ code: code.toLowerCase(), decimals: digits }))

export const ISO_CODES: ReadonlyArray<string> = ISO_CURRENCIES.map(({ code }) => code)
