/**
 * Card details as payers and browsers enter them. The server reads a field by this file, and the page's script shapes
 * it: it reads the same then, whatever is typed behind it (semantics 9.85). Types: `card.d.ts`.
 */

/** The digits of any script as 0 to 9, without what is not seen, which comes along with copied texts. */
function plain(text) {
  return text.replace(/\p{Cf}/gu, "").replace(/[^0-9\P{Nd}]/gu, asciiDigit)
}

/** A script's ten digits are neighbours, and several such tens may be. */
function asciiDigit(digit) {
  let before = 0
  while (/\p{Nd}/u.test(String.fromCodePoint(digit.codePointAt(0) - before - 1))) before++
  return String(before % 10)
}

/** The digits of a number, with white space, dots and dashes between; undefined if it has anything else in it. */
export function readNumber(text) {
  const number = plain(text).replace(/[\s.．\p{Pd}]/gu, "")
  return /^\d*$/.test(number) ? number : undefined
}

/** The digits of a security code; undefined if it has anything else in it. */
export function readCode(text) {
  const code = plain(text).replace(/\s/g, "")
  return /^\d*$/.test(code) ? code : undefined
}

/** With one slash for whatever stands between month and year. */
function slashed(text) {
  return plain(text)
    .trimStart()
    .replace(/[\s.．/／\p{Pd}]+/gu, "/")
}

/** `12 / 34`, `1/34`, `1234`, `534`, `12/2034`, `122034`, `2034-12`, `203412`; undefined if it is no date. */
export function readExpiry(text) {
  const parts = slashed(text).split("/").filter(Boolean)
  const [first, second] = parts.length === 1 ? partsOf(parts[0]) : parts
  if (parts.length > 2 || second === undefined) return undefined
  const [month, year] = /^20\d\d$/.test(first) ? [second, first] : [first, second]
  if (!/^\d\d?$/.test(month) || !/^(20)?\d\d$/.test(year)) return undefined
  return month >= 1 && month <= 12 ? { month: Number(month), year: 2000 + (year % 100) } : undefined
}

/** With nothing between, month and year are told apart by what they can be. */
function partsOf(digits) {
  const found =
    /^(20\d\d)(\d\d)$/.exec(digits) ??
    /^(0[1-9]|1[0-2])(\d\d|20\d\d)$/.exec(digits) ??
    /^([2-9])(\d\d|20\d\d)$/.exec(digits)
  return found?.slice(1) ?? []
}

/** A number in groups of these lengths. Digits that are too many stay, for the payer to see. */
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

/** `12` → `12 / `, `1/34` → `01 / 34`, `534` → `05 / 34`, `2034-12` → `12 / 34`. */
export function shapeExpiry(text) {
  const typed = slashed(text)
  // Behind the 20 of 2020, the 34 of 2034 may follow.
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
