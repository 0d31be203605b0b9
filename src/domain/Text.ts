/**
 * Strings of bounded length, email addresses (semantics parameters.email), and absolute web URLs (semantics
 * parameters.urls), as the WHATWG parser reads them. Lengths count Unicode code points (semantics parameters.lengths).
 */
import { Schema } from "effect"
import { hasLengthAtMost } from "./Length.ts"
import { ruleOf } from "./Rule.ts"

/** The default length limit of a text (semantics parameters.lengths). */
export const TEXT_LENGTH_MAX = 5000

/** Makes the schema of strings of at most `max` code points. */
export const text = (max: number = TEXT_LENGTH_MAX) =>
  Schema.String.check(
    Schema.makeFilter(
      (value: string) => hasLengthAtMost(value, max),
      { rule: `a string of at most ${max} characters`, toJsonSchema: () => ({ maxLength: max }) },
      // Aborts: no pattern runs on a text that is too long.
      true
    )
  )

/**
 * A parameter of an update that null and "" unset, although `schema` refuses "": a text with a format, or metadata
 * (semantics customers.update, metadata.update, parameters.empty_text). Free text accepts "" anyway, and all other
 * parameters only null.
 */
export const unsettable = <S extends Schema.Constraint>(schema: S) =>
  Schema.Union([schema, Schema.Null, Schema.Literal("")]).annotate({ rule: ruleOf(schema) })

export const EMAIL_LENGTH_MAX = 320

/** Invisible characters: control, format, unassigned, separator and default ignorable ones, and the Braille blank. */
const UNSEEN = /[\p{C}\p{Z}\s\p{Default_Ignorable_Code_Point}\u2800]/u

/** Returns whether a text can be an email address (semantics parameters.email). */
export const isEmail = (text: string): boolean => {
  const at = text.indexOf("@")
  const point = text.indexOf(".", at + 2)
  return at > 0 && text.lastIndexOf("@") === at && point !== -1 && point < text.length - 1 && !UNSEEN.test(text)
}

export const Email = text(EMAIL_LENGTH_MAX)
  .check(
    Schema.makeFilter(isEmail, {
      // The part that clients can check; it also accepts invisible characters.
      toJsonSchema: () => ({ pattern: "^[^\\s@]+@[^\\s@]+\\.[^\\s@]+$", format: "email" })
    })
  )
  .annotate({ rule: `a valid email address of at most ${EMAIL_LENGTH_MAX} characters` })

/** Returns whether an email filter has a blank: a `+` that was not encoded (semantics parameters.email). */
export const hasBlank = (email: string): boolean => /\s/u.test(email)

/** The advice for a filter with a blank. */
export const BLANK_ADVICE = "no email has a blank, and a `+` in a URL is written as `%2B`"

export const WebUrl = text()
  .check(
    Schema.makeFilter((url: string) => hasAuthority(url) && URL.canParse(url), {
      toJsonSchema: () => ({ format: "uri", minLength: 1 })
    })
  )
  .annotate({ rule: `an absolute http or https URL of at most ${TEXT_LENGTH_MAX} characters` })

/** Returns whether a text is an origin as browsers send it, without IPv6, which content security policies lack. */
export const isWebOrigin = (text: string): boolean =>
  /^https?:\/\/[a-z0-9.-]+(?::[0-9]{1,5})?$/.test(text) && URL.parse(text)?.origin === text

/** Returns whether a URL has a host as written: the parser alone accepts `https:shop.example`. */
export const hasAuthority = (url: string): boolean => /^https?:\/\/[^/\\?#]/i.test(url)
