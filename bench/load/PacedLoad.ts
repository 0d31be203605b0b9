/** The paced load generator's process, seen from the bench. */
import { setPriority } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import type { BenchFailure } from "../BenchFailure.ts"
import type { PacedLoadPlan, PacedLoadRecord } from "./PacedLoadPlan.ts"
import * as Worker from "../Worker.ts"

export interface PacedLoad {
  readonly pid: number
  /** Carries out a load; fails if a single answer was not what the plan allows. */
  readonly run: (plan: PacedLoadPlan) => Effect.Effect<PacedLoadRecord, BenchFailure>
}

const withNiceness = (niceness: number) =>
  Effect.map(Worker.make(join(import.meta.dirname, "PacedLoadGenerator.ts")), ({ ask, pid }): PacedLoad => {
    if (niceness > 0) setPriority(pid, niceness)
    return { pid, run: (plan) => ask<PacedLoadRecord>(plan) }
  })

export const make = withNiceness(0)

/** A load from which the system takes its processor if others need that. */
export const makeYielding = withNiceness(5)
