/**
 * Strings of bounded length, and those that have a form: email addresses (semantics T22), and the URLs from which
 * something is fetched (T23), absolute, as the WHATWG parser reads them. Lengths count Unicode code points (T11).
 */
import { Schema } from "effect"
import { ruleOf } from "./Rule.ts"

/** This limit holds where no other one is stated (semantics T11). */
export const TEXT_LENGTH_MAX = 5000

/** Makes the schema of strings of at most `max` code points. */
export const text = (max: number = TEXT_LENGTH_MAX) =>
  Schema.String.check(
    Schema.makeFilter(
      (value: string) => hasLengthAtMost(value, max),
      { rule: `a string of at most ${max} characters`, toJsonSchema: () => ({ maxLength: max }) },
      // No pattern is tried on a text that is too long.
      true
    )
  )

/**
 * A parameter of an update that both null and the empty string unset, though `schema` alone would refuse the latter: a
 * text with a format, or metadata (semantics C4, M2, 9.2). Free text takes the empty string anyway, and everything else
 * only null.
 */
export const unsettable = <S extends Schema.Constraint>(schema: S) =>
  Schema.Union([schema, Schema.Null, Schema.Literal("")]).annotate({ rule: ruleOf(schema) })

/** Says whether a string has at most `max` code points; code units are only an upper bound. */
export const hasLengthAtMost = (value: string, max: number): boolean => {
  if (value.length <= max) return true
  if (value.length > 2 * max) return false
  let length = 0
  for (const _ of value) length++
  return length <= max
}

export const EMAIL_LENGTH_MAX = 320

/** Controls, formats, unassigned characters, separators, other default ignorable ones, and the blank of Braille. */
const UNSEEN = /[\p{C}\p{Z}\s\p{Default_Ignorable_Code_Point}\u2800]/u

/**
 * Says whether a text can be an email address: one `@`, something before it, and behind it a point with something on
 * either side; letters of any script, and nothing that is not seen (semantics T22).
 */
export const isEmail = (text: string): boolean => {
  const at = text.indexOf("@")
  const point = text.indexOf(".", at + 2)
  return at > 0 && text.lastIndexOf("@") === at && point !== -1 && point < text.length - 1 && !UNSEEN.test(text)
}

export const Email = text(EMAIL_LENGTH_MAX)
  .check(
    Schema.makeFilter(isEmail, {
      // Clients may check this much. It also takes characters that are not seen.
      toJsonSchema: () => ({ pattern: "^[^\\s@]+@[^\\s@]+\\.[^\\s@]+$", format: "email" })
    })
  )
  .annotate({ rule: `a valid email address of at most ${EMAIL_LENGTH_MAX} characters` })

/**
 * Says whether an email that is looked for has a blank in it. No address has one (semantics T22): it stands for the `+`
 * of an address that was put into a URL as it is.
 */
export const hasBlank = (email: string): boolean => /\s/u.test(email)

/** What to do about it. */
export const BLANK_ADVICE = "no email has a blank, and a `+` in a URL is written as `%2B`"

/** Something is fetched from this URL or sent to it. */
export const WebUrl = text()
  .check(
    Schema.makeFilter((url: string) => hasAuthority(url) && URL.canParse(url), {
      toJsonSchema: () => ({ format: "uri", minLength: 1 })
    })
  )
  .annotate({ rule: `an absolute http or https URL of at most ${TEXT_LENGTH_MAX} characters` })

/**
 * Says whether browsers write an origin so, and a content security policy, whose grammar knows no IPv6, can name it.
 */
export const isWebOrigin = (text: string): boolean =>
  /^https?:\/\/[a-z0-9.-]+(?::[0-9]{1,5})?$/.test(text) && URL.parse(text)?.origin === text

/**
 * Says whether a text begins as an absolute http or https URL does. The parser alone would take `https:shop.example`
 * for one, which on a page of https is a relative address.
 */
export const hasAuthority = (url: string): boolean => /^https?:\/\/[^/\\?#]/i.test(url)
