/**
 * Random requests of several clients to several accounts, with a plain model that follows them, and the check that the
 * engine's journal, views, memory and answers match the model.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema } from "effect"
import { runOnce } from "../../src/engine/Accounts.ts"
import { isAwaiting, type RequestIdentity } from "../../src/engine/log/Record.ts"
import type { DueTimer } from "../../src/engine/actor/Timers.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import type { RunningEngine, Storage } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import { Random } from "../support/Random.ts"
import * as Toy from "./Toy.ts"

/** Longer than any timer of a toy command, a step of the clock, and the scheduler's pause after a failure. */
const SETTLING_MILLIS = 5000

export const ACCOUNTS = ["mer_1:test", "mer_1:live", "mer_2:test"]

/** One request of a client. */
export const Step = Schema.Struct({
  account: Schema.Literals(ACCOUNTS),
  operation: Toy.Operation,
  /** Whether the client waits for the answer before its next request. */
  wait: Schema.Boolean,
  keyed: Schema.Boolean
})
export type Step = typeof Step.Type

export const Steps = Schema.Array(Step).check(Schema.isMaxLength(60))

/** Runs operations, and updates the model of each account in the order in which its actor ran them. */
export class ModelRun {
  readonly models = new Map(ACCOUNTS.map((account) => [account, new Toy.Model()] as const))
  readonly seed: Random
  #key = 0

  constructor(seed: number) {
    this.seed = new Random(seed)
  }

  model(account: string): Toy.Model {
    return this.models.get(account)!
  }

  get timersSet(): number {
    return [...this.models.values()].reduce((sum, { timers }) => sum + timers.size, 0)
  }

  /** Sends one request; the model runs inside the command, where nothing else can run in the account. */
  request(engine: RunningEngine, { account, keyed, operation }: Step) {
    let expected: ReturnType<Toy.Model["apply"]> | undefined
    const command = Effect.gen({ self: this }, function* () {
      yield* this.seed.jitter(2)
      const exit = yield* Effect.exit(Toy.command(operation))
      yield* this.seed.jitter(2)
      const idOf = ({ body, kept }: Toy.Answer) =>
        kept !== null && isAwaiting(kept) ? kept.awaits : (JSON.parse(body) as Toy.Counter).id
      const now = yield* Harness.now
      // Without a key, no request could wait for an operation, so it is an increment.
      const isAtOnce = operation.op === "begin" && !keyed
      const modelled = isAtOnce ? ({ op: "increment", slot: operation.slot, by: 1 } as const) : operation
      expected = this.model(account).apply(modelled, now, () => idOf((exit as Exit.Success<Toy.Answer>).value))
      return yield* exit
    })
    const request = Toy.request(keyed ? `key-${this.#key++}` : null)
    return Effect.gen({ self: this }, function* () {
      yield* this.seed.jitter(3)
      const exit = yield* Effect.exit(runOnce(engine.accounts, account, request, () => command))
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
      const { kept } = reply as Toy.Answer
      if (kept !== null && isAwaiting(kept)) yield* this.outcome(engine, account, request, kept.awaits)
    })
  }

  /** Waits for the outcome of an operation, and repeats its request. */
  readonly outcome = Effect.fnUntraced(
    { self: this },
    function* ({ accounts }: RunningEngine, account: string, request: RequestIdentity, id: string) {
      const answer = yield* accounts.awaited(account, request)
      const expected = this.model(account).outcomes.get(id)
      if (expected === null) return assert.isUndefined(answer)
      const { apiVersion, id: replayOf } = request
      assert.deepStrictEqual(answer, { status: expected!.status, body: expected!.body, apiVersion, replayOf })
      const repeated = yield* runOnce(accounts, account, { ...request, id: "req_repeat" }, () => Effect.die("again"))
      assert.deepStrictEqual({ ...repeated }, { ...answer! })
    }
  )

  readonly steps = Effect.fnUntraced({ self: this }, function* (engine: RunningEngine, steps: ReadonlyArray<Step>) {
    const running: Array<Fiber.Fiber<void, unknown>> = []
    for (const step of steps) {
      const fiber = yield* Effect.forkChild(this.request(engine, step))
      if (step.wait) yield* Fiber.join(fiber)
      else running.push(fiber)
    }
    for (const fiber of running) yield* Fiber.join(fiber)
  })

  /** Handles timers, which fire between commands; the model follows. */
  readonly handler = (timer: DueTimer) =>
    Effect.gen({ self: this }, function* () {
      yield* this.seed.jitter(2)
      yield* Toy.handleTimer(timer)
      this.model((yield* Transaction).account).fire(timer.id)
    })

  /** Checks that fold, views, memory and model agree after all timers have fired. */
  readonly check = Effect.fnUntraced({ self: this }, function* (engine: RunningEngine, storage: Storage) {
    for (let waited = 0; this.timersSet > 0 && waited < SETTLING_MILLIS; waited += 20) yield* Effect.sleep(20)
    for (const [account, model] of this.models) {
      assert.deepStrictEqual([...model.timers], [], "timers that did not fire")
      yield* Harness.agrees(engine, account, model, 1 + this.seed.below(4))
      yield* Harness.historyAgrees(engine, storage, account, 1 + this.seed.below(6))
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
