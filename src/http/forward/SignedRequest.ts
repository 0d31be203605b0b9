/**
 * What one process of the installation tells another with a request that it forwards.
 *
 * A forwarded request is the client's own: method, URL and header lines as they were sent, but for those that belong to
 * the connection. One header says what the receiver cannot see by itself: who the client is, and what the body was
 * found to be. The connection vouches for all of it (`RunnerTls.ts`).
 */
import type { IncomingHttpHeaders } from "node:http"

const FORWARDED = "till-forwarded"
/** What an answer is, to whoever has forwarded its request. */
export const ANSWER = "till-answer"
/** The account that a process does not serve. */
export const ACCOUNT = "till-account"

/** What an answer says of the client's connection, where that has to end. */
export const CONNECTION = "till-connection"

/**
 * What is forwarded: a `request` with its whole body; a HEAD as a GET, because its answer has to have a body on the
 * way; a request that is refused whatever its body is, and one whose body is too large or one too many; or a `call` of
 * the process itself.
 */
export type Kind = "request" | "head" | "unread" | "too_large" | "too_many" | "call"

const KINDS: ReadonlySet<string> = new Set<Kind>(["request", "head", "unread", "too_large", "too_many", "call"])

/** What is said with a request. */
export interface Said {
  readonly kind: Kind
  /** The client's address; empty once it is gone. */
  readonly remoteAddress: string
}

/** The outcomes of a client's request at other processes so far, over all of its attempts. */
export interface Course {
  /** Processes that received the request and did not answer. */
  silent: number
}

export const newCourse = (): Course => ({ silent: 0 })

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

/** Only processes of the installation send these. */
const isOwn = (name: string): boolean => name.startsWith("till-")

/** Gives the header lines to forward a request with. `rawHeaders` are the client's. */
export const linesOf = (rawHeaders: ReadonlyArray<string>, { kind, remoteAddress }: Said): Array<string> => {
  const lines = [FORWARDED, `${kind};${remoteAddress}`]
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

/** Gives what is said with a request; undefined if that is nothing that this process understands. */
export const saidIn = ({ [FORWARDED]: said }: IncomingHttpHeaders): Said | undefined => {
  if (typeof said !== "string") return undefined
  const [kind = "", remoteAddress = ""] = said.split(";")
  return KINDS.has(kind) ? { kind: kind as Kind, remoteAddress } : undefined
}

/** The header lines without those of the way here. */
export const clientsOwn = (rawHeaders: ReadonlyArray<string>): Array<string> => {
  const lines: Array<string> = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase()
    if (!isOwn(name) && name !== "connection") lines.push(rawHeaders[i]!, rawHeaders[i + 1]!)
  }
  return lines
}
