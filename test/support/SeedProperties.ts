/** Makes every property of a test file start from the seed of the run (vitest's `setupFiles`). */
import { Arbitrary } from "effect"
import { runSeed } from "./Random.ts"

Arbitrary.configureGlobal({ check: { seed: runSeed } })
