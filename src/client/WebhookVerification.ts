/**
 * Tells webhooks that Till has sent from those that somebody else made up (spec: Events, Signature).
 *
 * Guarantees: an event is handed out only if one of its signatures was made with one of the secrets, over exactly these
 * bytes, at most the tolerance ago. Signatures are compared in constant time, each with each secret, whichever matches.
 * No error holds a secret or a signature that would have matched.
 *
 * It does not recognize repetitions: an event can be delivered more than once, so receivers remember the IDs of events
 * that they have dealt with. An event is taken as it was signed and not checked against the contract, which may have
 * gained fields and types by now.
 *
 * At run time this file needs Node alone.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { isAnyArrayBuffer, isSharedArrayBuffer } from "node:util/types"
import type { WebhookEvent } from "./WebhookEvent.ts"

/** The header that carries the signatures, as Node spells it. */
export const WEBHOOK_SIGNATURE_HEADER = "x-signature"
/** A signature's time may be this far from the receiver's, in seconds (spec: Signature, 3). */
export const WEBHOOK_TOLERANCE_SECONDS_DEFAULT = 300

/** One of these is wrong with a webhook. */
export type WebhookVerificationFailure =
  /** There is no `X-Signature`. */
  | "header_missing"
  /** `X-Signature` does not read `t=<Unix seconds>,v1=<64 hexadecimal digits>`, with further `v1` if need be. */
  | "header_malformed"
  /** No signature matches: another secret, or another body than the one that was signed. */
  | "signature_mismatch"
  /** The signature is genuine, but from another time: somebody may have recorded the webhook. */
  | "timestamp_outside_tolerance"
  /** The body is signed, but no event. */
  | "body_malformed"

/** A webhook that must not be believed; a receiver answers 400. */
export class WebhookVerificationError extends Error {
  readonly _tag = "WebhookVerificationError"
  override readonly name = "WebhookVerificationError"
  readonly reason: WebhookVerificationFailure

  constructor(reason: WebhookVerificationFailure, message: string) {
    super(message)
    this.reason = reason
  }
}

export interface VerifyWebhookOptions {
  /**
   * The request's body, exactly as it came in: parsed and printed again, it would be other text. Bytes may be in a
   * `Buffer`, any typed array, a `DataView` or an `ArrayBuffer`, such as `await request.arrayBuffer()` gives.
   */
  readonly body: string | ArrayBufferView | ArrayBufferLike
  /** The request's `X-Signature`. */
  readonly header: string | ReadonlyArray<string> | null | undefined
  /** The endpoint's secret, `whsec_…`, as a whole; several while one is being replaced. */
  readonly secret: string | ReadonlyArray<string>
  /** The signature's time may be this far from now; 300 by default. */
  readonly toleranceSeconds?: number | undefined
  /** Unix time; by default the system's. */
  readonly nowMillis?: number | undefined
}

/**
 * `verifyWebhook` of `till/client`, for whoever takes this file alone. Node 24 to 26 may read names in it wrongly that
 * end with an escape, such as `"\n"`, which the client does not leave to `JSON.parse`.
 */
export const verifyWebhook = (options: VerifyWebhookOptions): WebhookEvent => verifyWebhookWith(JSON.parse, options)

/** The same, reading the body's text by a function of one's own. */
export const verifyWebhookWith = (parse: (text: string) => unknown, options: VerifyWebhookOptions): WebhookEvent => {
  const { toleranceSeconds = WEBHOOK_TOLERANCE_SECONDS_DEFAULT, nowMillis = Date.now() } = options
  const secrets = secretsOf(options.secret)
  const body = bytesOf(options.body)
  const { signatures, time } = headerOf(options.header)
  if (!matchesAny(body, time, signatures, secrets)) {
    throw new WebhookVerificationError(
      "signature_mismatch",
      "No signature in X-Signature matches. Is it this endpoint's secret, and the body as it came in?"
    )
  }
  // Whole seconds, as the sender counts.
  const differenceSeconds = Math.floor(nowMillis / 1000) - Number(time)
  if (!(Math.abs(differenceSeconds) <= toleranceSeconds)) {
    const when = differenceSeconds > 0 ? `${differenceSeconds} s old` : `${-differenceSeconds} s ahead of time`
    throw new WebhookVerificationError(
      "timestamp_outside_tolerance",
      `The signature is ${when}; at most ${toleranceSeconds} s are tolerated.`
    )
  }
  return eventOf(parse, body)
}

