/**
 * Ids and secrets (semantics T21): a prefix and 24 characters of base 62. The first 9 are a counter that follows the
 * clock, in the order of ASCII, so that byte order is the order of creation; the other 15 come from a CSPRNG (89 bits),
 * so that an id cannot be guessed.
 */
import { randomFillSync } from "node:crypto"
import type { Millis } from "./Document.ts"

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const COUNTER_LENGTH = 9
const RANDOM_LENGTH = 15
/** Ids per millisecond before the counter runs ahead of the clock. Keeps the counter a safe integer until the year 2248. */
const COUNTS_PER_MILLISECOND = 1024

/** The counter of the next id: follows the clock, and ascends even where the clock does not. */
export const nextSequence = (sequence: number, now: Millis): number =>
  Math.max(sequence + 1, now * COUNTS_PER_MILLISECOND)

export const idOf = (prefix: string, sequence: number): string =>
  `${prefix}_${counterText(sequence)}${randomText(RANDOM_LENGTH)}`

const counterText = (sequence: number): string => {
  let text = ""
  let rest = sequence
  for (let i = 0; i < COUNTER_LENGTH; i++) {
    text = ALPHABET[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}

const pool = new Uint8Array(8192)
let used = pool.length

/** Unbiased random characters: bytes from 248 on would favour the alphabet's first letters, so they are skipped. */
export const randomText = (length: number): string => {
  let text = ""
  while (text.length < length) {
    if (used === pool.length) {
      randomFillSync(pool)
      used = 0
    }
    const byte = pool[used++]!
    if (byte < 248) text += ALPHABET[byte % 62]
  }
  return text
}
