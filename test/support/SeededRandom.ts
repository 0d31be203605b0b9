/** Random choices outside of a test runner; the caller gives the seed. */
import { Effect } from "effect"

/** Random choices that a seed determines. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A number from 0 up to, not including, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let bits = this.#state
    bits = Math.imul(bits ^ (bits >>> 15), bits | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** An integer from `minimum` to `maximum`, both included. */
  integer(minimum: number, maximum: number): number {
    return minimum + this.below(maximum - minimum + 1)
  }

  /** A whole number from 0 up to, not including, `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<A>(choices: ReadonlyArray<A>): A {
    return choices[this.below(choices.length)] as A
  }

  /** Yields to other fibers up to `most` times. */
  jitter(most: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const turns = this.below(most + 1)
      return turns === 0 ? Effect.void : Effect.repeat(Effect.yieldNow, { times: turns - 1 })
    })
  }
}
