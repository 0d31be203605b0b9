/** The paced load generator's process as the bench uses it. */
import { setPriority } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import type { BenchFailure } from "../BenchFailure.ts"
import type { PacedLoadPlan, PacedLoadRecord } from "./PacedLoadPlan.ts"
import * as Worker from "../Worker.ts"

export interface PacedLoad {
  readonly pid: number
  /** Runs a load; fails on the first answer that the plan does not allow. */
  readonly run: (plan: PacedLoadPlan) => Effect.Effect<PacedLoadRecord, BenchFailure>
}

const withNiceness = (niceness: number) =>
  Effect.map(Worker.make(join(import.meta.dirname, "PacedLoadGenerator.ts")), ({ ask, pid }): PacedLoad => {
    if (niceness > 0) setPriority(pid, niceness)
    return { pid, run: (plan) => ask<PacedLoadRecord>(plan) }
  })

export const make = withNiceness(0)

/** Starts a generator of lower priority, which leaves its core to processes that need it. */
export const makeYielding = withNiceness(5)
