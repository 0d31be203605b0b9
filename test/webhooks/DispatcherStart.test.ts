/** Deliveries left by a crashed process are attempted when the next one starts, without waiting for a poll. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Harness from "../engine/Harness.ts"
import { answers, DispatcherHarness, hangs } from "./DispatcherHarness.ts"

const EVENTS = 20

describe("a dispatcher that starts after a crash", () => {
  for (const [where, projected] of [
    ["already in the views", true],
    ["in the journal alone", false]
  ] as const) {
    it.effect(`attempts at once a delivery that is ${where}`, () =>
      Effect.gen(function* () {
        yield* Harness.startClock
        let isUp = false
        const run = new DispatcherHarness(yield* Harness.storageInMemory, () => (isUp ? answers(200) : hangs))
        yield* run.start()
        yield* run.subscribe(["we"])
        yield* Harness.pass(1000, 100)
        for (let i = 0; i < EVENTS; i++) yield* run.happen(`slot_${i}`)
        if (projected) yield* Harness.pass(1000, 100)
        yield* run.kill
        isUp = true
        yield* run.start()
        yield* Harness.pass(1000, 50)
        const again = run.attempts.filter(({ process }) => process === 2)
        assert.strictEqual(new Set(again.map(({ event }) => event)).size, EVENTS)
        yield* run.stop
        yield* Harness.verified(run.storage)
      })
    )
  }
})
