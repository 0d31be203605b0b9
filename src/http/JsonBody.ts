/**
 * Reads the JSON of a request's body (semantics T2–T4, §8.13, §8.14).
 *
 * It is strict about the text: UTF-8 without exception, no byte-order mark, and nesting that no later recursion needs
 * to fear. Nothing else works on a text before that is known, and finding it out takes time in proportion to the text's
 * length. `__proto__` is an ordinary own property, and the last of duplicate keys wins.
 */
import { isUtf8 } from "node:buffer"
import { Exit } from "effect"
import { parseJson, syntaxErrorIn } from "../json/JsonParse.ts"
import { InvalidJson, UnsupportedMediaType } from "../server/HttpErrors.ts"

/** Objects and arrays may lie within one another on so many levels. */
export const DEPTH_MAX = 64

const BYTE_ORDER_MARK = Buffer.from("\ufeff")
/** What decoding puts in the place of bytes that are not UTF-8. */
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
 * Finds the first byte that belongs to no character, in a body that is not UTF-8. Decoding puts U+FFFD in the place of
 * such bytes, which is a character of its own as well, of three bytes.
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

/** Tells whether brackets outside of strings are nested beyond the limit. Looks only at texts long enough to be. */
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

/** Finds the quote that closes the string opened at `start`; gives the end of the text if there is none. */
const endOfString = (text: string, start: number): number => {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

/** Takes the place of strings that are no text; no schema takes it. */
export const UNSTORABLE: unique symbol = Symbol("unstorable text")

/** Puts a mark in the place of every string that is no text, and of every member whose name is none. */
export const withoutUnstorableText = (value: unknown): unknown => {
  if (typeof value === "string") return isStorable(value) ? value : UNSTORABLE
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(withoutUnstorableText)
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      isStorable(key) ? [key, withoutUnstorableText(member)] : [storable(key), UNSTORABLE]
    )
  )
}

/** Finds the first string, as a key or as a value, that is no text: it holds a NUL or half a surrogate pair. */
export const pathOfUnstorableText = (value: unknown): ReadonlyArray<PropertyKey> | undefined => {
  if (typeof value === "string") return isStorable(value) ? undefined : []
  if (typeof value !== "object" || value === null) return undefined
  for (const [key, member] of Object.entries(value)) {
    const inside = isStorable(key) ? pathOfUnstorableText(member) : []
    if (inside !== undefined) return [storable(key), ...inside]
  }
  return undefined
}

/** Shows what is no text in a name by replacement characters. */
const storable = (key: string): string => key.toWellFormed().replaceAll("\0", "\ufffd")

/** Completes "The `param` field must be …" (semantics §8.14). */
export const STORABLE_RULE = "text without NUL characters and unpaired surrogates"

/** Tells whether a text can be stored as UTF-8 in Postgres, or asked for there. */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes("\0")
