/**
 * Says in a sentence why an attempt brought no status (semantics W9): always the same for the same cause, and without
 * anything that an endpoint's URL could put into it. Of an answer that is no HTTP it shows the beginning.
 */
import { clean } from "../domain/Secrets.ts"
import type { Start } from "./AnswerStart.ts"

export const INVALID_URL = "The URL is not valid."
export const TIMED_OUT = "No answer came in time."
export const CLOSED = "The connection was closed before an answer came."
const NO_TLS = "The server does not speak TLS on this port."
const NO_COMMON_TLS = "The server and Till have no version or cipher of TLS in common."
const UNTRUSTED = "The server's certificate is not from an authority that Till trusts."
const SELF_SIGNED = "The server's certificate is self-signed."
const INVALID_CERTIFICATE = "The server's certificate is not valid."

/** By the codes of the system, of OpenSSL and of undici. */
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

/** By what OpenSSL says of a handshake, whichever code that comes with. */
const HANDSHAKES: ReadonlyArray<readonly [RegExp, string]> = [
  [/wrong version number|packet length too long|http request|record layer failure|unexpected message/iu, NO_TLS],
  [/protocol version|unsupported protocol|handshake failure|no shared cipher|insufficient security/iu, NO_COMMON_TLS],
  [/certificate required|bad certificate|unknown ca/iu, "The server asks for a certificate of its client."],
  [/unrecognized name/iu, "The server does not know the host name."]
]

/** True if the other side has ended the connection. */
export const isClosed = (error: Error): boolean => SENTENCES[codeOf(error)] === CLOSED

/** If several addresses were tried, the code is that of the first. */
const codeOf = (error: Error): string => ("code" in error && typeof error.code === "string" ? error.code : "")

export const of = (error: Error): string => {
  const code = codeOf(error)
  if (SENTENCES[code] !== undefined) return SENTENCES[code]
  if (code === "EPROTO" || code.startsWith("ERR_SSL_")) {
    const said = `${code.replaceAll("_", " ")} ${error.message}`
    return HANDSHAKES.find(([pattern]) => pattern.test(said))?.[1] ?? "The TLS handshake failed."
  }
  if (/CERT|CRL|UNABLE_TO_/u.test(code)) return INVALID_CERTIFICATE
  return "The attempt failed before an answer came."
}

/** What is looked through for card numbers and secrets of an answer that is no HTTP, and what is shown of that. */
const READ_BYTES_MAX = 256
const SHOWN_MAX = 40

export const ofStart = (start: Exclude<Start, { readonly _tag: "Status" }>): string => {
  if (start._tag === "TooLong") return "More than 128 KiB came before the status of the answer."
  const { bytes } = start
  if (isTls(bytes)) return "The server speaks TLS on this port: the URL has to begin with https://."
  return `The answer was not HTTP: it began with ${shown(bytes)}.`
}

/** An alert or a handshake of any version of TLS. */
const isTls = (bytes: Buffer): boolean => (bytes[0] === 0x15 || bytes[0] === 0x16) && bytes[1] === 0x03

/** The first line as text, without card numbers and secrets; in hexadecimal digits if it is none. */
const shown = (bytes: Buffer): string => {
  const [line = ""] = bytes.toString("latin1", 0, READ_BYTES_MAX).split(/[\r\n]/u, 1)
  if (/^[ -~]+$/u.test(line)) return `"${clean(line).slice(0, SHOWN_MAX)}"`
  return `the bytes ${bytes.toString("hex", 0, 8).replaceAll(/..(?!$)/gu, "$& ")}`
}
