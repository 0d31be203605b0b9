/**
 * The source of all random choices. Every run of the tests prints its seed first; `TILL_SEED` sets the seed of another
 * run. Properties and `runSeed` start from it. A failed property also prints a token that replays the failing case
 * alone: `{ arbitrary: { replay: "…" } }`.
 */
import { Schema } from "effect"
import { inject } from "vitest"

declare module "vitest" {
  export interface ProvidedContext {
    readonly seed: number
  }
}

/** Generates a seed in a property. */
export const Seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0x7fff_ffff }))

/** The seed of this run. */
export const runSeed: number = inject("seed")

export { Random } from "./SeededRandom.ts"
