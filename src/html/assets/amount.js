/**
 * Reads and formats amounts in the payer's language. An amount is read exactly, or refused with a problem if it could
 * mean two amounts. Server and browser run this file, so both report the same.
 *
 * No amount becomes a floating-point fraction: digits are converted to minor units as text (semantics money.decimals,
 * pages.amount). Types: `amount.d.ts`.
 */

/** Formats an amount in minor units: `1050`, `usd`, `en` → `$10.50`. */
export function formatAmount(minor, money) {
  return format(minor, money, { style: "currency", currency: money.currency })
}

/** Formats an amount without currency and grouping, as a payer might type it: `10.50`. */
export function plainAmount(minor, money) {
  return format(minor, money, { useGrouping: false })
}

/** Reads an amount: `{ minor }`, or `{ problem, values }`: the kind of problem, and the values for a text about it. */
export function readAmount(text, money) {
  const { decimals } = money
  const written = normalized(text, money)
  if (written === "") return { problem: "missing", values: {} }
  const { decimalsMarks } = charactersOf(money)
  const whole = wholeOf(written)
  const broken = brokenOf(written)
  const fits = broken !== undefined && broken.fraction.length <= decimals
  const isUsual = decimalsMarks.includes(broken?.separator)
  if (fits && (whole === undefined || isUsual)) return { minor: minorOf(broken.whole, broken.fraction, decimals) }
  if (fits) {
    const meanings = [minorOf(broken.whole, broken.fraction, decimals), minorOf(whole, "", decimals)]
    const [one, other] = meanings.map((minor) => plainAmount(minor, money))
    return { problem: "ambiguous", values: { one, other } }
  }
  // The language's own decimal point counts as such, although the digits could form a group in another language.
  if (whole !== undefined && !isUsual) return { minor: minorOf(whole, "", decimals) }
  const example = plainAmount(decimals === 0 ? 1050 : 10.5 * 10 ** decimals, money)
  const values = { count: decimals, example }
  if (broken === undefined) return { problem: "unreadable", values }
  return { problem: decimals === 0 ? "fraction" : "decimals", values }
}

/** Reads an amount within bounds in minor units. */
export function readAmountWithin(text, field) {
  const read = readAmount(text, field)
  if (read.problem !== undefined) return read
  const outside = (problem, bound) => ({ problem, values: { amount: formatAmount(bound, field) } })
  if (read.minor < field.minimum) return outside("too_small", field.minimum)
  return read.minor > field.maximum ? outside("too_large", field.maximum) : read
}

/** Returns the text about a problem from the texts by the kinds of problems, with values in braces. */
export function problemText({ problem, values }, texts) {
  return texts[problem].replace(/\{(\w+)\}/g, (_, name) => values[name])
}

/** Formats with digits 0 to 9 and a decimal point in any language: `10.50`. */
export function decimalAmount(minor, { decimals }) {
  const digits = String(minor).padStart(decimals + 1, "0")
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

function format(minor, money, options) {
  const { decimals, locale } = money
  const shown = { ...options, minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  return withSignBehindLetters(new Intl.NumberFormat(locale, shown).format(decimalAmount(minor, money)))
}

/** Keeps the sign of `US$` behind its letters in a text from right to left, which has a mark of that direction. */
export function withSignBehindLetters(text) {
  return text.includes("\u200f") ? text.replace(/(?<=[A-Z])\p{Sc}/u, "$&\u200e") : text
}

/** Too many digits result in a number above every bound. */
function minorOf(whole, fraction, decimals) {
  return Number(whole + fraction.padEnd(decimals, "0"))
}

/** Arabic separators: this one only stands before decimals, the other only between groups. */
const ARABIC_DECIMAL = "\u066b"
const ARABIC_GROUP = "\u066c"

/** Maximum length of an amount in characters: normalizing a text can take quadratic time. */
const LENGTH_MAX = 1000
const NO_AMOUNT = "?"

/** Marks of text direction. */
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

const unified = (text) => text.normalize("NFKC").replace(DIRECTIONS, "").replace(/\s/g, " ").trim()

/**
 * Digits as 0 to 9 with their separators, without the currency. Apostrophes get one form. Separators that only this
 * language uses are replaced by the Arabic ones, which have one meaning each.
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

/** Removes the currency's code or sign before or after the amount. */
function withoutCurrency(text, { currency, locale }) {
  const names = currencyNamesOf(currency, locale)
  const first = longest(names.filter((name) => text.toLowerCase().startsWith(name)))
  const rest = text.slice(first.length).trim()
  const last = longest(names.filter((name) => rest.toLowerCase().endsWith(name)))
  return rest.slice(0, rest.length - last.length).trim()
}

/** The longest match: one name may start with another. */
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

/** The language's decimal and group separators, including those of prices, and its digits. */
function charactersOf({ currency, locale }) {
  const price = { style: "currency", currency, minimumFractionDigits: 1 }
  const parts = [{}, price].flatMap((options) => new Intl.NumberFormat(locale, options).formatToParts(1_234_567.8))
  const own = (wanted) => parts.filter(({ type }) => type === wanted).map(({ value }) => unified(value))
  const digits = Array.from("0123456789", (digit) => new Intl.NumberFormat(locale).format(digit))
  return { decimalsMarks: own("decimal"), groupMarks: own("group"), digits }
}

/** Digits of a whole number: `1234`, `1,234,567` or Indian grouping `12,34,567`; undefined for anything else. */
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

/** A whole number with a fraction: `1234.5`, `1,234.50` or `.5`; undefined for anything else. */
function brokenOf(written) {
  const found = /^([^]*)([.,\u066b])([0-9]*)$/.exec(written)
  if (found === null) return undefined
  const [, before, separator, fraction] = found
  if (before.includes(separator) || (before === "" && fraction === "")) return undefined
  const whole = before === "" ? "0" : wholeOf(before)
  return whole === undefined ? undefined : { whole, fraction, separator }
}
