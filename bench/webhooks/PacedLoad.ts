/** The paced load generator's process, seen from the bench. */
import { join } from "node:path"
import { Effect } from "effect"
import type { BenchFailure } from "../BenchFailure.ts"
import type { PacedLoadPlan, PacedLoadRecord } from "./PacedLoadPlan.ts"
import * as Worker from "../Worker.ts"

export interface PacedLoad {
  readonly pid: number
  /** Carries out a load; fails if a single request was not answered with a 200. */
  readonly run: (plan: PacedLoadPlan) => Effect.Effect<PacedLoadRecord, BenchFailure>
}

export const make = Effect.map(
  Worker.make(join(import.meta.dirname, "PacedLoadGenerator.ts")),
  ({ ask, pid }): PacedLoad => ({ pid, run: (plan) => ask<PacedLoadRecord>(plan) })
)
