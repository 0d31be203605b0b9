/**
 * What one process of the installation tells another with a request that it forwards, and how it vouches for that.
 *
 * A forwarded request is the client's own: method, URL and header lines as they were sent, but for those that belong to
 * the connection. One header says what the receiver cannot see by itself: who the client is, and what the body was
 * found to be. Another one is a keyed hash over all of it, so a signature fits one request only, and for a minute.
 * Whoever repeats that very request within the minute has the same done again, which for a POST is nothing.
 */
import type { KeyObject } from "node:crypto"
import { createHmac, createSecretKey, hash, timingSafeEqual } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import { Redacted } from "effect"

const FORWARDED = "till-forwarded"
const SIGNATURE = "till-signature"
/** What an answer is, to whoever has forwarded its request. An answer without it comes from somebody else. */
export const ANSWER = "till-answer"
/** The account that a process does not serve. */
export const ACCOUNT = "till-account"

/** What an answer says of the client's connection, where that has to end. */
export const CONNECTION = "till-connection"

/** A signature is good for so long, before and after its time. */
export const WINDOW_MILLIS = 60_000

/**
 * What is forwarded: a `request` with its whole body; a HEAD as a GET, because its answer has to have a body on the
 * way; a request that is refused whatever its body is, and one whose body is too large or one too many; or a `call` of
 * the process itself.
 */
export type Kind = "request" | "head" | "unread" | "too_large" | "too_many" | "call"

const KINDS: ReadonlySet<string> = new Set<Kind>(["request", "head", "unread", "too_large", "too_many", "call"])

export interface Message {
  readonly method: string
  readonly url: string
  /** As node joins them. */
  readonly headers: IncomingHttpHeaders
}

/** What is said with a request. */
export interface Said {
  readonly kind: Kind
  /** The client's address; empty once it is gone. */
  readonly remoteAddress: string
}

/** The same as the receiver finds it. */
export interface Found extends Said {
  /** Of the body. */
  readonly digest: string
}

/** These belong to the connection (RFC 9110, 7.6.1) or to the way of the body on it. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

/** Nobody but a process of the installation says these. */
const isOwn = (name: string): boolean => name.startsWith("till-")

export type Key = KeyObject

export const keyOf = (secret: Redacted.Redacted<Uint8Array>): Key => createSecretKey(Redacted.value(secret))

const NOTHING = ""
const digestOf = (body: Buffer): string => (body.length === 0 ? NOTHING : hash("sha256", body, "base64url"))

/** `Host` is not signed: nothing is decided by it, and on the way it may be another one. */
const signatureOf = (key: Key, { headers, method, url }: Message, said: string): Buffer => {
  let text = `${method}\n${url}\n${said}\n`
  for (const name in headers) {
    if (name !== "host" && !HOP_BY_HOP.has(name) && !isOwn(name)) text += `${name}:${String(headers[name])}\n`
  }
  return createHmac("sha256", key).update(text).digest()
}

/**
 * The clock on the wall may be set, and the other one stands still while a machine sleeps. Whatever one of them says is
 * recent is recent.
 */
const timesNow = () => [Math.round(Date.now()), Math.round(performance.timeOrigin + performance.now())] as const

/** Gives the header lines to forward a request with. `rawHeaders` are the client's. */
export const linesOf = (
  key: Key,
  message: Message & { readonly rawHeaders: ReadonlyArray<string> },
  { kind, remoteAddress }: Said,
  body: Buffer
): Array<string> => {
  const [wall, running] = timesNow()
  const said = [wall, running, kind, remoteAddress, digestOf(body)].join(";")
  const lines = [FORWARDED, said, SIGNATURE, signatureOf(key, message, said).toString("base64url")]
  const { rawHeaders } = message
  let hasHost = false
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    const lowerCase = name.toLowerCase()
    if (HOP_BY_HOP.has(lowerCase) || isOwn(lowerCase) || (lowerCase === "host" && hasHost)) continue
    if (lowerCase === "host") hasHost = true
    lines.push(name, rawHeaders[i + 1]!)
  }
  return lines
}

const isRecent = (time: string | undefined, now: number): boolean => Math.abs(Number(time) - now) <= WINDOW_MILLIS

/** Gives what is said with a request; undefined if no process of the installation has said it, or not lately. */
export const found = (key: Key, message: Message): Found | undefined => {
  const { [FORWARDED]: said, [SIGNATURE]: signature } = message.headers
  if (typeof said !== "string" || typeof signature !== "string") return undefined
  const expected = signatureOf(key, message, said)
  const sent = Buffer.from(signature, "base64url")
  if (sent.length !== expected.length || !timingSafeEqual(sent, expected)) return undefined
  const [wall, running, kind, remoteAddress, digest] = said.split(";")
  const [wallNow, runningNow] = timesNow()
  if (!isRecent(wall, wallNow) && !isRecent(running, runningNow)) return undefined
  if (kind === undefined || !KINDS.has(kind)) return undefined
  return { kind: kind as Kind, remoteAddress: remoteAddress!, digest: digest! }
}

/** Tells whether a body is the one that was signed. */
export const isOf = ({ digest }: Found, body: Buffer): boolean => digest === digestOf(body)

/** The header lines without those of the way here. */
export const clientsOwn = (rawHeaders: ReadonlyArray<string>): Array<string> => {
  const lines: Array<string> = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase()
    if (!isOwn(name) && name !== "connection") lines.push(rawHeaders[i]!, rawHeaders[i + 1]!)
  }
  return lines
}
