import { assert, describe, it } from "@effect/vitest"
import type { Compared, Pair } from "../../bench/compare/Comparison.ts"
import { COMMIT, judge } from "../../bench/compare/ComparisonGoals.ts"
import type { Round } from "../../bench/Results.ts"
import { scenarios } from "../../bench/scenarios/index.ts"

const round = (requestsPerSecond: number): Round => ({
  acknowledged: 1000,
  elapsedMillis: 1000,
  requestsPerSecond,
  generatorMicros: 10,
  p50Millis: 5,
  p99Millis: 20,
  maxMillis: 30
})

const compared = (name: string, ratio: number): Compared => {
  const pair: Pair = { own: round(1000 * ratio), other: round(1000) }
  return { scenario: scenarios.find((one) => one.name === name)!, starts: [[pair], [pair], [pair]] }
}

describe("the goals against a commit", () => {
  const all = (ratio: number) =>
    ["retrieve", "create", "create-and-confirm", "checkout", "checkout-confirm", "refund"].map((name) =>
      compared(name, ratio)
    )

  it("are judged where that commit is compared, each scenario by its own bound", () => {
    const reached = (ratio: number) => judge(all(ratio), `${COMMIT}${"0".repeat(33)}`, 1).map(({ reached }) => reached)
    assert.deepStrictEqual(reached(1.5), [true, true, true, true, true])
    assert.deepStrictEqual(reached(1.45), [false, true, true, true, true])
    assert.deepStrictEqual(reached(1.39), [false, false, false, false, false])
  })

  it("are not judged by any other comparison", () => assert.deepStrictEqual(judge(all(2), "b".repeat(40), 1), []))
})
