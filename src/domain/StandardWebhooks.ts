/**
 * Signatures as in Standard Webhooks (https://www.standardwebhooks.com), which the protocol of gateways uses for
 * requests, answers and messages (semantics gateways.signature). Till's own webhooks have another form
 * (`WebhookSignature.ts`).
 */
import { Redacted } from "effect"
import { createHmac, createSecretKey, KeyObject, timingSafeEqual } from "node:crypto"

/** The largest difference between a signature's time and the reader's clock, in seconds. */
export const TOLERANCE_SECONDS = 300
const KEY_BYTES_MIN = 24
const KEY_BYTES_MAX = 64
/** Signatures compared per message: more than any rotation of secrets needs. */
const SIGNATURES_MAX = 16

/** Header values by lower-case names; undefined for a header that is absent or repeated. */
export type Headers = Readonly<Record<string, string | undefined>>

/** Decodes `whsec_…` to its key of 24 to 64 bytes; undefined for any other text. */
const keyOf = (secret: string): Buffer | undefined => {
  const encoded = /^whsec_([0-9A-Za-z+/]+={0,2})$/u.exec(secret)?.[1]
  if (encoded === undefined) return undefined
  const key = Buffer.from(encoded, "base64")
  const isExact = key.toString("base64").replaceAll("=", "") === encoded.replaceAll("=", "")
  return isExact && key.length >= KEY_BYTES_MIN && key.length <= KEY_BYTES_MAX ? key : undefined
}

/** Returns whether a text is `whsec_` and the base64 of 24 to 64 bytes. */
export const isSecret = (text: string): boolean => keyOf(text) !== undefined

/** A secret's text, or the key of `signingKey`, for a process that signs often and keeps no text. */
export type Secret = Redacted.Redacted | KeyObject

/** Returns the key of a secret. Throws for a text that is none, without repeating it. */
export const signingKey = (secret: Redacted.Redacted): KeyObject => {
  const key = keyOf(Redacted.value(secret))
  if (key === undefined) throw new Error("A secret must be whsec_ and the base64 of 24 to 64 bytes.")
  const made = createSecretKey(key)
  key.fill(0)
  return made
}

const hmacOf = (secret: Secret, id: string, seconds: string, body: string | Uint8Array): Buffer =>
  createHmac("sha256", secret instanceof KeyObject ? secret : signingKey(secret))
    .update(`${id}.${seconds}.`)
    .update(body)
    .digest()

/** Signs a body with each secret, newest first. `seconds` is Unix time. */
export const sign = (
  secrets: ReadonlyArray<Secret>,
  id: string,
  seconds: number,
  body: string | Uint8Array
): Readonly<Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string>> => ({
  "webhook-id": id,
  "webhook-timestamp": String(seconds),
  "webhook-signature": secrets
    .map((secret) => `v1,${hmacOf(secret, id, String(seconds), body).toString("base64")}`)
    .join(" ")
})

/**
 * Returns the id of a message that was signed with one of the secrets within 300 seconds of `now` (Unix seconds); null
 * if it was not. Compares in constant time.
 */
export const verify = (
  secrets: ReadonlyArray<Secret>,
  headers: Headers,
  body: Uint8Array,
  now: number
): string | null => {
  const id = headers["webhook-id"] ?? ""
  const time = headers["webhook-timestamp"] ?? ""
  if (id === "" || !/^[0-9]{1,12}$/u.test(time)) return null
  if (Math.abs(now - Number(time)) > TOLERANCE_SECONDS) return null
  const given = (headers["webhook-signature"] ?? "")
    .split(" ", SIGNATURES_MAX)
    .flatMap((entry) => (entry.startsWith("v1,") ? [Buffer.from(entry.slice(3), "base64")] : []))
  const isSigned = secrets.some((secret) => {
    const expected = hmacOf(secret, id, time, body)
    return given.some((one) => one.length === expected.length && timingSafeEqual(one, expected))
  })
  return isSigned ? id : null
}
