/**
 * Verifies that a webhook was sent by Till (spec: Events, Signature).
 *
 * Guarantees: an event is returned only if one of its signatures was made with one of the secrets, over exactly these
 * bytes, within the tolerance. All signatures are compared with all secrets, in constant time. No error contains a
 * secret or a signature that would have matched.
 *
 * It does not detect repetitions: an event can be delivered more than once, so receivers must remember the IDs of
 * processed events. An event is returned as signed, without a check against the contract, which may have gained fields
 * and types since.
 *
 * At run time this file needs only Node.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { isAnyArrayBuffer, isSharedArrayBuffer } from "node:util/types"
import type { WebhookEvent } from "./WebhookEvent.ts"

/** The header of the signatures, as Node spells it. */
export const WEBHOOK_SIGNATURE_HEADER = "x-signature"
/** The default tolerance between a signature's time and the receiver's, in seconds (spec: Signature, 3). */
export const WEBHOOK_TOLERANCE_SECONDS_DEFAULT = 300

/** The reasons to reject a webhook. */
export type WebhookVerificationFailure =
  /** The request has no `X-Signature`. */
  | "header_missing"
  /** `X-Signature` is not of the form `t=<Unix seconds>,v1=<64 hexadecimal digits>`, with one or more `v1`. */
  | "header_malformed"
  /** No signature matches: the secret or the body is another one. */
  | "signature_mismatch"
  /** The signature is genuine, but too far from now: it may be a recorded webhook. */
  | "timestamp_outside_tolerance"
  /** The body is signed, but is not an event. */
  | "body_malformed"

/** The webhook is not genuine; a receiver should respond with 400. */
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
   * The request's body, exactly as received: parsed and serialized again, it has other bytes. Bytes may be in a
   * `Buffer`, any typed array, a `DataView` or an `ArrayBuffer`, as `await request.arrayBuffer()` returns.
   */
  readonly body: string | ArrayBufferView | ArrayBufferLike
  /** The request's `X-Signature`. */
  readonly header: string | ReadonlyArray<string> | null | undefined
  /** The endpoint's whole secret, `whsec_…`; several during the grace period of a rolled one. */
  readonly secret: string | ReadonlyArray<string>
  /** The tolerance between the signature's time and now; 300 by default. */
  readonly toleranceSeconds?: number | undefined
  /** The current Unix time; by default the system's. */
  readonly nowMillis?: number | undefined
}

/**
 * `verifyWebhook` of the client, for use of this file alone. `JSON.parse` of Node 24 to 26 can misread names that
 * end with an escape, such as `"\n"`; the client's own function does not use it.
 */
export const verifyWebhook = (options: VerifyWebhookOptions): WebhookEvent => verifyWebhookWith(JSON.parse, options)

/** `verifyWebhook` with a JSON parser of your own. */
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
  // Whole seconds, like the sender's.
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

/** Returns the secrets. An empty one is refused, because anybody could sign with it. */
const secretsOf = (secret: VerifyWebhookOptions["secret"]): ReadonlyArray<string> => {
  const secrets = typeof secret === "string" ? [secret] : secret
  if (Array.isArray(secrets) && secrets.length > 0 && secrets.every((one) => typeof one === "string" && one !== "")) {
    return secrets
  }
  throw new TypeError("verifyWebhook needs the webhook endpoint's secret, whsec_…")
}

const bytesOf = (body: VerifyWebhookOptions["body"]): Uint8Array => {
  if (typeof body === "string") return new TextEncoder().encode(body)
  const bytes = viewOf(body)
  // Another thread could change shared memory between the comparison of the signature and the parsing of the event.
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

/** Parses the header. Entries with other names are ignored, because later versions may add some. */
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
  return { time: times[0]!, signatures: signatures.map(bytesOfHex) }
}

/** Reads pairs of hexadecimal digits. */
const bytesOfHex = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../gu)!, (pair) => Number.parseInt(pair, 16))

const matchesAny = (
  body: Uint8Array,
  time: string,
  signatures: ReadonlyArray<Uint8Array>,
  secrets: ReadonlyArray<string>
): boolean => {
  let matches = false
  for (const secret of secrets) {
    const expected = createHmac("sha256", secret).update(`v1=${time}.`).update(body).digest()
    // No early exit: the time must not reveal which signature matched.
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
    // Treated like any other body that is not an event.
  }
  throw new WebhookVerificationError("body_malformed", "The body is genuine, but no event.")
}
