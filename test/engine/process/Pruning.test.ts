/** The pace of pruning (semantics storage.pruning). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, References } from "effect"
import { TestClock } from "effect/testing"
import { type Paced, Pruning } from "../../../src/engine/process/Pruning.ts"

const EVERY_MILLIS = 60_000
/** Duration of a statement in these tests. */
const STATEMENT_MILLIS = 4

const provided = Effect.provide(Layer.merge(Pruning.layer, Layer.succeed(References.MinimumLogLevel, "None")))

/** Lets fibers run until all wait for time. */
const settled = Effect.repeat(Effect.yieldNow, { times: 20 })

const pass = (millis: number) => Effect.andThen(TestClock.adjust(millis), settled)

describe("pruning", () => {
  it.effect("runs the statements of all kinds one at a time, with rests of nine times their duration", () =>
    Effect.gen(function* () {
      const { add } = yield* Pruning
      const ran: Array<string> = []
      const add3 = (name: string) =>
        add({
          name,
          everyMillis: EVERY_MILLIS,
          pass: (paced: Paced) =>
            Effect.replicateEffect(
              paced(
                Effect.andThen(
                  Effect.sync(() => ran.push(name)),
                  Effect.sleep(STATEMENT_MILLIS)
                )
              ),
              3,
              { discard: true }
            )
        })
      yield* add3("a")
      yield* add3("b")
      yield* pass(EVERY_MILLIS - 1)
      assert.deepStrictEqual(ran, [])
      yield* pass(1)
      for (let i = 1; i < 6; i++) {
        assert.strictEqual(ran.length, i)
        yield* pass(STATEMENT_MILLIS)
        yield* pass(9 * STATEMENT_MILLIS - 1)
        assert.strictEqual(ran.length, i)
        yield* pass(1)
      }
      assert.deepStrictEqual(ran, ["a", "b", "a", "b", "a", "b"])
    }).pipe(provided)
  )

  it.effect("makes the next pass after a pause, also if the last one failed", () =>
    Effect.gen(function* () {
      const { add } = yield* Pruning
      let passes = 0
      yield* add({
        name: "rows",
        everyMillis: EVERY_MILLIS,
        pass: (paced) =>
          paced(Effect.suspend(() => (++passes === 1 ? Effect.fail(new Error("The disk is full")) : Effect.void)))
      })
      for (const count of [1, 2, 3]) {
        // The pause, and the longest rest.
        yield* pass(EVERY_MILLIS + 2000)
        assert.strictEqual(passes, count)
      }
    }).pipe(provided)
  )

  it.effect("ends with the scope of what added it", () =>
    Effect.gen(function* () {
      const { add } = yield* Pruning
      let passes = 0
      yield* Effect.scoped(
        Effect.andThen(
          add({ name: "rows", everyMillis: EVERY_MILLIS, pass: () => Effect.sync(() => void passes++) }),
          pass(EVERY_MILLIS)
        )
      )
      yield* pass(10 * EVERY_MILLIS)
      assert.strictEqual(passes, 1)
    }).pipe(provided)
  )
})
