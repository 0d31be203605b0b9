/**
 * Tokens of forms: each form that is shown gets one of its own, which makes its submission happen once, however often it
 * is sent. Only Till can make one, and it is good for one subject only, so no other page can have a form sent to Till. The
 * subject is the id of an object, with what the form shows of it where that may change meanwhile.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { Redacted } from "effect"
import { formKey } from "../payments/IdempotencyKeys.ts"
import type { PaymentsConfigShape } from "../payments/PaymentsConfig.ts"

type Keys = Pick<PaymentsConfigShape, "fingerprintKey">

const NONCE_BYTES = 16

/** A new token for a form about this subject. */
export const makeToken = (keys: Keys, subject: string): string => {
  const nonce = randomBytes(NONCE_BYTES).toString("base64url")
  return `${nonce}.${macOf(keys, subject, nonce)}`
}

/** The idempotency key of a form's submission; undefined if the token was not made for this subject. */
export const idempotencyKeyOf = (keys: Keys, subject: string, token: string): string | undefined => {
  const [nonce = "", mac = ""] = token.split(".", 2)
  const expected = Buffer.from(macOf(keys, subject, nonce))
  const sent = Buffer.from(mac)
  return sent.length === expected.length && timingSafeEqual(sent, expected) ? formKey(subject, nonce) : undefined
}

/** The prefix keeps this use of the key apart from card numbers' fingerprints, which begin with an account. */
const macOf = ({ fingerprintKey }: Keys, subject: string, nonce: string): string =>
  createHmac("sha256", Redacted.value(fingerprintKey)).update(`form token|${subject}|${nonce}`).digest("base64url")
