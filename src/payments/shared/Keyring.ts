/**
 * The keys that derive from the installation's secret, and from the secret before it while that is being rolled
 * (semantics operation.roll). One of the secrets is in force: it seals and signs. All of them open and verify.
 *
 * The database decides which secret is in force, so that all processes change at the same time. A process that has not
 * noticed the change yet seals with the older secret, which the others still open.
 */
import { createHmac } from "node:crypto"
import { Context, Redacted } from "effect"
import * as SecretFile from "../../domain/SecretFile.ts"
import type { Key } from "../../domain/SecretFile.ts"

/** The keys of one secret. */
export interface Keys {
  /** Names the secret without revealing it, in hex. */
  readonly print: string
  /** Encrypts stored secrets, such as those that sign webhooks. 32 bytes. */
  readonly sealing: Key
  /** Signs the tokens of forms. */
  readonly forms: Key
}

export interface KeyringShape {
  /** Newest first. */
  readonly all: ReadonlyArray<Keys>
  /** Names the keys that stay the same through every roll. */
  readonly lastingPrint: string
  /** The place in `all` of the secret that is in force. */
  readonly position: () => number
  /** Puts the secret with this print in force. Returns false if it is unknown. */
  readonly follow: (print: string) => boolean
}

export class Keyring extends Context.Service<Keyring, KeyringShape>()("till/payments/Keyring") {}

/** The newest secret is in force until `follow` names another one. */
export const make = (all: ReadonlyArray<Keys>, lastingPrint: string): KeyringShape => {
  let position = 0
  return {
    all,
    lastingPrint,
    position: () => position,
    follow: (print) => {
      const found = all.findIndex((keys) => keys.print === print)
      if (found >= 0) position = found
      return found >= 0
    }
  }
}

const printOf = (sealing: Key): string =>
  createHmac("sha256", Redacted.value(sealing)).update("print of the secret").digest("hex")

export const ofFile = (file: SecretFile.SecretFile): KeyringShape => {
  const forms = SecretFile.keysOf(file, "form tokens")
  const keys = SecretFile.keysOf(file, "sealed secrets").map((sealing, i) => {
    return { print: printOf(sealing), sealing, forms: forms[i]! }
  })
  return make(keys, SecretFile.lastingPrintOf(file))
}

export const inForce = ({ all, position }: Pick<KeyringShape, "all" | "position">): Keys => all[position()]!

/** True if texts under an older secret are to be sealed anew. */
export const isRolling = ({ all, position }: KeyringShape): boolean => all.length > 1 && position() === 0
