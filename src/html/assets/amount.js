/**
 * Amounts as payers write them and read them. What is read is exactly what was written, or nothing: what could mean two
 * amounts is refused, in words for the payer. Server and browser run this one file, so both say the same.
 *
 * No amount passes through a fraction: digits become minor units as they are (semantics N3, 9.14). Types:
 * `amount.d.ts`.
 */

/** An amount in minor units as is usual in a language: `1050`, `usd`, `en` → `$10.50`. */
export function formatAmount(minor, money) {
  return format(minor, money, { style: "currency", currency: money.currency })
}

/** The same without its currency and without groups, as a payer may well write it: `10.50`. */
export function plainAmount(minor, money) {
  return format(minor, money, { useGrouping: false })
}

/** Reads an amount: `{ minor }`, or `{ problem }` in words for the payer. */
export function readAmount(text, money) {
  const { decimals } = money
  const written = normalized(text, money)
  if (written === "") return { problem: "Enter an amount." }
  const { decimalsMarks } = charactersOf(money)
  const whole = wholeOf(written)
  const broken = brokenOf(written)
  const fits = broken !== undefined && broken.fraction.length <= decimals
  const isUsual = decimalsMarks.includes(broken?.separator)
  if (fits && (whole === undefined || isUsual)) return { minor: minorOf(broken.whole, broken.fraction, decimals) }
  if (fits) {
    const meanings = [minorOf(broken.whole, broken.fraction, decimals), minorOf(whole, "", decimals)]
    const [one, other] = meanings.map((minor) => plainAmount(minor, money))
    return { problem: `This can mean two amounts. Enter ${one} or ${other}.` }
  }
  // A point where the language has it before decimals is meant so, though the same digits could be a group elsewhere.
  if (whole !== undefined && !isUsual) return { minor: minorOf(whole, "", decimals) }
  const example = plainAmount(decimals === 0 ? 1050 : 10.5 * 10 ** decimals, money)
  if (broken === undefined) return { problem: `Enter an amount such as ${example}.` }
  if (decimals === 0) return { problem: `Enter a whole amount, such as ${example}.` }
  return { problem: `Enter at most ${decimals} decimals, as in ${example}.` }
}

/** Reads an amount that has to lie within bounds, in minor units. */
export function readAmountWithin(text, field) {
  const read = readAmount(text, field)
  if (read.problem !== undefined) return read
  if (read.minor < field.minimum) return { problem: `Enter at least ${formatAmount(field.minimum, field)}.` }
  if (read.minor > field.maximum) return { problem: `Enter at most ${formatAmount(field.maximum, field)}.` }
  return read
}

/** In digits from 0 to 9 with a point before decimals, whatever the language: `10.50`. */
export function decimalAmount(minor, { decimals }) {
  const digits = String(minor).padStart(decimals + 1, "0")
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

function format(minor, money, options) {
  const { decimals, locale } = money
  const shown = { ...options, minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  return new Intl.NumberFormat(locale, shown).format(decimalAmount(minor, money))
}

/** Digits that are too many for any amount make one that is above every bound. */
function minorOf(whole, fraction, decimals) {
  return Number(whole + fraction.padEnd(decimals, "0"))
}

/** The one never stands between groups, and the other never before decimals. */
const ARABIC_DECIMAL = "\u066b"
const ARABIC_GROUP = "\u066c"

/** No amount is this long, in characters: to normalize a text can take the square of its length. */
const LENGTH_MAX = 1000
const NO_AMOUNT = "?"

/** Marks that only say in which direction a text runs. */
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

const unified = (text) => text.normalize("NFKC").replace(DIRECTIONS, "").replace(/\s/g, " ").trim()

/**
 * The digits as 0 to 9, with what separates them, and without the currency. An apostrophe has one form; what a language
 * alone has between groups or before decimals is written as in Arabic, which has no other use for its own.
 */
function normalized(text, money) {
  if (text.length > LENGTH_MAX) return NO_AMOUNT
  const { decimalsMarks, digits, groupMarks } = charactersOf(money)
  return [...withoutCurrency(unified(text), money)]
    .map((character) => {
      const digit = digits.indexOf(character)
      if (digit !== -1) return String(digit)
      if (character === "\u2019") return "'"
      if (/[0-9.,' ]/.test(character)) return character
      if (decimalsMarks.includes(character)) return ARABIC_DECIMAL
      return groupMarks.includes(character) ? ARABIC_GROUP : character
    })
    .join("")
}

/** A currency may stand before or behind its amount, as its code or as its sign. */
function withoutCurrency(text, { currency, locale }) {
  const names = currencyNamesOf(currency, locale)
  const first = longest(names.filter((name) => text.toLowerCase().startsWith(name)))
  const rest = text.slice(first.length).trim()
  const last = longest(names.filter((name) => rest.toLowerCase().endsWith(name)))
  return rest.slice(0, rest.length - last.length).trim()
}

/** One name may begin with another. */
function longest(names) {
  return names.reduce((best, name) => (name.length > best.length ? name : best), "")
}

function currencyNamesOf(currency, locale) {
  const names = [locale, "en", "en-001"].flatMap((language) =>
    ["symbol", "narrowSymbol", "code"].map((currencyDisplay) => {
      const parts = new Intl.NumberFormat(language, { style: "currency", currency, currencyDisplay }).formatToParts(0)
      return unified(parts.find(({ type }) => type === "currency").value).toLowerCase()
    })
  )
  return [...names, ...names.map((name) => name.replace(/(^|[^.])\.+$/, "$1"))]
}

/** What a language writes before decimals and between groups, which in a price may be others, and its digits. */
function charactersOf({ currency, locale }) {
  const price = { style: "currency", currency, minimumFractionDigits: 1 }
  const parts = [{}, price].flatMap((options) => new Intl.NumberFormat(locale, options).formatToParts(1_234_567.8))
  const own = (wanted) => parts.filter(({ type }) => type === wanted).map(({ value }) => unified(value))
  const digits = Array.from("0123456789", (digit) => new Intl.NumberFormat(locale).format(digit))
  return { decimalsMarks: own("decimal"), groupMarks: own("group"), digits }
}

/** `1234`, `1,234,567` or, as in India, `12,34,567`: the digits of a whole number; undefined for anything else. */
function wholeOf(written) {
  if (/^[0-9]+$/.test(written)) return written
  const separator = /[^0-9]/.exec(written)?.[0]
  if (separator === undefined || separator === ARABIC_DECIMAL) return undefined
  const groups = written.split(separator)
  const [first, last] = [groups[0], groups.at(-1)]
  const isGrouped =
    /^[1-9][0-9]{0,2}$/.test(first) &&
    /^[0-9]{3}$/.test(last) &&
    (groups.slice(1).every((digits) => /^[0-9]{3}$/.test(digits)) ||
      (first.length < 3 && groups.slice(1, -1).every((digits) => /^[0-9]{2}$/.test(digits))))
  return isGrouped ? groups.join("") : undefined
}

/** `1234.5`, `1,234.50` or `.5`: a whole number with a fraction; undefined for anything else. */
function brokenOf(written) {
  const found = /^([^]*)([.,\u066b])([0-9]*)$/.exec(written)
  if (found === null) return undefined
  const [, before, separator, fraction] = found
  if (before.includes(separator) || (before === "" && fraction === "")) return undefined
  const whole = before === "" ? "0" : wholeOf(before)
  return whole === undefined ? undefined : { whole, fraction, separator }
}
