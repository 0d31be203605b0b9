/**
 * Parses requests that are strictly plain, as almost all requests of programs are: GET or POST under /v1 with HTTP/1.1,
 * in printable ASCII, no header twice, and nothing that a proxy in front could understand differently.
 *
 * The parser judges nothing: a request that is not plain, correct or not, is left to Node's own parser, byte for byte.
 * Its results equal those of Node's parser; a test compares the two.
 */
import type { IncomingHttpHeaders } from "node:http"

export interface PlainRequest {
  readonly method: "GET" | "POST"
  /** Path and query. */
  readonly url: string
  /** Values by name in lower case. */
  readonly headers: IncomingHttpHeaders
  /** A view of the parsed bytes. */
  readonly body: Buffer
  /** Offset of the next request in the bytes. */
  readonly end: number
}

/** The bytes are not plain, or a plain request that is too large to wait for its rest. */
export const NOT_PLAIN = "not plain"
/** The bytes are the beginning of a plain request. */
export const INCOMPLETE = "incomplete"

/** The largest header section that is plain: 16 KiB. Node's own limit counts fewer of its bytes. */
export const HEAD_BYTES_MAX = 16_384
/**
 * The largest body that is plain before it has arrived: 16 KiB. Longer ones go to Node's parser, whose bodies share a
 * memory limit.
 */
const AWAITED_BODY_BYTES_MAX = 16_384
/** The largest body that is plain: 64 KiB. Longer ones are not allowed with every key. */
const BODY_BYTES_MAX = 65_536
/** The most headers that are plain. Node ignores those beyond a thousand. */
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
/** Characters of a path and a query (RFC 3986, with `[` and `]`, which clients send unescaped in queries). */
const IS_IN_TARGET = flagged(`${LETTERS_AND_DIGITS}-._~%!$&'()*+,;=:@/?[]`)
/** Characters of a header's name: a token (RFC 9110). */
const IS_IN_NAME = flagged(`${LETTERS_AND_DIGITS}!#$%&'*+-.^_\`|~`)

/** Headers that only Node's parser handles. */
const NOT_PLAIN_NAMES: ReadonlySet<string> = new Set([
  "expect",
  "origin",
  "proxy-connection",
  // Node collects its values in an array.
  "set-cookie",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

const LENGTH = /^(?:0|[1-9]\d{0,4})$/

/** True for a header that is plain. The name is in lower case. */
const isPlainHeader = (method: PlainRequest["method"], name: string, value: string): boolean => {
  if (name === "content-length") return method === "POST" && LENGTH.test(value)
  if (name === "connection") return value.toLowerCase() === "keep-alive"
  return !NOT_PLAIN_NAMES.has(name)
}

const STARTS = [
  { method: "GET", bytes: Buffer.from("GET /v1/") },
  { method: "POST", bytes: Buffer.from("POST /v1/") }
] as const

/** The bytes after the target. */
const VERSION = Buffer.from(" HTTP/1.1\r\n")

const nothing = Buffer.alloc(0)

/** True if the bytes from the offset on match the expected ones, as far as both reach. */
const goesOn = (bytes: Buffer, offset: number, expected: Buffer): boolean => {
  const length = Math.min(expected.length, bytes.length - offset)
  for (let i = 0; i < length; i++) if (bytes[offset + i] !== expected[i]) return false
  return true
}

/** Header names in their usual spelling, by which a request allocates no name in lower case. */
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
 * Parses the request that begins at the offset. All strings are copies, so that keeping one does not keep the request's
 * bytes in memory.
 */
export const parse = (bytes: Buffer, offset: number): PlainRequest | typeof NOT_PLAIN | typeof INCOMPLETE => {
  const start = STARTS.find((start) => goesOn(bytes, offset, start.bytes))
  if (start === undefined) return NOT_PLAIN
  /** The end of the bytes that may belong to the header section. */
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
    // Node strips all spaces around a value.
    const isBare = valueEnd > value && bytes[value] !== SPACE && bytes[valueEnd - 1] !== SPACE
    if (!isBare || ++count > HEADERS_MAX) return NOT_PLAIN
    const spelled = bytes.toString("latin1", name, nameEnd)
    const lowerCase = lowerCases.get(spelled) ?? spelled.toLowerCase()
    const text = bytes.toString("latin1", value, valueEnd)
    // A name such as `constructor`, which every object has, counts as repeated.
    if (headers[lowerCase] !== undefined || !isPlainHeader(start.method, lowerCase, text)) return NOT_PLAIN
    headers[lowerCase] = text
  }
  if (at + 1 >= limit) return unfinished
  if (bytes[at + 1] !== LF) return NOT_PLAIN
  at += 2

  // HTTP/1.1 requires `Host`; the refusal is left to the handler of all requests of Node's parser.
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
