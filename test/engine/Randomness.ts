/**
 * Random choices of a test run from one seed, so that a run whose seed is printed can be run again: the property
 * generates the seed, everything else follows from it.
 */
import { Effect, Schema } from "effect"

/** What a property takes to generate a seed. */
export const Seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0x7fff_ffff }))

export class Randomness {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A number from 0 up to 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let bits = this.#state
    bits = Math.imul(bits ^ (bits >>> 15), bits | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** A whole number from 0 up to `limit`, without it. */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<A>(choices: ReadonlyArray<A>): A {
    return choices[this.below(choices.length)] as A
  }

  /** Lets other fibers go first, up to `most` times. */
  jitter(most: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const turns = this.below(most + 1)
      return turns === 0 ? Effect.void : Effect.repeat(Effect.yieldNow, { times: turns - 1 })
    })
  }
}
