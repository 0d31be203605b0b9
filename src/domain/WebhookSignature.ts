/** The signature of webhooks (spec: Events, Signature). */
import { Redacted } from "effect"
import { createHmac } from "node:crypto"

/**
 * The value of `X-Signature` for a body that is sent at this time (semantics webhooks.signature): the time in Unix
 * seconds, and one `v1=` entry per secret in the given order. The key is the whole secret with its prefix; the signed
 * text is `v1=<time>.<body>`.
 */
export const signatureOf = (
  secrets: ReadonlyArray<Redacted.Redacted>,
  seconds: number,
  body: string | Uint8Array
): string =>
  secrets.reduce((header, secret) => {
    const hmac = createHmac("sha256", Redacted.value(secret)).update(`v1=${seconds}.`).update(body)
    return `${header},v1=${hmac.digest("hex")}`
  }, `t=${seconds}`)
