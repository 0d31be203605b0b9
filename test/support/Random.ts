/**
 * The one source of random choices. Every run of the tests has a seed, which it prints first; `TILL_SEED` gives it
 * another run's. Properties start from it, and so does whatever takes `runSeed`. A property that fails prints a token
 * besides, which replays the failing case alone: `{ arbitrary: { replay: "…" } }`.
 */
import { Schema } from "effect"
import { inject } from "vitest"

declare module "vitest" {
  export interface ProvidedContext {
    readonly seed: number
  }
}

/** What a property takes to generate a seed. */
export const Seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0x7fff_ffff }))

/** The seed of this run. */
export const runSeed: number = inject("seed")

export { Random } from "./SeededRandom.ts"