/** Nothing is no secret: anybody could sign with it. */
const secretsOf = (secret: VerifyWebhookOptions["secret"]): ReadonlyArray<string> => {
  const secrets = typeof secret === "string" ? [secret] : secret
  if (Array.isArray(secrets) && secrets.length > 0 && secrets.every((one) => typeof one === "string" && one !== "")) {
    return secrets
  }
  throw new TypeError("verifyWebhook needs the webhook endpoint's secret, whsec_…")
}

const bytesOf = (body: VerifyWebhookOptions["body"]): Uint8Array => {
  if (typeof body === "string") return Buffer.from(body, "utf8")
  const bytes = viewOf(body)
  // Another thread could change shared memory after its signature was compared and before its event is read.
  return isSharedArrayBuffer(bytes.buffer) ? bytes.slice() : bytes
}

const viewOf = (body: ArrayBufferView | ArrayBufferLike): Uint8Array => {
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
  if (isAnyArrayBuffer(body)) return new Uint8Array(body)
  throw new TypeError("verifyWebhook needs the body as it came in, as a string or bytes, before anything parses it")
}

interface SignatureHeader {
  /** Unix seconds, as they were signed. */
  readonly time: string
  readonly signatures: ReadonlyArray<Uint8Array>
}

/** Entries under other names may come to be; they are none of ours. */
const headerOf = (header: VerifyWebhookOptions["header"]): SignatureHeader => {
  const value = Array.isArray(header) && header.length === 1 ? (header[0] as string) : header
  if (value === undefined || value === null || value === "") {
    throw new WebhookVerificationError("header_missing", "The request has no X-Signature.")
  }
  const entries = typeof value === "string" ? value.split(",").map((entry) => entry.trim()) : []
  const valuesOf = (name: string) => entries.filter((entry) => entry.startsWith(name)).map((e) => e.slice(name.length))
  const times = valuesOf("t=")
  const signatures = valuesOf("v1=")
  const isWellFormed =
    times.length === 1 &&
    /^(?:0|[1-9]\d{0,14})$/u.test(times[0]!) &&
    signatures.length > 0 &&
    signatures.every((signature) => /^[0-9a-f]{64}$/u.test(signature))
  if (!isWellFormed) {
    throw new WebhookVerificationError("header_malformed", "X-Signature is not of the form t=<seconds>,v1=<signature>.")
  }
  return { time: times[0]!, signatures: signatures.map((signature) => Buffer.from(signature, "hex")) }
}

const matchesAny = (
  body: Uint8Array,
  time: string,
  signatures: ReadonlyArray<Uint8Array>,
  secrets: ReadonlyArray<string>
): boolean => {
  let matches = false
  for (const secret of secrets) {
    const expected = createHmac("sha256", secret).update(`v1=${time}.`).update(body).digest()
    // No early end: how long this takes must not tell which one matched.
    for (const signature of signatures) matches = timingSafeEqual(expected, signature) || matches
  }
  return matches
}

const eventOf = (parse: (text: string) => unknown, body: Uint8Array): WebhookEvent => {
  try {
    const value: unknown = parse(new TextDecoder("utf-8", { fatal: true }).decode(body))
    const { id, type } = value as { readonly id?: unknown; readonly type?: unknown }
    if (typeof id === "string" && typeof type === "string") return value as WebhookEvent
  } catch {
    // The same as any other body that is no event.
  }
  throw new WebhookVerificationError("body_malformed", "The body is genuine, but no event.")
}
