/**
 * The results of an attempt (semantics webhooks.success), and the step that follows each:
 *
 * - delivered: the endpoint answered with a 2xx status;
 * - refused: it answered with another status, and perhaps with a text;
 * - unanswered: no status arrived. The error is one sentence, always the same for the same cause. It contains nothing
 *   from the endpoint's URL, and of an answer that is not HTTP only the beginning.
 *
 * A delivery that was refused or unanswered is attempted again by the schedule, until that is exhausted.
 */
import { clean } from "../domain/Secrets.ts"
import type { AttemptOutcome } from "../engine/Deliveries.ts"
import type { Start } from "./AnswerStart.ts"

/** `body` is the beginning of a refusal's text. */
export type AttemptResult =
  | { readonly status: number; readonly error: null; readonly body?: string }
  | { readonly status: null; readonly error: string }

export const unanswered = (error: string): AttemptResult => ({ status: null, error })

export const isSuccess = (status: number): boolean => status >= 200 && status < 300

export const isDelivered = ({ status }: AttemptResult): boolean => status !== null && isSuccess(status)

/** Pauses before the second, third, … attempt, in seconds (semantics webhooks.states). */
export const RETRY_AFTER_SECONDS = [60, 300, 1800, 7200, 28_800, 86_400, 259_200] as const

/** Decides what follows an attempt; attempts are numbered from 1 (spec: Events, Delivery). */
export const nextAfter = (attempt: number, result: AttemptResult): AttemptOutcome["next"] => {
  if (isDelivered(result)) return "delivered"
  const seconds = RETRY_AFTER_SECONDS[attempt - 1]
  return seconds === undefined ? "exhausted" : { retryAfterMillis: seconds * 1000 }
}

export const INVALID_URL = "The URL is not valid."
export const TIMED_OUT = "No answer came in time."
export const CLOSED = "The connection was closed before an answer came."
const NO_TLS = "The server does not speak TLS on this port."
const NO_COMMON_TLS = "The server and Till have no version or cipher of TLS in common."
const UNTRUSTED = "The server's certificate is not from an authority that Till trusts."
const SELF_SIGNED = "The server's certificate is self-signed."
const INVALID_CERTIFICATE = "The server's certificate is not valid."

/** Sentences by error codes of the system, of OpenSSL and of undici. */
const SENTENCES: Readonly<Record<string, string>> = {
  UND_ERR_INVALID_ARG: INVALID_URL,
  TILL_ADDRESS_REFUSED: "The address of the host is not allowed.",
  ECONNREFUSED: "The connection was refused.",
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  UND_ERR_SOCKET: CLOSED,
  ENOTFOUND: "The host was not found.",
  EAI_AGAIN: "The host was not found.",
  EHOSTUNREACH: "The host cannot be reached.",
  ENETUNREACH: "The host cannot be reached.",
  ETIMEDOUT: TIMED_OUT,
  UND_ERR_CONNECT_TIMEOUT: TIMED_OUT,
  CERT_HAS_EXPIRED: "The server's certificate has expired.",
  CERT_NOT_YET_VALID: "The server's certificate is not valid yet.",
  CERT_REVOKED: "The server's certificate was revoked.",
  ERR_TLS_CERT_ALTNAME_INVALID: "The server's certificate is for another host name.",
  HOSTNAME_MISMATCH: "The server's certificate is for another host name.",
  DEPTH_ZERO_SELF_SIGNED_CERT: SELF_SIGNED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  CERT_UNTRUSTED: UNTRUSTED
}

/** Sentences by OpenSSL's text about a failed handshake, which comes with various codes. */
const HANDSHAKES: ReadonlyArray<readonly [RegExp, string]> = [
  [/wrong version number|packet length too long|http request|record layer failure|unexpected message/iu, NO_TLS],
  [/protocol version|unsupported protocol|handshake failure|no shared cipher|insufficient security/iu, NO_COMMON_TLS],
  [/certificate required|bad certificate|unknown ca/iu, "The server asks for a certificate of its client."],
  [/unrecognized name/iu, "The server does not know the host name."]
]

export const isClosed = (error: Error): boolean => SENTENCES[codeOf(error)] === CLOSED

/** The error's code; if several addresses were tried, that of the first. */
const codeOf = (error: Error): string => ("code" in error && typeof error.code === "string" ? error.code : "")

export const describeError = (error: Error): string => {
  const code = codeOf(error)
  if (SENTENCES[code] !== undefined) return SENTENCES[code]
  if (code === "EPROTO" || code.startsWith("ERR_SSL_")) {
    const text = `${code.replaceAll("_", " ")} ${error.message}`
    return HANDSHAKES.find(([pattern]) => pattern.test(text))?.[1] ?? "The TLS handshake failed."
  }
  if (/CERT|CRL|UNABLE_TO_/u.test(code)) return INVALID_CERTIFICATE
  return "The attempt failed before an answer came."
}

/** Bytes of an answer that is not HTTP that are searched for secrets, and characters quoted of it. */
const SEARCHED_BYTES_MAX = 256
const QUOTED_MAX = 40

/** Describes an answer that did not begin with a status. */
export const describeStart = (start: Exclude<Start, { readonly _tag: "Status" }>): string => {
  if (start._tag === "TooLong") return "More than 128 KiB came before the status of the answer."
  const { bytes } = start
  if (isTls(bytes)) return "The server speaks TLS on this port: the URL has to begin with https://."
  return `The answer was not HTTP: it began with ${quote(bytes)}.`
}

/** True for an alert or a handshake of any version of TLS. */
const isTls = (bytes: Buffer): boolean => (bytes[0] === 0x15 || bytes[0] === 0x16) && bytes[1] === 0x03

/** Quotes the first line without card numbers and secrets; bytes that are not text as hexadecimal digits. */
const quote = (bytes: Buffer): string => {
  const [line = ""] = bytes.toString("latin1", 0, SEARCHED_BYTES_MAX).split(/[\r\n]/u, 1)
  if (/^[ -~]+$/u.test(line)) return `"${clean(line).slice(0, QUOTED_MAX)}"`
  return `the bytes ${bytes.toString("hex", 0, 8).replaceAll(/..(?!$)/gu, "$& ")}`
}
