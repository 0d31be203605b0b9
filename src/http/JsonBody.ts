/**
 * Parses the JSON of a request's body (semantics requests.body, requests.json, parameters.text).
 *
 * The text must be strict: valid UTF-8, no byte-order mark, and no deeper nesting than later recursions can handle.
 * These checks come first and take time in proportion to the text's length. `__proto__` is an ordinary own property,
 * and the last of duplicate keys wins.
 */
import { isUtf8 } from "node:buffer"
import { Exit } from "effect"
import { parseJson, syntaxErrorIn } from "../json/JsonParse.ts"
import { InvalidJson, UnsupportedMediaType } from "../server/HttpErrors.ts"

/** The most levels of nested objects and arrays. */
export const DEPTH_MAX = 64

const BYTE_ORDER_MARK = Buffer.from("\ufeff")
/** The character that decoding substitutes for bytes that are not UTF-8. */
const REPLACEMENT = Buffer.from("\ufffd")

const tooDeep = Exit.fail(new InvalidJson({ problem: "depth" }))
const byteOrderMark = Exit.fail(new InvalidJson({ problem: "byte_order_mark" }))
const unsupportedMediaType = Exit.fail(new UnsupportedMediaType())
const emptyObject = Exit.succeed({ value: {}, escapes: false })

export interface Parsed {
  readonly value: unknown
  /** True if the text holds `\u` escapes. Only these can put a NUL or half a surrogate pair into a string. */
  readonly escapes: boolean
}

/** Parses a body by its content type. An empty body is `{}`, whatever its content type. */
export const parseBody = (
  body: Buffer,
  contentType: string | undefined
): Exit.Exit<Parsed, InvalidJson | UnsupportedMediaType> => {
  if (body.length === 0) return emptyObject
  if (contentType === undefined || !isJson(contentType)) return unsupportedMediaType
  const text = body.toString("utf8")
  if (!isUtf8(body)) return Exit.fail(new InvalidJson({ problem: "encoding", byte: firstByteOfNoText(body, text) }))
  if (isTooDeep(text)) return tooDeep
  try {
    return Exit.succeed({ value: parseJson(text), escapes: text.includes("\\u") })
  } catch {
    if (body.indexOf(BYTE_ORDER_MARK) === 0) return byteOrderMark
    return Exit.fail(
      new InvalidJson({ problem: "syntax", byte: Buffer.byteLength(text.slice(0, syntaxErrorIn(text))) })
    )
  }
}

/**
 * Finds the first byte that belongs to no character, in a body that is not UTF-8. Decoding replaces such bytes by
 * U+FFFD, which is also a valid character of three bytes.
 */
const firstByteOfNoText = (body: Buffer, decoded: string): number => {
  let byte = 0
  for (let from = 0; ; byte += REPLACEMENT.length) {
    const at = decoded.indexOf("\ufffd", from)
    byte += Buffer.byteLength(decoded.slice(from, at))
    if (!body.subarray(byte, byte + REPLACEMENT.length).equals(REPLACEMENT)) return byte
    from = at + 1
  }
}

const isJson = (contentType: string): boolean =>
  contentType === "application/json" || /^application\/json[ \t]*(;|$)/i.test(contentType)

/** True if brackets outside of strings are nested beyond the limit. Scans only texts long enough for that. */
const isTooDeep = (text: string): boolean => {
  if (text.length <= 2 * DEPTH_MAX) return false
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) i = endOfString(text, i)
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > DEPTH_MAX) return true
    } else if (code === 0x7d || code === 0x5d) depth--
  }
  return false
}

/** Finds the quote that closes the string opened at `start`; returns the end of the text if there is none. */
const endOfString = (text: string, start: number): number => {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

/** Replaces strings that cannot be stored; no schema accepts it. */
export const UNSTORABLE: unique symbol = Symbol("unstorable text")

/** Replaces every string that cannot be stored by `UNSTORABLE`, and the value of every member whose name cannot. */
export const withoutUnstorableText = (value: unknown): unknown => {
  if (typeof value === "string") return isStorable(value) ? value : UNSTORABLE
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(withoutUnstorableText)
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      isStorable(key) ? [key, withoutUnstorableText(member)] : [replaceUnstorable(key), UNSTORABLE]
    )
  )
}

/** Finds the first string, a key or a value, that cannot be stored: it contains a NUL or half a surrogate pair. */
export const pathOfUnstorableText = (value: unknown): ReadonlyArray<PropertyKey> | undefined => {
  if (typeof value === "string") return isStorable(value) ? undefined : []
  if (typeof value !== "object" || value === null) return undefined
  for (const [key, member] of Object.entries(value)) {
    const inside = isStorable(key) ? pathOfUnstorableText(member) : []
    if (inside !== undefined) return [replaceUnstorable(key), ...inside]
  }
  return undefined
}

/** Replaces the characters of a name that cannot be stored. */
const replaceUnstorable = (key: string): string => key.toWellFormed().replaceAll("\0", "\ufffd")

/** Completes "The `param` field must be …" (semantics parameters.text). */
export const STORABLE_RULE = "text without NUL characters and unpaired surrogates"

/** True if Postgres can store a text, or compare with it, as UTF-8. */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes("\0")
