/** The load generator's process, seen from the bench. One process for the whole run, so that its code is warm. */
import { fork } from "node:child_process"
import { join } from "node:path"
import { Effect } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import type { LoadAnswer, LoadPlan, LoadResult } from "./LoadPlan.ts"

/** Carries out a load; fails if a single answer was not what it should be. */
export type Load = (plan: LoadPlan) => Effect.Effect<LoadResult, BenchFailure>

export const make = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => fork(join(import.meta.dirname, "LoadGenerator.ts"))),
    (child) => Effect.sync(() => void (child.connected && child.disconnect()))
  ),
  (child): Load =>
    (plan) =>
      Effect.callback<LoadResult, BenchFailure>((resume) => {
        const fail = (problem: string) => resume(Effect.fail(new BenchFailure({ problem })))
        const ended = () => fail("The load generator has ended.")
        child.once("exit", ended)
        child.once("message", (answer: LoadAnswer) => {
          child.off("exit", ended)
          if ("result" in answer) resume(Effect.succeed(answer.result))
          else fail(answer.failure)
        })
        child.send(plan)
      })
)
