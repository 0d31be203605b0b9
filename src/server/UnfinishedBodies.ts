/**
 * Bounds the memory of bodies that have not come to their end. Whoever fills it does so at their own cost: where all of
 * it is taken, the holder with the most bytes gives way, by the body that arrives at the slowest pace. A client that
 * leaves bodies unfinished so refuses its own, and its neighbours' arrive.
 */

/** A body that arrives. */
export interface Unfinished {
  /** An account, or else an address. */
  readonly holder: string
  /** By `performance.now()`: it has been arriving since then. */
  readonly since: number
  /** Counted so far. */
  bytes: number
  /** Refuses the body, whose bytes no longer count. */
  readonly giveWay: () => void
}

export class UnfinishedBodies {
  readonly #bytesMax: number
  readonly #bodies = new Set<Unfinished>()
  /** Bytes by holder, and in all. */
  readonly #held = new Map<string, number>()
  #total = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Counts a body's length so far. The body itself may be the one that has to give way. */
  grow(body: Unfinished, bytes: number): void {
    this.#bodies.add(body)
    this.#count(body, bytes - body.bytes)
    while (this.#total > this.#bytesMax) {
      const slowest = this.#slowestOfLargest()
      this.leave(slowest)
      slowest.giveWay()
    }
  }

  /** Counts the body no longer, as often as it is called. */
  leave(body: Unfinished): void {
    this.#bodies.delete(body)
    this.#count(body, -body.bytes)
  }

  #count(body: Unfinished, change: number): void {
    const held = (this.#held.get(body.holder) ?? 0) + change
    body.bytes += change
    this.#total += change
    if (held === 0) this.#held.delete(body.holder)
    else this.#held.set(body.holder, held)
  }

  #slowestOfLargest(): Unfinished {
    const now = performance.now()
    const pace = ({ bytes, since }: Unfinished) => bytes / (now - since)
    const held = ({ holder }: Unfinished) => this.#held.get(holder)!
    return [...this.#bodies].reduce((worst, body) => {
      const more = held(body) - held(worst)
      return more > 0 || (more === 0 && pace(body) < pace(worst)) ? body : worst
    })
  }
}
