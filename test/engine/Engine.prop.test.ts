/**
 * After any sequence of commands, what the journal folds to, what the views hold, what memory answers and what a plain
 * model says are the same; also after passivation, after a restart, and after the views are rebuilt.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { DueTimer } from "../../src/engine/Timers.ts"
import { Transaction } from "../../src/engine/Transaction.ts"
import type { EngineOptions, RunningEngine, Storage } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import { Randomness, Seed } from "./Randomness.ts"
import * as Toy from "./Toy.ts"

const ACCOUNTS = ["mer_1:test", "mer_1:live", "mer_2:test"]

const step = Schema.Struct({
  account: Schema.Literals(ACCOUNTS),
  operation: Toy.Operation,
  /** Some clients wait for one another, some do not. */
  wait: Schema.Boolean,
  keyed: Schema.Boolean
})
type Step = typeof step.Type

const steps = Schema.Array(step).check(Schema.isMaxLength(60))

/** Carries operations out and keeps the model of each account in step, in the order in which the actor ran them. */
class Run {
  readonly models = new Map(ACCOUNTS.map((account) => [account, new Toy.Model()] as const))
  readonly seed: Randomness
  #key = 0

  constructor(seed: number) {
    this.seed = new Randomness(seed)
  }

  model(account: string): Toy.Model {
    return this.models.get(account)!
  }

  /** One request; the model answers inside the command, where nothing else can run in the account. */
  request(engine: RunningEngine, { account, keyed, operation }: Step) {
    let expected: ReturnType<Toy.Model["apply"]> | undefined
    const command = Effect.gen({ self: this }, function* () {
      yield* this.seed.jitter(2)
      const exit = yield* Effect.exit(Toy.command(operation))
      yield* this.seed.jitter(2)
      const body = Exit.isSuccess(exit) ? (JSON.parse(exit.value.body) as Toy.Counter) : undefined
      const now = yield* Harness.now
      expected = this.model(account).apply(operation, now, () => body!.id)
      return yield* exit
    })
    const request = Toy.request(keyed ? `key-${this.#key++}` : null)
    return Effect.gen({ self: this }, function* () {
      yield* this.seed.jitter(3)
      const exit = yield* Effect.exit(engine.accounts.execute(account, request, command))
      if (expected === "bug") return assert.isTrue(Exit.isFailure(exit))
      const reply = yield* exit
      assert.deepStrictEqual(
        { status: reply.status, body: reply.body },
        {
          status: expected!.status,
          body: expected!.body
        }
      )
      assert.strictEqual(reply.replayOf, null)
    })
  }

  readonly steps = Effect.fnUntraced({ self: this }, function* (engine: RunningEngine, steps: ReadonlyArray<Step>) {
    const running: Array<Fiber.Fiber<void, unknown>> = []
    for (const step of steps) {
      const fiber = yield* Effect.forkChild(this.request(engine, step))
      if (step.wait) yield* Fiber.join(fiber)
      else running.push(fiber)
    }
    for (const fiber of running) yield* Fiber.join(fiber)
  })

  /** Timers fire among the commands; the model follows. */
  readonly handler = (timer: DueTimer) =>
    Effect.gen({ self: this }, function* () {
      yield* this.seed.jitter(2)
      yield* Toy.handleTimer(timer)
      this.model((yield* Transaction).account).fire(timer.id)
    })

  /** Fold, views, memory and model agree, once all timers have fired. */
  readonly check = Effect.fnUntraced({ self: this }, function* (engine: RunningEngine, storage: Storage) {
    yield* Effect.sleep(SETTLING_MILLIS)
    for (const [account, model] of this.models) {
      assert.deepStrictEqual([...model.timers], [], "timers that did not fire")
      yield* Harness.agrees(engine, account, model, 1 + this.seed.below(4))
      const records = yield* Harness.recordsOf(storage, account)
      assert.deepStrictEqual(
        records.map(({ version }) => version),
        records.map((_, i) => i + 1)
      )
      Harness.idsAscend(records)
      Harness.eventsMatchChanges(records)
    }
    yield* engine.projector.drained
    yield* Harness.verified(storage)
  })
}

/** Longer than any timer of a toy command, and than the scheduler's pause after a failure. */
const SETTLING_MILLIS = 3000
const STEP_BACK_MILLIS = 1500

const property = (steps: ReadonlyArray<Step>, seed: number, options: EngineOptions = {}) =>
  Effect.gen(function* () {
    yield* Harness.startClock
    yield* Harness.flowingTime
    const run = new Run(seed)
    const { handler } = run
    const faults = () => run.seed.jitter(4)
    const storage = yield* Harness.storageInMemory
    const third = Math.ceil(steps.length / 3)

    const first = yield* Harness.startEngine(storage, { faults, handler, idleMillis: 100, ...options })
    yield* run.steps(first, steps.slice(0, third))
    yield* run.check(first, storage)

    // Idle accounts leave memory, and come back as they were.
    yield* Effect.sleep(SETTLING_MILLIS)
    yield* run.check(first, storage)
    yield* run.steps(first, steps.slice(third, 2 * third))
    yield* first.stop

    // A restart, with a clock that has stepped back.
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
    { steps, seed: Seed },
    ({ seed, steps }) => property(steps, seed),
    { arbitrary: { runs: 60, size: 40 } }
  )

  it.effect.prop(
    "loses nothing with a cache of next to nothing",
    { steps, seed: Seed, cacheCapacity: Schema.Literals([0, 1, 3, 10]) },
    ({ cacheCapacity, seed, steps }) => property(steps, seed, { cacheCapacity }),
    { arbitrary: { runs: 40, size: 40 } }
  )
})
