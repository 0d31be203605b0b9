/**
 * Remembers which idempotency keys an account may have used, in about two bytes each, so that a new key, which nearly
 * every key is, costs no look-up.
 *
 * A Bloom filter: it may take a new key for a used one (then the views decide), but never a used one for new. Two
 * generations, each as long as keys are remembered, so that what has expired makes room. Until it has seen every key
 * that still counts, it answers that a key may have been used.
 */
import type { Millis } from "./Document.ts"

/** An idempotency key is remembered for so long after its request was answered (semantics I5). */
export const RETENTION_MILLIS: Millis = 24 * 3600 * 1000

/** Keys in one generation, at most; beyond that the filter gives up until the next one. */
const KEYS_MAX = 4_000_000
const BITS_PER_KEY = 16
const PROBES = 5
const LAYER_KEYS_MIN = 1024

/** A filter of fixed size. */
class Layer {
  readonly capacity: number
  size = 0
  readonly #bits: Uint32Array
  readonly #mask: number

  /** `capacity` is a power of two. */
  constructor(capacity: number) {
    this.capacity = capacity
    this.#bits = new Uint32Array((capacity * BITS_PER_KEY) / 32)
    this.#mask = capacity * BITS_PER_KEY - 1
  }

  add(first: number, second: number): void {
    this.size++
    for (let i = 0, bit = first; i < PROBES; i++, bit = (bit + second) | 0) {
      const place = bit & this.#mask
      this.#bits[place >>> 5]! |= 1 << (place & 31)
    }
  }

  has(first: number, second: number): boolean {
    for (let i = 0, bit = first; i < PROBES; i++, bit = (bit + second) | 0) {
      const place = bit & this.#mask
      if ((this.#bits[place >>> 5]! & (1 << (place & 31))) === 0) return false
    }
    return true
  }
}

/** The keys of one stretch of time: layers that double in size as they fill up. */
class Generation {
  readonly since: Millis
  readonly layers: Array<Layer> = [new Layer(LAYER_KEYS_MIN)]
  size = 0

  constructor(since: Millis) {
    this.since = since
  }

  add(first: number, second: number): void {
    this.size++
    if (this.size > KEYS_MAX) return
    let newest = this.layers.at(-1)!
    if (newest.size === newest.capacity) {
      newest = new Layer(newest.capacity * 2)
      this.layers.push(newest)
    }
    newest.add(first, second)
  }

  has(first: number, second: number): boolean {
    return this.size > KEYS_MAX || this.layers.some((layer) => layer.has(first, second))
  }
}

export class KeyFilter {
  #current: Generation
  #previous: Generation | null = null
  #completeFrom: Millis

  /** Has seen every key that counts once the retention is over, unless it is told so earlier. */
  constructor(now: Millis) {
    this.#current = new Generation(now)
    this.#completeFrom = now + RETENTION_MILLIS
  }

  /** Every key that was used before the filter was made has been added. */
  complete(): void {
    this.#completeFrom = -Infinity
  }

  add(key: string, now: Millis): void {
    this.#turn(now)
    this.#current.add(hash(key, FIRST_SEED), hash(key, SECOND_SEED) | 1)
  }

  /** Says whether the key may have been used within the retention. */
  mayHave(key: string, now: Millis): boolean {
    if (now < this.#completeFrom) return true
    this.#turn(now)
    const first = hash(key, FIRST_SEED)
    const second = hash(key, SECOND_SEED) | 1
    return this.#current.has(first, second) || (this.#previous?.has(first, second) ?? false)
  }

  #turn(now: Millis): void {
    if (now - this.#current.since < RETENTION_MILLIS) return
    this.#previous = this.#current
    this.#current = new Generation(now)
  }
}

const FIRST_SEED = 0x811c9dc5
const SECOND_SEED = 0x9e3779b9

/** FNV-1a with a final mix, over UTF-16 units. */
const hash = (text: string, seed: number): number => {
  let state = seed
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193)
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35)
  return state ^ (state >>> 16)
}
