/**
 * `till verify` on the installation of a running Till: the data that a load has left must be intact. The command runs
 * in a process of its own and writes nothing.
 */
import { Effect } from "effect"
import type { BenchFailure } from "./BenchFailure.ts"
import type { Installation } from "./Contender.ts"
import * as TillCommand from "./TillCommand.ts"

/** Runs the verification; returns its duration in seconds, and fails if it finds anything. */
export const verify = (installation: Installation): Effect.Effect<number, BenchFailure> =>
  Effect.suspend(() => {
    const began = performance.now()
    return Effect.map(TillCommand.run(installation, ["verify"]), () => (performance.now() - began) / 1000)
  })
