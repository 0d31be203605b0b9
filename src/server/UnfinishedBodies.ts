/**
 * Bounds the memory of unfinished bodies. If the limit is reached, the holder with the most bytes loses the body that
 * arrives at the slowest pace. So a client that leaves bodies unfinished loses its own, and other clients' bodies
 * arrive.
 */

/** A body that is arriving. */
export interface Unfinished {
  /** The account or the address that the body counts for. */
  readonly holder: string
  /** The start of its arrival, by `performance.now()`. */
  readonly since: number
  /** The bytes counted so far. */
  bytes: number
  /** Refuses the body, whose bytes no longer count. */
  readonly giveWay: () => void
}

export class UnfinishedBodies {
  readonly #bytesMax: number
  readonly #bodies = new Set<Unfinished>()
  /** Bytes by holder. */
  readonly #held = new Map<string, number>()
  #total = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Counts a body's length so far. The body itself may be the one that is refused. */
  grow(body: Unfinished, bytes: number): void {
    this.#bodies.add(body)
    this.#count(body, bytes - body.bytes)
    while (this.#total > this.#bytesMax) {
      const slowest = this.#slowestOfLargest()
      this.leave(slowest)
      slowest.giveWay()
    }
  }

  /** Stops counting the body. May be called repeatedly. */
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
