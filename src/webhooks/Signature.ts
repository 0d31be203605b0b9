/** The signature of a delivery (spec: Events, Signature; semantics W5). */
import { Redacted } from "effect"
import { createHmac } from "node:crypto"

/**
 * The value of `X-Signature` for a body that is sent now: the time in Unix seconds, and one `v1=` entry per secret in
 * the order given. The key is the whole secret, its prefix included; what is signed is `v1=<time>.<body>`.
 */
export const signatureOf = (
  secrets: ReadonlyArray<Redacted.Redacted>,
  seconds: number,
  body: string | Buffer
): string =>
  secrets.reduce((header, secret) => {
    const hmac = createHmac("sha256", Redacted.value(secret)).update(`v1=${seconds}.`).update(body)
    return `${header},v1=${hmac.digest("hex")}`
  }, `t=${seconds}`)
