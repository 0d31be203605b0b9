/**
 * Card details as payers and browsers enter them. The server reads fields by this file and the page's script formats
 * them by it, so a formatted value reads the same (semantics pages.card_fields). Types: `card.d.ts`.
 */

/** Converts digits of any script to 0 to 9, and removes invisible characters of copied text. */
function plain(text) {
  return text.replace(/\p{Cf}/gu, "").replace(/[^0-9\P{Nd}]/gu, asciiDigit)
}

/** The ten digits of a script are consecutive, and several scripts may follow one another. */
function asciiDigit(digit) {
  let before = 0
  while (/\p{Nd}/u.test(String.fromCodePoint(digit.codePointAt(0) - before - 1))) before++
  return String(before % 10)
}

/** Digits of a card number, with spaces, dots and dashes in between; undefined if it contains anything else. */
export function readNumber(text) {
  const number = plain(text).replace(/[\s.．\p{Pd}]/gu, "")
  return /^\d*$/.test(number) ? number : undefined
}

/** Digits of a security code; undefined if it contains anything else. */
export function readCode(text) {
  const code = plain(text).replace(/\s/g, "")
  return /^\d*$/.test(code) ? code : undefined
}

/** Replaces any separators between month and year by one slash. */
function slashed(text) {
  return plain(text)
    .trimStart()
    .replace(/[\s.．/／\p{Pd}]+/gu, "/")
}

/**
 * Reads an expiry date: `12 / 34`, `1/34`, `1234`, `534`, `12/2034`, `122034`, `2034-12`, `203412`; undefined if it is
 * not a date.
 */
export function readExpiry(text) {
  const parts = slashed(text).split("/").filter(Boolean)
  const [first, second] = parts.length === 1 ? partsOf(parts[0]) : parts
  if (parts.length > 2 || second === undefined) return undefined
  const [month, year] = /^20\d\d$/.test(first) ? [second, first] : [first, second]
  if (!/^\d\d?$/.test(month) || !/^(20)?\d\d$/.test(year)) return undefined
  return month >= 1 && month <= 12 ? { month: Number(month), year: 2000 + (year % 100) } : undefined
}

/** Splits digits without a separator where only one reading is possible. */
function partsOf(digits) {
  const found =
    /^(20\d\d)(\d\d)$/.exec(digits) ??
    /^(0[1-9]|1[0-2])(\d\d|20\d\d)$/.exec(digits) ??
    /^([2-9])(\d\d|20\d\d)$/.exec(digits)
  return found?.slice(1) ?? []
}

/** Groups the digits of a card number. Excess digits stay visible. */
export function shapeNumber(text, groups) {
  const number = readNumber(text)
  if (!number) return text
  const parts = []
  let at = 0
  for (const length of groups) {
    if (at < number.length) parts.push(number.slice(at, at + length))
    at += length
  }
  return parts.join(" ") + number.slice(at)
}

export function shapeCode(text) {
  return readCode(text) || text
}

/** Formats an expiry date: `12` → `12 / `, `1/34` → `01 / 34`, `534` → `05 / 34`, `2034-12` → `12 / 34`. */
export function shapeExpiry(text) {
  const typed = slashed(text)
  // 2020 is not shortened: more digits could continue its `20` to 2034.
  const [, year, last] = /^20(?!20)(\d\d)\/?(0[1-9]|1[0-2])$/.exec(typed) ?? []
  if (last !== undefined) return `${last} / ${year}`
  const [, month, rest] =
    /^(0[1-9]|1[0-2])\/?(\d*)$/.exec(typed) ??
    /^(\d)\/(\d*)$/.exec(typed) ??
    /^([3-9]|2(?=[1-9]))(\d*)$/.exec(typed) ??
    []
  if (month === undefined) return text
  return `${month.replace(/^[1-9]$/, "0$&")} / ${rest.replace(/^20(?!20)(\d\d)$/, "$1")}`
}
