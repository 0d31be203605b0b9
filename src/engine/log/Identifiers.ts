/**
 * Ids and secrets (semantics responses.secrets): a prefix and 24 characters of base 62. The first 9 are a counter that
 * follows the clock, with digits in ASCII order, so that byte order is the order of creation; the other 15 come from a
 * CSPRNG (89 bits), so that an id cannot be guessed.
 */
import { randomFillSync } from "node:crypto"
import type { Millis } from "./Document.ts"

const ALPHABET = Buffer.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
const UNDERSCORE = 0x5f
const COUNTER_LENGTH = 9
const RANDOM_LENGTH = 15
/** Ids per millisecond before the counter runs ahead of the clock; safe integers until the year 2248. */
const COUNTS_PER_MILLISECOND = 1024
const COUNTER_MAX = Number.MAX_SAFE_INTEGER

/** Returns the counter of the next id: it follows the clock, and ascends even where the clock steps back. */
export const nextSequence = (sequence: number, now: Millis): number =>
  Math.max(sequence + 1, now * COUNTS_PER_MILLISECOND)

export const idOf = (prefix: string, sequence: number): string =>
  scratch.toString("latin1", 0, fillRandom(writeCounter(prefix, sequence), RANDOM_LENGTH))

/** Returns a text that sorts between the ids generated before a time in milliseconds and later ones. */
export const idAt = (prefix: string, time: Millis): string => {
  const sequence = Math.min(Math.max(time * COUNTS_PER_MILLISECOND, 0), COUNTER_MAX)
  return scratch.toString("latin1", 0, writeCounter(prefix, sequence))
}

export const timeOf = (sequence: number): Millis => Math.floor(sequence / COUNTS_PER_MILLISECOND)

export const timeIn = (id: string): Millis => {
  const start = id.indexOf("_") + 1
  const counter = Buffer.from(id.slice(start, start + COUNTER_LENGTH), "latin1")
  return timeOf(counter.reduce((sequence, letter) => sequence * 62 + ALPHABET.indexOf(letter), 0))
}

/** Writes the prefix and the counter, and returns the end position. */
const writeCounter = (prefix: string, sequence: number): number => {
  const start = scratch.write(prefix, "latin1") + 1
  scratch[start - 1] = UNDERSCORE
  let rest = sequence
  for (let place = start + COUNTER_LENGTH - 1; place >= start; place--) {
    scratch[place] = ALPHABET[rest % 62]!
    rest = Math.floor(rest / 62)
  }
  return start + COUNTER_LENGTH
}

/** Returns random characters for a secret, at most 64. */
export const randomText = (length: number): string => scratch.toString("latin1", 0, fillRandom(0, length))

// Ids are assembled in this buffer: appending character by character would allocate a string for each. All calls share
// the buffers, because no content outlives a call.
const scratch = Buffer.alloc(128)
const pool = new Uint8Array(8192)
let used = pool.length

/**
 * Writes random characters and returns the end position. Bytes from 248 on are skipped: they would make the first
 * letters of the alphabet more likely.
 */
const fillRandom = (start: number, length: number): number => {
  const end = start + length
  for (let place = start; place < end;) {
    if (used === pool.length) {
      randomFillSync(pool)
      used = 0
    }
    const byte = pool[used++]!
    if (byte < 248) scratch[place++] = ALPHABET[byte % 62]!
  }
  return end
}
