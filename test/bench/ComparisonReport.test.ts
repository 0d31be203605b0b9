import { assert, describe, it } from "@effect/vitest"
import { type Compared, type Pair, subjectOf } from "../../bench/compare/Comparison.ts"
import * as ComparisonReport from "../../bench/compare/ComparisonReport.ts"
import type { Round } from "../../bench/Results.ts"
import { scenarios } from "../../bench/scenarios/index.ts"

const create = scenarios.find(({ name }) => name === "create")!

const round = (requestsPerSecond: number, more: Partial<Round> = {}): Round => ({
  acknowledged: 1000,
  elapsedMillis: 1000,
  requestsPerSecond,
  p50Millis: 1,
  p99Millis: 10,
  maxMillis: 50,
  generatorMicros: 13,
  ...more
})

/** Three starts of two pairs each, on a machine of varying speed. */
const compared = (own: (pace: number) => Round, other: (pace: number) => Round): Compared => ({
  scenario: create,
  starts: [1, 0.5, 2].map((pace) => [pace, pace * 1.1].map((pace): Pair => ({ own: own(pace), other: other(pace) })))
})

describe("scenarioText", () => {
  it("marks better and worse by the direction of each measure", () => {
    const text = ComparisonReport.scenarioText(
      compared(
        (pace) => round(12_000 * pace, { serverMicros: 80, postgresMicros: 60, p99Millis: 10 }),
        (pace) => round(10_000 * pace, { serverMicros: 100, postgresMicros: 50, p99Millis: 10 })
      ),
      "main (abc1234)",
      1
    )
    assert.deepStrictEqual(text.split("\n"), [
      "Create a PaymentIntent, 64 connections",
      "                     this  main (abc1234)  this ÷ other  95 % interval             this is        by start",
      "  requests/s       12 600          10 500         1.200    1.200–1.200              faster  1.20 1.20 1.20",
      "  CPU µs server      80.0             100         0.800    0.800–0.800              faster  0.80 0.80 0.80",
      "  CPU µs Postgres    60.0            50.0         1.200    1.200–1.200              slower  1.20 1.20 1.20",
      "  p99 ms             10.0            10.0         1.000    1.000–1.000  no difference seen  1.00 1.00 1.00"
    ])
  })

  it("leaves out what the system did not report, and warns of a busy machine", () => {
    const noisy = (pace: number) => round(pace, { othersShare: 0.42 })
    const text = ComparisonReport.scenarioText(compared(noisy, noisy), "main", 1)
    assert.match(text, /CPU µs server +– +– +– +– +– +–\n/)
    assert.match(text, /requests\/s .* no difference seen/)
    assert.include(text, "others took 42 % of its CPU")
  })
})

describe("subjectOf", () => {
  it("is the one load of Till; a scenario that puts several loads to it compares no versions", () => {
    const withoutSubject = scenarios.filter((scenario) => subjectOf(scenario) === undefined)
    assert.deepStrictEqual(
      withoutSubject.map(({ name }) => name),
      ["accounts", "search"]
    )
  })
})
