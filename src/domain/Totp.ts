/**
 * Codes of authenticator apps: TOTP (RFC 6238) with the parameters that every app supports, SHA-1, six digits and steps
 * of 30 seconds. Written here, because the two libraries for it bring their own SHA-1 along, and Node has one.
 */
import { createHmac, timingSafeEqual } from "node:crypto"

const STEP_SECONDS = 30
const DIGITS = 6
/** The alphabet of base32 (RFC 4648). */
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

/** Length of a secret in bytes, as RFC 4226 recommends. */
export const SECRET_BYTES = 20

/** Encodes bytes, whose number is a multiple of five, in base32. */
export const base32 = (bytes: Uint8Array): string => {
  let text = ""
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    bits += 8
    for (; bits >= 5; bits -= 5) text += ALPHABET[(value >>> (bits - 5)) & 31]!
    value &= 31
  }
  return text
}

/** Returns the code of a step, counted from the Unix epoch. */
export const codeOf = (secret: Uint8Array, step: number): string => {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac("sha1", secret).update(counter).digest()
  const number = mac.readUInt32BE(mac.at(-1)! & 15) & 0x7fff_ffff
  return String(number % 10 ** DIGITS).padStart(DIGITS, "0")
}

/** Returns the step at a time, in Unix seconds. */
export const stepAt = (seconds: number): number => Math.floor(seconds / STEP_SECONDS)

/** Returns the newest step whose code it is: the current step, or one step earlier or later, as clocks differ. */
export const stepOf = (secret: Uint8Array, code: string, seconds: number): number | undefined => {
  if (!/^\d{6}$/.test(code)) return undefined
  const now = stepAt(seconds)
  return [now + 1, now, now - 1].find((step) => timingSafeEqual(Buffer.from(codeOf(secret, step)), Buffer.from(code)))
}

/** Returns the address that an app reads from a QR code. */
export const addressOf = (
  secret: Uint8Array,
  { account, issuer }: { readonly issuer: string; readonly account: string }
): string => {
  const label = [issuer, account].map(encodeURIComponent).join(":")
  return `otpauth://totp/${label}?secret=${base32(secret)}&issuer=${encodeURIComponent(issuer)}`
}
