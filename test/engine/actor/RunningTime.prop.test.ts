/**
 * Idempotency keys are kept for 24 hours of running time, and not for much longer, for any steps of the wall clock,
 * stops, kills and restarts (semantics idempotency.retention).
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Schema } from "effect"
import { runOnce } from "../../../src/engine/Accounts.ts"
import { TestClock } from "effect/testing"
import { RETENTION_MILLIS } from "../../../src/engine/actor/RunningTime.ts"
import type { RunningEngine, Storage } from "../Harness.ts"
import * as Harness from "../Harness.ts"
import * as Toy from "../Toy.ts"

const ACCOUNT = "mer_1:test"
const HOUR = 3_600_000
/** After a crash the service continues from a time that was stored a minute before at most. */
const LAG_MILLIS = 61_000

const Hours = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))

const Step = Schema.Union([
  Schema.Struct({ do: Schema.Literal("use"), key: Schema.Literals(["a", "b", "c"]) }),
  Schema.Struct({ do: Schema.Literal("use"), key: Schema.Literals(["a", "b", "c"]) }),
  Schema.Struct({ do: Schema.Literal("pass"), hours: Hours(0, 13) }),
  Schema.Struct({ do: Schema.Literal("set"), hours: Schema.Union([Hours(-3, 3), Hours(-120, 120), Hours(-1e5, 1e5)]) }),
  Schema.Struct({ do: Schema.Literals(["stop", "kill"]), down: Hours(0, 50) })
])

/** A machine whose wall clock is set while it runs, and whose monotonic clock begins anew with each start. */
class Machine {
  skew = 0
  #born = 0n
  readonly clock: Clock.Clock

  constructor(true_: Clock.Clock) {
    const wall = () => true_.currentTimeMillisUnsafe() + this.skew
    const monotonic = () => true_.monotonicTimeNanosUnsafe() - this.#born
    this.clock = {
      currentTimeMillisUnsafe: wall,
      currentTimeMillis: Effect.sync(wall),
      currentTimeNanosUnsafe: () => BigInt(wall()) * 1_000_000n,
      currentTimeNanos: Effect.sync(() => BigInt(wall()) * 1_000_000n),
      monotonicTimeNanosUnsafe: monotonic,
      monotonicTimeNanos: Effect.sync(monotonic),
      sleep: (duration) => true_.sleep(duration)
    }
    this.reboot = () => void (this.#born = true_.monotonicTimeNanosUnsafe())
  }

  readonly reboot: () => void
}

const start = (storage: Storage, { clock }: Machine) =>
  Effect.provideService(Harness.startEngine(storage), Clock.Clock, clock)

/** Returns whether the key was new. */
const use = (engine: RunningEngine, { clock }: Machine, key: string) => {
  const command = () => Effect.succeed(Toy.answer(200, "{}"))
  return runOnce(engine.accounts, ACCOUNT, Toy.request(key), command).pipe(
    Effect.provideService(Clock.Clock, clock),
    Effect.map(({ replayOf }) => replayOf === null)
  )
}

describe("an idempotency key", () => {
  it.effect.prop(
    "is kept for a day of running time, and not for much longer, at any wall clock",
    { steps: Schema.Array(Step).check(Schema.isMinLength(4), Schema.isMaxLength(24)) },
    ({ steps }) =>
      Effect.gen(function* () {
        yield* Harness.startClock
        const machine = new Machine(yield* Clock.Clock)
        const storage = yield* Harness.storageInMemory
        let engine = yield* start(storage, machine)
        yield* Effect.addFinalizer(() => engine.kill)
        /** The true running time, known only to the test. */
        let ran = 0
        let crashes = 0
        const used = new Map<string, { readonly ran: number; readonly crashes: number }>()
        for (const step of steps) {
          switch (step.do) {
            case "use": {
              const isNew = yield* use(engine, machine, step.key)
              const before = used.get(step.key)
              if (before === undefined) assert.isTrue(isNew)
              else {
                const age = ran - before.ran
                if (age < RETENTION_MILLIS) assert.isFalse(isNew, `used ${age / HOUR} hours ago`)
                const lag = (crashes - before.crashes) * LAG_MILLIS
                if (age >= RETENTION_MILLIS + lag) assert.isTrue(isNew, `used ${age / HOUR} hours ago`)
              }
              if (isNew) used.set(step.key, { ran, crashes })
              break
            }
            case "pass": {
              const millis = Math.round(step.hours * HOUR)
              yield* Harness.pass(millis)
              ran += millis
              break
            }
            case "set":
              // Ids need a time of 9 characters.
              machine.skew = Math.max(machine.skew + Math.round(step.hours * HOUR), -4 * 365 * 24 * HOUR)
              break
            default:
              yield* step.do === "stop" ? engine.stop : engine.kill
              // Even a stop may come a minute after the time was stored.
              crashes++
              yield* TestClock.adjust(Math.round(step.down * HOUR))
              machine.reboot()
              engine = yield* start(storage, machine)
          }
        }
        // A key that is old enough is also deleted.
        yield* Harness.pass(RETENTION_MILLIS + (crashes + 1) * LAG_MILLIS, 6 * HOUR)
        yield* Harness.pass(2 * LAG_MILLIS)
        assert.deepStrictEqual(yield* Harness.viewsOf(storage).scan(ACCOUNT, "keys", "", 10), [])
        yield* engine.stop
        yield* Harness.verified(storage)
      }),
    { arbitrary: { runs: 12, maxShrinks: 20 } }
  )
})
