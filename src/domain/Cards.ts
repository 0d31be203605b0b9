/** Cards: arithmetic of numbers and expiry dates, card numbers within texts, and the reasons for declines. */
import { Schema } from "effect"

/** Returns whether a text is 12 to 19 digits with a correct check digit (semantics payment_methods.create). */
export const isCardNumber = (number: string): boolean => /^[0-9]{12,19}$/u.test(number) && luhnChecksum(number) === 0

/** Computes the Luhn checksum modulo 10, which is 0 for a valid number. */
export const luhnChecksum = (digits: string): number => {
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - 48
    const weighted = i % 2 === 0 ? digit : digit * 2
    sum += weighted > 9 ? weighted - 9 : weighted
  }
  return sum % 10
}

/** Ranges of a number's first four digits, by brand; the first match counts. */
const BRANDS: ReadonlyArray<readonly [from: number, to: number, brand: string]> = [
  [3400, 3499, "amex"],
  [3700, 3799, "amex"],
  [3000, 3059, "diners"],
  [3600, 3699, "diners"],
  [3800, 3999, "diners"],
  [3528, 3589, "jcb"],
  [4000, 4999, "visa"],
  [5100, 5599, "mastercard"],
  [2221, 2720, "mastercard"],
  [6011, 6011, "discover"],
  [6440, 6599, "discover"],
  [6200, 6299, "unionpay"]
]

export const brandOf = (number: string): string => {
  const start = Number(number.slice(0, 4))
  return BRANDS.find(([from, to]) => start >= from && start <= to)?.[2] ?? "unknown"
}

/** Takes a card's number or code from V8, which keeps the text of the latest match of a regular expression. */
export const forgetMatch = (): void => void /\S/u.test("-")

/** Returns the length of the security code for a card number (semantics payment_methods.create). */
export const cvcLengthOf = (number: string): number => (brandOf(number) === "amex" ? 4 : 3)

/** Returns whether a card has expired at a time in milliseconds. Cards expire with the end of their month, in UTC. */
export const isExpired = (card: { readonly exp_month: number; readonly exp_year: number }, now: number): boolean => {
  const date = new Date(now)
  const months = date.getUTCFullYear() * 12 + date.getUTCMonth()
  return card.exp_year * 12 + (card.exp_month - 1) < months
}

/** At least 12 digits that read as one number, in any grouping. */
const DIGITS = /[0-9](?:[^0-9A-Za-z]{0,5}[0-9]){11,}/gu

/** Replaces card numbers by asterisks, in texts from outside that other people may read. */
export const withoutCardNumbers = (text: string): string => {
  if (isPlain(text)) return text
  const reading = readingOf(text)
  const shown = reading.replaceAll(DIGITS, (digits) => (holdsCardNumber(digits) ? "****" : digits))
  return shown === reading ? text : shown
}

export const hasCardNumber = (text: string): boolean => withoutCardNumbers(text) !== text

/** Returns whether a text certainly has no card number. Cheap, and true for most texts. */
export const isPlain = (text: string): boolean => {
  let digits = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < SPACE || code > TILDE || code === PERCENT_SIGN) return false
    if (code >= DIGIT_ZERO && code <= DIGIT_NINE) {
      if (++digits === LENGTH_MIN) return false
    } else if (isLetter(code)) digits = 0
  }
  return true
}
const [SPACE, PERCENT_SIGN, DIGIT_ZERO, DIGIT_NINE, TILDE] = [0x20, 0x25, 0x30, 0x39, 0x7e]

/** Tests for an ASCII letter; 0x20 is the difference between capitals and small letters. */
const isLetter = (code: number): boolean => (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a

const LENGTH_MIN = 12

const PERCENT = /(?:%[0-9a-f]{2})+/giu
/** How many times a text is percent-decoded; more encodings than this are not an accident. */
const ENCODED_TIMES_MAX = 4

/** Normalizes a text for the search: percent-decoded, and with ASCII digits and letters for their other forms. */
export const readingOf = (text: string): string => {
  let reading = text
  for (let times = 0; times < ENCODED_TIMES_MAX && reading.includes("%"); times++) {
    reading = reading.replaceAll(PERCENT, decoded)
  }
  return isAscii(reading) ? reading : reading.replaceAll(NOT_ASCII, plainForm).replaceAll(/[^0-9\P{Nd}]/gu, asciiDigit)
}

// oxlint-disable-next-line no-control-regex -- these are the characters of ASCII
const NOT_ASCII = /[^\0-\x7f]/gu

/** Normalizes one character alone: normalizing a long run of combining marks takes quadratic time. */
const plainForm = (character: string): string => character.normalize("NFKC")

/** Decodes percent-encoded bytes; of bytes that are not UTF-8, only the ASCII ones. */
const decoded = (bytes: string): string => {
  try {
    return decodeURIComponent(bytes)
  } catch {
    return bytes.replaceAll(/%([0-7][0-9a-f])/giu, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
}

// oxlint-disable-next-line no-control-regex -- these are the characters of ASCII
const isAscii = (text: string): boolean => /^[\0-\x7f]*$/u.test(text)

/** Returns the ASCII digit of a decimal digit. A script's ten digits are adjacent; several such tens can follow. */
const asciiDigit = (digit: string): string => {
  const place = digit.codePointAt(0)!
  let before = 0
  while (/^\p{Nd}$/u.test(String.fromCodePoint(place - before - 1))) before++
  return String(before % 10)
}

/**
 * Returns whether grouped digits contain a card number: one of a known brand at any position, or one of whole groups
 * with the same separator. Two dates are no card number.
 */
const holdsCardNumber = (grouped: string): boolean => {
  if (grouped.length > GROUPED_LENGTH_MAX) return true
  const groups = grouped.split(/[^0-9]+/u)
  const between = grouped.split(/[0-9]+/u).slice(1, -1)
  for (let first = 0; first < groups.length; first++) {
    let number = ""
    for (let last = first; last < groups.length && number.length < LENGTH_MAX; last++) {
      if (last > first && between[last - 1] !== between[first]) break
      number += groups[last]!
      if (isCardNumber(number)) return true
    }
  }
  const digits = groups.join("")
  for (let start = 0; start + 14 <= digits.length; start++) {
    if (brandOf(digits.slice(start, start + 4)) === "unknown") continue
    if (LENGTHS.some((length) => isCardNumber(digits.slice(start, start + length)))) return true
  }
  return false
}

/** The longest group of digits that is searched, for speed; a longer one counts as a card number. */
const GROUPED_LENGTH_MAX = 100

const LENGTH_MAX = 19

/** The lengths of the known brands' numbers. */
const LENGTHS = [14, 15, 16]

/** The reasons for declines, with the payer's message (spec: Decline codes; semantics test_cards.declines). */
export const DECLINE_MESSAGES = {
  generic_decline: "Your card was declined.",
  insufficient_funds: "Your card has insufficient funds.",
  lost_card: "Your card was declined.",
  stolen_card: "Your card was declined.",
  expired_card: "Your card has expired.",
  incorrect_cvc: "Your card's security code is incorrect.",
  processing_error: "An error occurred while processing your card. Try again.",
  do_not_honor: "Your card was declined.",
  authentication_required: "Your card was declined. This payment requires authentication."
} as const

export type DeclineCode = keyof typeof DECLINE_MESSAGES

export const DeclineCode = Schema.Literals(Object.keys(DECLINE_MESSAGES) as ReadonlyArray<DeclineCode>)
