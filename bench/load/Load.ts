/** The load generator's process as the bench uses it. One process for the whole run, so that its code is warm. */
import { join } from "node:path"
import { Effect } from "effect"
import type { BenchFailure } from "../BenchFailure.ts"
import * as Worker from "../Worker.ts"
import type { LoadPlan, LoadResult } from "./LoadPlan.ts"

export interface Load {
  readonly pid: number
  /** Runs a load; fails on the first wrong answer. */
  readonly run: (plan: LoadPlan) => Effect.Effect<LoadResult, BenchFailure>
}

export const make = Effect.map(Worker.make(join(import.meta.dirname, "LoadGenerator.ts")), ({ ask, pid }): Load => ({
  pid,
  run: (plan) => ask<LoadResult>(plan)
}))
