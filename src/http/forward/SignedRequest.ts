/**
 * The format of requests between processes of an installation.
 *
 * A forwarded request is the client's own: method, URL and header lines as sent, except for those that belong to the
 * connection. One header, the envelope, adds what the receiver cannot see by itself: the client's address, and the
 * state of the body. The connection authenticates the sender of all of it (`RunnerTls.ts`).
 */
import type { IncomingHttpHeaders } from "node:http"

const FORWARDED = "till-forwarded"
/**
 * Header of an answer, for the forwarding process: `carried`; `elsewhere` if the account is not served there; or
 * `later` if the answer follows as a call.
 */
export const ANSWER = "till-answer"
/** Header of an answer `elsewhere`: the account that the process does not serve. */
export const ACCOUNT = "till-account"

/** Header of an answer: the value of `Connection` for the client, if its connection has to end. */
export const CONNECTION = "till-connection"

/**
 * The kinds of messages: a `request` with its whole body; a `head`, sent as a GET because its answer needs a body on
 * the way; a request that is refused without its body (`unread`), or because the body is too large or one too many; or
 * a `call` of the process itself.
 */
export type Kind = "request" | "head" | "unread" | "too_large" | "too_many" | "call"

const KINDS: ReadonlySet<string> = new Set<Kind>(["request", "head", "unread", "too_large", "too_many", "call"])

/** The facts about a request that its forwarding process adds. */
export interface Envelope {
  readonly kind: Kind
  /** The client's address; empty once the client is gone. */
  readonly remoteAddress: string
  /** Where an answer can be sent later; undefined if it has to come on the request's connection. */
  readonly sender?: Sender | undefined
}

/** The forwarding process, and its name for the request. */
export interface Sender {
  readonly url: string
  readonly id: string
}

/** The outcomes of a client's request at other processes so far, over all of its attempts. */
export interface Course {
  /** Processes that received the request and did not answer. */
  silent: number
}

export const newCourse = (): Course => ({ silent: 0 })

/** Headers of the connection (RFC 9110, 7.6.1) or of the body's encoding on it. */
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

/** True for headers that only processes of the installation send. */
const isOwn = (name: string): boolean => name.startsWith("till-")

/** Returns the header lines of a forwarded request. `rawHeaders` are the client's. */
export const linesOf = (
  rawHeaders: ReadonlyArray<string>,
  { kind, remoteAddress, sender }: Envelope
): Array<string> => {
  const lines = [FORWARDED, `${kind};${remoteAddress}${sender === undefined ? "" : `;${sender.id};${sender.url}`}`]
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

/** Parses the envelope of a request; undefined if it is missing or of an unknown kind. */
export const parseEnvelope = ({ [FORWARDED]: value }: IncomingHttpHeaders): Envelope | undefined => {
  if (typeof value !== "string") return undefined
  const [kind = "", remoteAddress = "", id, url] = value.split(";")
  const sender = id === undefined || url === undefined ? undefined : { id, url }
  return KINDS.has(kind) ? { kind: kind as Kind, remoteAddress, sender } : undefined
}

/** Returns the client's header lines, without those of the connection between the processes. */
export const clientLinesOf = (rawHeaders: ReadonlyArray<string>): Array<string> => {
  const lines: Array<string> = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase()
    if (!isOwn(name) && name !== "connection") lines.push(rawHeaders[i]!, rawHeaders[i + 1]!)
  }
  return lines
}
