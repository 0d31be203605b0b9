/** `npm test` runs a share of the random cases, and `npm run test:all` runs all. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { isWhole, runs, takeRuns } from "./Runs.ts"

describe("runs", () => {
  it("are all in a whole run, else a share of many and all of a few", () => {
    assert.deepStrictEqual(
      [1, 20, 60, 100, 3000, 300_000].map((whole) => runs(whole)),
      isWhole ? [1, 20, 60, 100, 3000, 300_000] : [1, 5, 8, 13, 375, 37_500]
    )
    assert.strictEqual(runs(9, 3), isWhole ? 9 : 3)
  })

  let met = 0
  const number = { number: Schema.Int }
  it.prop("of a property in one step", number, () => ++met > 0)
  it.prop("of a property that sets a number", number, () => ++met > 0, { arbitrary: { runs: 300 } })
  it.effect.prop("of an effect", number, () => Effect.sync(() => ++met > 0))
  it.live.prop("of an effect with the real clock", number, () => Effect.sync(() => ++met > 0))

  it("are counted", () => {
    assert.strictEqual(met, isWhole ? 600 : 77)
    assert.strictEqual(takeRuns(), met)
  })
})
