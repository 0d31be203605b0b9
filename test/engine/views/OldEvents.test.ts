/** The retention of events (semantics storage.retention). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Placement } from "../../../src/engine/process/Placement.ts"
import { Pruning } from "../../../src/engine/process/Pruning.ts"
import * as OldEvents from "../../../src/engine/views/OldEvents.ts"
import * as Harness from "../Harness.ts"
import * as Toy from "../Toy.ts"

const [HERE, ELSEWHERE] = ["mer_1:live", "mer_2:live"] as const
const DAY_MILLIS = 86_400_000

describe("old events", () => {
  it.effect("storage.retention: are deleted by the process that serves their account, within an hour", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const storage = yield* Harness.storageInMemory
      const engine = yield* Harness.startEngine(storage)
      const create = (account: string, slot: string) => engine.accounts.run(account, Toy.create(slot, "plain"))
      const eventsOf = (account: string) => Harness.allEvents(engine, account, "older", 100)
      for (const account of [HERE, ELSEWHERE]) yield* create(account, "old")
      yield* engine.projector.drained
      const [old] = yield* eventsOf(HERE)
      yield* TestClock.adjust(DAY_MILLIS)
      for (const account of [HERE, ELSEWHERE]) yield* create(account, "new")
      yield* engine.projector.drained
      const placement = { ...engine.placement, isHere: (account: string) => account === HERE }
      const needs = Layer.mergeAll(Pruning.layer, Layer.succeed(Placement, placement), Layer.succeedContext(storage))
      yield* Layer.build(Layer.provide(OldEvents.layer(2), needs))
      yield* Harness.pass(DAY_MILLIS - 3_600_000, DAY_MILLIS)
      assert.lengthOf(yield* eventsOf(HERE), 2)
      yield* Harness.pass(2 * 3_600_000, 3_600_000)
      assert.deepStrictEqual(
        (yield* eventsOf(HERE)).map(({ object }) => JSON.parse(object).slot),
        ["new"]
      )
      assert.isUndefined(yield* engine.accounts.event(HERE, old!.id))
      assert.lengthOf(yield* eventsOf(ELSEWHERE), 2)
      assert.isDefined(yield* engine.accounts.read(HERE, JSON.parse(old!.object).id))
      yield* engine.stop
      yield* Harness.verified(storage)
    })
  )
})
