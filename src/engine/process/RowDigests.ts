/**
 * Digests of rows by their ids, for verification: 32 to 64 bytes each, where the rows would take 400.
 *
 * Ids and texts are compared by 64-bit hashes with random factors in every table, so two rows do not collide by chance,
 * nor can an attacker construct a collision. A row that was taken is forgotten: the rows left at the end were missing.
 */
/** 32-bit numbers of an entry: two of the id's hash and two of the text's. The first of each pair is never 0. */
const NUMBERS = 4
const CAPACITY_MIN = 1024

export class RowDigests {
  readonly #hash = makeHash()
  #entries = new Uint32Array(CAPACITY_MIN * NUMBERS)
  #mask = CAPACITY_MIN - 1
  #size = 0
  #taken = 0

  get size(): number {
    return this.#size
  }

  get left(): number {
    return this.#size - this.#taken
  }

  /** Adds a row, or replaces the one with its id. Only before the first `take`. */
  set(id: string, text: string): void {
    if (2 * this.#size > this.#mask) this.#grow()
    const { high, low } = this.#hash(id)
    const at = this.#find(high, low)
    const entries = this.#entries
    if (entries[at] === 0) this.#size++
    const content = this.#hash(text)
    entries[at] = high
    entries[at + 1] = low
    entries[at + 2] = content.high
    entries[at + 3] = content.low
  }

  /** Takes the row with this id if it has this text. */
  take(id: string, text: string): "taken" | "other" | "absent" {
    const at = this.#indexOf(id)
    if (at === undefined) return "absent"
    const entries = this.#entries
    const { high, low } = this.#hash(text)
    if (entries[at + 2] !== high || entries[at + 3] !== low) return "other"
    entries[at + 2] = 0
    this.#taken++
    return "taken"
  }

  has(id: string): boolean {
    const at = this.#indexOf(id)
    return at !== undefined && this.#entries[at + 2] !== 0
  }

  clear(): void {
    this.#entries.fill(0)
    this.#size = this.#taken = 0
  }

  /** Index of the id's entry; undefined if there is none. */
  #indexOf(id: string): number | undefined {
    const { high, low } = this.#hash(id)
    const at = this.#find(high, low)
    return this.#entries[at] === 0 ? undefined : at
  }

  /** Index of the entry with this hash, or of the free slot for it. */
  #find(high: number, low: number): number {
    const entries = this.#entries
    for (let slot = low & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const at = slot * NUMBERS
      if (entries[at] === 0 || (entries[at] === high && entries[at + 1] === low)) return at
    }
  }

  #grow(): void {
    const before = this.#entries
    this.#entries = new Uint32Array(2 * before.length)
    this.#mask = this.#entries.length / NUMBERS - 1
    for (let from = 0; from < before.length; from += NUMBERS) {
      const high = before[from]!
      if (high === 0) continue
      const at = this.#find(high, before[from + 1]!)
      for (let i = 0; i < NUMBERS; i++) this.#entries[at + i] = before[from + i]!
    }
  }
}

interface Hash {
  /** Never 0. */
  high: number
  low: number
}

/** Makes a hash function with random factors, which returns the same object every time, for speed. */
const makeHash = (): ((text: string) => Hash) => {
  const [seedHigh = 0, seedLow = 0, ...factors] = crypto.getRandomValues(new Uint32Array(4))
  const [factorHigh, factorLow] = [factors[0]! | 1, factors[1]! | 1]
  const answer: Hash = { high: 1, low: 0 }
  return (text) => {
    let [high, low] = [seedHigh, seedLow]
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      high = Math.imul(((high << 5) | (high >>> 27)) ^ code, factorHigh)
      low = Math.imul(((low << 7) | (low >>> 25)) ^ code, factorLow)
    }
    answer.high = mixBits(high) || 1
    answer.low = mixBits(low)
    return answer
  }
}

/** Makes every bit depend on every other. */
const mixBits = (bits: number): number => {
  let mixed = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
