/**
 * The secret with which `till listen` signs forwarded webhooks: one for each address and merchant, the same in every
 * run, so that an app need not be started again with another one.
 *
 * Till makes a new secret with each webhook endpoint. The command verifies webhooks with that one, and signs them anew
 * with its own, which derives from a random key in a file of the person who runs it.
 */
import type { Redacted } from "effect"
import { createHmac, randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import { signatureOf } from "../domain/WebhookSignature.ts"

const KEY_BYTES = 32

/** Reads the key, or makes it. Without a place to keep it, the key lasts as long as the command. */
const keyIn = (folder: string): Buffer => {
  const file = Path.join(folder, "listen-key")
  const made = randomBytes(KEY_BYTES)
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    fs.writeFileSync(file, made, { mode: 0o600, flag: "wx" })
    return made
  } catch {
    // It exists already, or cannot be written.
  }
  try {
    const kept = fs.readFileSync(file)
    return kept.length === KEY_BYTES ? kept : made
  } catch {
    return made
  }
}

/** Returns the secret for webhooks of a merchant's test mode that are forwarded to an address. */
export const listenSecret = (folder: string, merchant: string, forwardTo: URL): string => {
  const digest = createHmac("sha256", keyIn(folder)).update(`${merchant} ${forwardTo.href}`).digest("hex")
  return `whsec_${digest.slice(0, 32)}`
}

/** Returns the `X-Signature` of a body at the time of another signature, which was verified. */
export const signedAnew = (signature: string, body: Uint8Array, secret: Redacted.Redacted): string => {
  const [, seconds] = /(?:^|,)\s*t=(\d+)/u.exec(signature)!
  return signatureOf([secret], Number(seconds), body)
}
