/**
 * Tokens of forms: each form that is shown gets one of its own, which makes its submission happen once, however often it
 * is sent. Only Till can make one, and it is good for one object only, so no other page can have a form sent to Till.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { Redacted } from "effect"
import { formKey } from "../payments/FormKeys.ts"
import type { PaymentsConfigShape } from "../payments/PaymentsConfig.ts"

type Keys = Pick<PaymentsConfigShape, "fingerprintKey">

const NONCE_BYTES = 16

/** A new token for a form about the object with this id. */
export const makeToken = (keys: Keys, id: string): string => {
  const nonce = randomBytes(NONCE_BYTES).toString("base64url")
  return `${nonce}.${macOf(keys, id, nonce)}`
}

/** The idempotency key of a form's submission; undefined if the token was not made for this object. */
export const idempotencyKeyOf = (keys: Keys, id: string, token: string): string | undefined => {
  const [nonce = "", mac = ""] = token.split(".", 2)
  const expected = Buffer.from(macOf(keys, id, nonce))
  const sent = Buffer.from(mac)
  return sent.length === expected.length && timingSafeEqual(sent, expected) ? formKey(id, nonce) : undefined
}

/** The prefix keeps this use of the key apart from card numbers' fingerprints, which begin with an account. */
const macOf = ({ fingerprintKey }: Keys, id: string, nonce: string): string =>
  createHmac("sha256", Redacted.value(fingerprintKey)).update(`form token|${id}|${nonce}`).digest("base64url")
