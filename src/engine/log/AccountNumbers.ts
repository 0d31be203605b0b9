/**
 * Numbers of accounts, and ids that lead to their accounts by them (semantics responses.ids).
 *
 * A payer's link contains only an id. So an id of a kind that is found by its id alone carries the number of its
 * account in its last four characters, encrypted:
 * - Without the key, these four cannot be told from random ones, nor two ids of one account from ids of two. They are
 *   masked by a keyed hash of the characters before them, which no two ids share.
 * - The eleven characters before them are random (65 bits), so an id still cannot be guessed.
 * - An account's number is a keyed hash of its name, so no process has to allocate numbers. Two accounts may share a
 *   number: it only selects the accounts in which to look for the document.
 */
import { Context, Layer, Redacted } from "effect"
import { createHmac, hash } from "node:crypto"
import type { AccountId } from "./Document.ts"
import { idOf } from "./Identifiers.ts"

/** Null in an engine without account numbers. */
export type AccountNumber = number | null

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const LENGTH = 4
/** How many numbers there are: as many as four characters can encode. */
const SPACE = 62 ** LENGTH
/** Hexadecimal digits of the hash (48 bits) whose remainder is the number: the bias is below one in ten million. */
const HASH_DIGITS = 12
/** With a key of this length, the input of a mask's hash fits into one block of SHA-256. */
const MASK_KEY_LENGTH = 32

const ID = /^([a-z]+)_[0-9A-Za-z]{24}$/u

/** The part of a kind that this module uses. */
export interface FoundById {
  readonly prefix?: string
  readonly foundById?: boolean
}

export interface AccountNumbersShape {
  /** Returns the number of an account, which is always the same under one key. */
  readonly of: (account: AccountId) => AccountNumber
  /** Generates an id of 24 characters after its prefix. It carries the number if its kind is found by its id alone. */
  readonly idOf: (prefix: string, sequence: number, number: AccountNumber) => string
  /** Decrypts the number in an id, also in a made-up one; undefined if ids of that form carry none. */
  readonly numberIn: (id: string) => number | undefined
}

export class AccountNumbers extends Context.Service<AccountNumbers, AccountNumbersShape>()(
  "till/engine/AccountNumbers"
) {
  /** Account numbers under a key, for the kinds that are found by their ids. */
  static readonly layer = (
    kinds: ReadonlyArray<FoundById>,
    key: Redacted.Redacted<Uint8Array>
  ): Layer.Layer<AccountNumbers> => Layer.succeed(AccountNumbers, make(kinds, key))

  /** No account numbers: for work on accounts without documents that are found by their ids. */
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
  // A plain hash behind a key in front is safe here: no whole hash is published, so none can be extended.
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
