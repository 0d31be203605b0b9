/**
 * Reads a request that is strictly plain, which almost all requests of programs are: GET or POST under /v1 by HTTP/1.1,
 * in printable ASCII, no header twice, and nothing in it that a proxy in front could understand differently.
 *
 * It decides nothing: whatever is not plain, right or wrong, is left to node's own parser, byte for byte. What it does
 * read comes out as node would have it; a test compares the two.
 */
import type { IncomingHttpHeaders } from "node:http"

export interface PlainRequest {
  readonly method: "GET" | "POST"
  /** Path and query. */
  readonly url: string
  /** By names in lower case. */
  readonly headers: IncomingHttpHeaders
  /** Part of the bytes that were read. */
  readonly body: Buffer
  /** Where the next request begins among the bytes. */
  readonly end: number
}

/** The bytes are none that are plain, or too many to wait for the rest of them. */
export const NOT_PLAIN = "not plain"
/** The bytes are the beginning of a plain request, as far as they go. */
export const INCOMPLETE = "incomplete"

/** 16 KiB: a longer head is not plain. Node's own limit counts less of it. */
export const HEAD_BYTES_MAX = 16_384
/** 16 KiB: nobody waits here for the rest of a longer body. Node's requests share a limit for these. */
export const AWAITED_BODY_BYTES_MAX = 16_384
/** 64 KiB: a longer body, which not every key may send, is not plain. */
const BODY_BYTES_MAX = 65_536
/** Node would leave out those beyond a thousand. */
const HEADERS_MAX = 100

const CR = 0x0d
const LF = 0x0a
const SPACE = 0x20
const COLON = 0x3a

const flagged = (characters: string): Uint8Array => {
  const flags = new Uint8Array(256)
  for (const character of characters) flags[character.charCodeAt(0)] = 1
  return flags
}

const LETTERS_AND_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
/** What a path and a query consist of (RFC 3986, with `[` and `]` as everybody has them in queries). */
const IS_IN_TARGET = flagged(`${LETTERS_AND_DIGITS}-._~%!$&'()*+,;=:@/?[]`)
/** A token (RFC 9110). */
const IS_IN_NAME = flagged(`${LETTERS_AND_DIGITS}!#$%&'*+-.^_\`|~`)

/** What these say is for node's parser to carry out. */
const NOT_PLAIN_NAMES: ReadonlySet<string> = new Set([
  "expect",
  "origin",
  "proxy-connection",
  // Node has a list of these.
  "set-cookie",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

const LENGTH = /^(?:0|[1-9]\d{0,4})$/

/** The name is in lower case. */
const isPlainHeader = (method: PlainRequest["method"], name: string, value: string): boolean => {
  if (name === "content-length") return method === "POST" && LENGTH.test(value)
  if (name === "connection") return value.toLowerCase() === "keep-alive"
  return !NOT_PLAIN_NAMES.has(name)
}

const STARTS = [
  { method: "GET", bytes: Buffer.from("GET /v1/") },
  { method: "POST", bytes: Buffer.from("POST /v1/") }
] as const

/** What follows the target. */
const VERSION = Buffer.from(" HTTP/1.1\r\n")

const nothing = Buffer.alloc(0)

/** True if the bytes from there on are these, as far as there are any. */
const goesOn = (bytes: Buffer, offset: number, expected: Buffer): boolean => {
  const length = Math.min(expected.length, bytes.length - offset)
  for (let i = 0; i < length; i++) if (bytes[offset + i] !== expected[i]) return false
  return true
}

/** Names as they are mostly spelled, so that they need not be made anew for each request. */
const lowerCases = new Map(
  [
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "Connection",
    "Content-Length",
    "Content-Type",
    "Host",
    "Idempotency-Key",
    "Sec-Fetch-Mode",
    "User-Agent",
    "X-API-Version"
  ].flatMap((name) => [[name, name.toLowerCase()] as const, [name.toLowerCase(), name.toLowerCase()] as const])
)

/**
 * Reads the request that begins at the offset. All strings are copies: what somebody keeps of a request does not keep
 * its bytes.
 */
export const parse = (bytes: Buffer, offset: number): PlainRequest | typeof NOT_PLAIN | typeof INCOMPLETE => {
  const start = STARTS.find((start) => goesOn(bytes, offset, start.bytes))
  if (start === undefined) return NOT_PLAIN
  /** No byte of the head is looked at from here on. */
  const limit = Math.min(bytes.length, offset + HEAD_BYTES_MAX)
  const unfinished = bytes.length < offset + HEAD_BYTES_MAX ? INCOMPLETE : NOT_PLAIN

  const target = offset + start.method.length + 1
  let at = offset + start.bytes.length
  while (at < limit && IS_IN_TARGET[bytes[at]!] === 1) at++
  if (at < limit && !goesOn(bytes, at, VERSION)) return NOT_PLAIN
  const targetEnd = at
  at += VERSION.length
  if (at >= limit) return unfinished

  const headers: Record<string, string> = {}
  let count = 0
  while (bytes[at] !== CR) {
    const name = at
    while (at < limit && IS_IN_NAME[bytes[at]!] === 1) at++
    if (at === limit) return unfinished
    if (bytes[at] !== COLON || at === name) return NOT_PLAIN
    const nameEnd = at++
    if (at < limit && bytes[at] === SPACE) at++
    const value = at
    while (at < limit && bytes[at]! >= SPACE && bytes[at]! < 0x7f) at++
    const valueEnd = at
    if (at < limit && bytes[at++] !== CR) return NOT_PLAIN
    if (at >= limit) return unfinished
    if (bytes[at++] !== LF) return NOT_PLAIN
    // Node takes spaces around a value away, however many.
    const isBare = valueEnd > value && bytes[value] !== SPACE && bytes[valueEnd - 1] !== SPACE
    if (!isBare || ++count > HEADERS_MAX) return NOT_PLAIN
    const spelled = bytes.toString("latin1", name, nameEnd)
    const lowerCase = lowerCases.get(spelled) ?? spelled.toLowerCase()
    const text = bytes.toString("latin1", value, valueEnd)
    // A name that every object has is as good as repeated.
    if (headers[lowerCase] !== undefined || !isPlainHeader(start.method, lowerCase, text)) return NOT_PLAIN
    headers[lowerCase] = text
  }
  if (at + 1 >= limit) return unfinished
  if (bytes[at + 1] !== LF) return NOT_PLAIN
  at += 2

  // Without one, HTTP/1.1 is wrong; the answer to that is given where all of node's requests come by.
  if (headers["host"] === undefined) return NOT_PLAIN
  const length = Number(headers["content-length"] ?? 0)
  const end = at + length
  if (end > bytes.length) return length > AWAITED_BODY_BYTES_MAX ? NOT_PLAIN : INCOMPLETE
  if (length > BODY_BYTES_MAX) return NOT_PLAIN
  return {
    method: start.method,
    url: bytes.toString("latin1", target, targetEnd),
    headers,
    body: length === 0 ? nothing : bytes.subarray(at, end),
    end
  }
}
