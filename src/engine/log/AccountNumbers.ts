/**
 * Numbers of accounts, and ids that lead to their accounts by them (semantics T21).
 *
 * A payer's link names nothing but an id. So an id of a kind that is found by its id alone carries the number of its
 * account in its last four characters, encrypted:
 * - Without the key, nobody can tell these four from random ones, nor two ids of one account from ids of two. They are
 *   masked by a keyed hash of all that stands before them, which no two ids share.
 * - The eleven characters before them are random (65 bits), so an id still cannot be guessed.
 * - An account's number is a keyed hash of its name, so nobody has to hand numbers out. Two accounts may share a
 *   number: it only says where to look, and the account itself says what it holds.
 */
import { Context, Layer, Redacted } from "effect"
import { createHmac, hash } from "node:crypto"
import type { AccountId } from "./Document.ts"
import { idOf } from "./Identifiers.ts"

/** An engine that gives its accounts no numbers leaves the number null. */
export type AccountNumber = number | null

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const LENGTH = 4
/** There are so many numbers: as many as fit into four characters. */
const SPACE = 62 ** LENGTH
/** A number is the remainder of 48 bits: no number is more likely than another by more than one part in ten million. */
const HASH_DIGITS = 12
/** With a key of this length, all that is hashed for a mask fits into one block of SHA-256. */
const MASK_KEY_LENGTH = 32

const ID = /^([a-z]+)_[0-9A-Za-z]{24}$/u

/** `FoundById` is what this module needs to know of a kind. */
export interface FoundById {
  readonly prefix?: string
  readonly foundById?: boolean
}

export interface AccountNumbersShape {
  /** Answers the number of an account, which is always the same under one key. */
  readonly of: (account: AccountId) => AccountNumber
  /** Makes an id of 24 characters behind its prefix. It carries the number if its kind is found by its id alone. */
  readonly idOf: (prefix: string, sequence: number, number: AccountNumber) => string
  /**
   * Reads the number out of an id; undefined if ids of that form carry none. Any other id of that form gives a number.
   */
  readonly numberIn: (id: string) => number | undefined
}

export class AccountNumbers extends Context.Service<AccountNumbers, AccountNumbersShape>()(
  "till/engine/AccountNumbers"
) {
  /** Gives every account a number under the key, and lets the ids of the kinds that are found by them carry it. */
  static readonly layer = (
    kinds: ReadonlyArray<FoundById>,
    key: Redacted.Redacted<Uint8Array>
  ): Layer.Layer<AccountNumbers> => Layer.succeed(AccountNumbers, make(kinds, key))

  /** Gives no account a number: for work on accounts in which nothing is found by its id alone. */
  static readonly layerNone: Layer.Layer<AccountNumbers> = Layer.succeed(AccountNumbers, {
    of: () => null,
    idOf,
    numberIn: () => undefined
  })
}

export const make = (kinds: ReadonlyArray<FoundById>, key: Redacted.Redacted<Uint8Array>): AccountNumbersShape => {
  const prefixes = new Set(kinds.flatMap(({ foundById, prefix }) => (foundById && prefix ? [prefix] : [])))
  const derive = (purpose: string) => createHmac("sha256", Redacted.value(key)).update(purpose).digest("base64url")
  const numberKey = derive("numbers")
  const maskKey = derive("masks").slice(0, MASK_KEY_LENGTH)
  // The key has a fixed length and stands in front. Nobody sees a whole hash, so nobody can extend one.
  const maskOf = (text: string) => remainderOf(hash("sha256", maskKey + text, "hex"))
  return {
    of: (account) => remainderOf(createHmac("sha256", numberKey).update(account).digest("hex")),
    idOf: (prefix, sequence, number) => {
      const id = idOf(prefix, sequence)
      if (number === null || !prefixes.has(prefix)) return id
      const head = id.slice(0, -LENGTH)
      return head + charactersOf((number + maskOf(head)) % SPACE)
    },
    numberIn: (id) => {
      const prefix = ID.exec(id)?.[1]
      if (prefix === undefined || !prefixes.has(prefix)) return undefined
      const masked = numberOf(id.slice(-LENGTH))
      return (masked - maskOf(id.slice(0, -LENGTH)) + SPACE) % SPACE
    }
  }
}

const remainderOf = (digits: string): number => Number.parseInt(digits.slice(0, HASH_DIGITS), 16) % SPACE

const charactersOf = (number: number): string => {
  let text = ""
  for (let rest = number; text.length < LENGTH; rest = Math.floor(rest / 62)) text = ALPHABET[rest % 62]! + text
  return text
}

const numberOf = (characters: string): number => {
  let number = 0
  for (const character of characters) number = number * 62 + ALPHABET.indexOf(character)
  return number
}
