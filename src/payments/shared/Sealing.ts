/**
 * Encrypts and authenticates stored secrets, such as those that sign webhooks, with AES-256-GCM and the installation's
 * own key, so that the database alone does not reveal them.
 *
 * A text sealed for one `purpose` does not open for another, because the purpose is authenticated data. Nonces are
 * random; 96 bits do not collide within the number of texts that one key seals (2^32 are safe).
 *
 * The key of the secret in force seals; a text under the secret before it opens, too, and can be sealed anew (semantics
 * operation.roll).
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import { Redacted } from "effect"
import type { Key } from "../../domain/SecretFile.ts"
import { inForce, type KeyringShape } from "./Keyring.ts"

const ALGORITHM = "aes-256-gcm"
const NONCE_BYTES = 12
const TAG_BYTES = 16

export interface Sealing {
  readonly keyring: Pick<KeyringShape, "all" | "position">
  /** Names the kind of text and its owner. */
  readonly purpose: string
}

/** Seals a text: nonce, ciphertext and tag in base64url. */
export const seal = ({ keyring, purpose }: Sealing, text: string): string => {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, Redacted.value(inForce(keyring).sealing), nonce).setAAD(Buffer.from(purpose))
  return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString("base64url")
}

const openWith = (key: Key, purpose: string, sealed: string): string | undefined => {
  const bytes = Buffer.from(sealed, "base64url")
  try {
    const decipher = createDecipheriv(ALGORITHM, Redacted.value(key), bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES
    })
    decipher.setAAD(Buffer.from(purpose)).setAuthTag(bytes.subarray(-TAG_BYTES))
    return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8")
  } catch {
    return undefined
  }
}

const tryOpen = ({ keyring, purpose }: Sealing, sealed: string): string | undefined => {
  for (const keys of [inForce(keyring), ...keyring.all]) {
    const text = openWith(keys.sealing, purpose, sealed)
    if (text !== undefined) return text
  }
  return undefined
}

/** Decrypts a text of `seal`. Throws for any text that was not sealed with a key of the ring and the same purpose. */
export const open = (sealing: Sealing, sealed: string): string => {
  const text = tryOpen(sealing, sealed)
  if (text === undefined) throw new Error(`The ${sealing.purpose} was sealed with another secret, or was changed`)
  return text
}

/** Seals a text anew that is under an older secret; undefined for one that is not, or that does not open. */
export const reseal = (sealing: Sealing, sealed: string): string | undefined => {
  if (openWith(inForce(sealing.keyring).sealing, sealing.purpose, sealed) !== undefined) return undefined
  const text = tryOpen(sealing, sealed)
  return text === undefined ? undefined : seal(sealing, text)
}

/** A sealed secret, and the one before it for a grace period. */
interface SealedPair {
  readonly sealedSecret: string
  readonly previous?: { readonly sealedSecret: string; readonly expiresAt: number }
}

/** Does the same for both secrets of a pair; undefined if neither is under an older secret. */
export const resealPair = <P extends SealedPair>(sealing: Sealing, pair: P): P | undefined => {
  const newest = reseal(sealing, pair.sealedSecret)
  const previous = pair.previous && reseal(sealing, pair.previous.sealedSecret)
  if (newest === undefined && previous === undefined) return undefined
  return {
    ...pair,
    sealedSecret: newest ?? pair.sealedSecret,
    ...(previous !== undefined && { previous: { ...pair.previous, sealedSecret: previous } })
  }
}
