/**
 * The part of `node:crypto` that the verification of webhooks uses, in plain JavaScript. The packed client has it in
 * the place of Node's, so that the client can be imported where there is no Node.
 */
import { hmac } from "@noble/hashes/hmac.js"
import { sha256 } from "@noble/hashes/sha2.js"

const bytesOf = (data: string | Uint8Array): Uint8Array =>
  typeof data === "string" ? new TextEncoder().encode(data) : data

/** Only HMAC-SHA256. */
export const createHmac = (_algorithm: "sha256", secret: string) => {
  const hash = hmac.create(sha256, bytesOf(secret))
  const self = {
    update: (data: string | Uint8Array) => {
      hash.update(bytesOf(data))
      return self
    },
    digest: (): Uint8Array => hash.digest()
  }
  return self
}

/** Compares in a time that depends on the length alone. */
export const timingSafeEqual = (a: Uint8Array, b: Uint8Array): boolean => {
  if (a.length !== b.length) throw new RangeError("Input buffers must have the same byte length")
  let difference = 0
  for (let index = 0; index < a.length; index++) difference |= a[index]! ^ b[index]!
  return difference === 0
}
