/**
 * Remembers which idempotency keys an account may have used, in about two bytes each, so that a new key, which nearly
 * every key is, costs no look-up.
 *
 * A Bloom filter: it may take a new key for a used one (then the views decide), but never a used one for new. Two
 * generations, each as long as keys are remembered, so that what has expired makes room.
 *
 * Every key that counts is in a generation, or was used before the filter was made and has not been gathered yet, or
 * has been dropped with its generation. While either of the last two is possible, any key may have been used.
 */
import { RETENTION_MILLIS } from "./RunningTime.ts"
import type { Millis } from "../log/Document.ts"

const BITS_PER_KEY = 16
const PROBES = 5
/** Layers grow by this from one to the next: each that is there is probed for a new key. */
const GROWTH = 8
const LAYER_KEYS_MIN = 64
const LAYER_KEYS_MAX = 2_097_152

/** Bytes that the filters of all accounts share. */
export class FilterRoom {
  readonly bytesMax: number
  #left: number

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
    this.#left = bytesMax
  }

  /** Bytes in use. */
  get bytes(): number {
    return this.bytesMax - this.#left
  }

  /** Says whether there was room. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false
    this.#left -= bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#left += bytes
  }
}

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

  static bytesOf(capacity: number): number {
    return (capacity * BITS_PER_KEY) / 8
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

/** The keys of one stretch of time: layers that grow as they fill up, as long as there is room. */
class Generation {
  latest: Millis = -Infinity
  /** The newest is the largest. */
  readonly #layers: Array<Layer> = []
  #room: FilterRoom
  #taken = 0

  constructor(room: FilterRoom) {
    this.#room = room
  }

  add(first: number, second: number, at: Millis): void {
    this.latest = Math.max(this.latest, at)
    this.#layer().add(first, second)
  }

  /** Without room for more, layers take more than they are made for, and mistake more new keys for used ones. */
  #layer(): Layer {
    const newest = this.#layers.at(-1)
    if (newest !== undefined && newest.size < newest.capacity) return newest
    const capacity = newest === undefined ? LAYER_KEYS_MIN : Math.min(newest.capacity * GROWTH, LAYER_KEYS_MAX)
    const bytes = Layer.bytesOf(capacity)
    if (this.#room.take(bytes)) this.#taken += bytes
    // The first is too small to be refused.
    else if (newest !== undefined) return this.#layers.reduce(emptier)
    const layer = new Layer(capacity)
    this.#layers.push(layer)
    return layer
  }

  has(first: number, second: number): boolean {
    for (const layer of this.#layers) if (layer.has(first, second)) return true
    return false
  }

  release(): void {
    this.#room.giveBack(this.#taken)
    this.#room = NO_ROOM
    this.#taken = 0
  }
}

const NO_ROOM = new FilterRoom(0)

const emptier = (a: Layer, b: Layer): Layer => (a.size / a.capacity < b.size / b.capacity ? a : b)

export class KeyFilter {
  readonly #room: FilterRoom
  /** Keys that were used up to `#since`. */
  #previous: Generation
  #current: Generation
  #since: Millis
  #isComplete = false
  /** Every key that was dropped was used by then. */
  #droppedUntil: Millis = -Infinity

  constructor(now: Millis, room: FilterRoom) {
    this.#room = room
    this.#since = now
    this.#previous = new Generation(room)
    this.#current = new Generation(room)
  }

  /** Every key that was used before the filter was made, and that is remembered, has been added. */
  complete(): void {
    this.#isComplete = true
  }

  add(key: string, at: Millis): void {
    this.#turn(at)
    const generation = at > this.#since ? this.#current : this.#previous
    generation.add(hash(key, FIRST_SEED), hash(key, SECOND_SEED) | 1, at)
  }

  /** Says whether the key may have been used within the retention. */
  mayHave(key: string, now: Millis): boolean {
    if (!this.#isComplete) return true
    this.#turn(now)
    // Only keys that were used ahead of this process's time, or a time that has gone back, get here.
    if (now - this.#droppedUntil < RETENTION_MILLIS) return true
    const first = hash(key, FIRST_SEED)
    const second = hash(key, SECOND_SEED) | 1
    return this.#current.has(first, second) || this.#previous.has(first, second)
  }

  /** Returns the filter's memory to the other filters. The filter must not be used after this. */
  release(): void {
    this.#previous.release()
    this.#current.release()
  }

  #turn(now: Millis): void {
    if (now - this.#since < RETENTION_MILLIS) return
    this.#droppedUntil = Math.max(this.#droppedUntil, this.#previous.latest)
    this.#previous.release()
    this.#previous = this.#current
    this.#current = new Generation(this.#room)
    this.#since = now
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
