/**
 * Sealing encrypts secrets that have to be stored and read again, such as those that sign webhooks, and authenticates them,
 * by AES-256-GCM with a key of the installation's own. So the database alone does not give them away.
 *
 * What is sealed for one purpose does not open for another: `purpose` is authenticated along with it. A nonce is random
 * and never reused within what one key is ever going to seal (96 bits; 2^32 texts are safe).
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import { Redacted } from "effect"

const ALGORITHM = "aes-256-gcm"
const NONCE_BYTES = 12
const TAG_BYTES = 16

export interface Sealing {
  /** 32 bytes. */
  readonly key: Redacted.Redacted<Uint8Array>
  /** Names what is sealed, and whose it is. */
  readonly purpose: string
}

/** Seals a text: nonce, ciphertext and tag in base64url. */
export const seal = ({ key, purpose }: Sealing, text: string): string => {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, Redacted.value(key), nonce).setAAD(Buffer.from(purpose))
  return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString("base64url")
}

/** Opens what `seal` has made. Throws for anything that was not sealed with the same key and for the same purpose. */
export const open = ({ key, purpose }: Sealing, sealed: string): string => {
  const bytes = Buffer.from(sealed, "base64url")
  const nonce = bytes.subarray(0, NONCE_BYTES)
  const decipher = createDecipheriv(ALGORITHM, Redacted.value(key), nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(purpose))
    .setAuthTag(bytes.subarray(-TAG_BYTES))
  return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8")
}
