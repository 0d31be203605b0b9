/**
 * After any sequence of commands, the fold of the journal, the views, the answers from memory and a plain model agree;
 * also after passivation, a restart, and a rebuild of the views.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { FaultPoint } from "./storage/Faults.ts"
import type { EngineOptions } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import { ModelRun, type Step, Steps } from "./ModelRun.ts"
import { Random, Seed } from "../support/Random.ts"

/** Longer than the idle time of an account, and than any timer of a toy command. */
const SETTLING_MILLIS = 3000
const STEP_BACK_MILLIS = 1500

const property = (steps: ReadonlyArray<Step>, seed: number, options: EngineOptions = {}) =>
  Effect.gen(function* () {
    yield* Harness.startClock
    yield* Harness.flowingTime
    const run = new ModelRun(seed)
    const { handler } = run
    const faults = () => run.seed.jitter(4)
    const storage = yield* Harness.storageInMemory
    const third = Math.ceil(steps.length / 3)

    const first = yield* Harness.startEngine(storage, { faults, handler, idleMillis: 100, ...options })
    yield* run.steps(first, steps.slice(0, third))
    yield* run.check(first, storage)

    // Idle accounts leave memory, and come back unchanged.
    yield* Effect.sleep(SETTLING_MILLIS)
    yield* run.check(first, storage)
    yield* run.steps(first, steps.slice(third, 2 * third))
    yield* first.stop

    // A restart with a clock that has stepped back.
    yield* TestClock.setTime((yield* Harness.now) - STEP_BACK_MILLIS)
    const second = yield* Harness.startEngine(storage, { faults, handler, ...options })
    yield* run.steps(second, steps.slice(2 * third))
    yield* run.check(second, storage)
    yield* second.stop

    yield* Harness.rebuilt(storage)
    const last = yield* Harness.startEngine(storage, options)
    yield* run.check(last, storage)
    yield* last.stop
  })

describe("the engine", () => {
  it.effect.prop(
    "folds, views, memory and the model agree after any commands, passivation, restarts and a rebuild",
    { steps: Steps, seed: Seed },
    ({ seed, steps }) => property(steps, seed),
    { arbitrary: { runs: 600, size: 40 } }
  )

  it.effect.prop(
    "loses nothing with a tiny cache",
    { steps: Steps, seed: Seed, cacheBytes: Schema.Literals([0, 500, 1500, 5000]) },
    ({ cacheBytes, seed, steps }) => {
      // Views that lag behind: documents that they do not have must stay in memory.
      const random = new Random(seed)
      const faults = (point: FaultPoint) =>
        Effect.suspend(() => (point === "apply.before" ? Effect.sleep(random.below(400)) : random.jitter(2)))
      return property(steps, seed, { cacheBytes, faults })
    },
    { arbitrary: { runs: 60, size: 40 } }
  )
})
