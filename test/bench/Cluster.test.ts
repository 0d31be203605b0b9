import { assert, describe, it } from "@effect/vitest"
import {
  allMicros,
  capacityOf,
  costsOf,
  forwardingMicros,
  ratioOf,
  ratiosByStart
} from "../../bench/cluster/ClusterFigures.ts"
import { judge } from "../../bench/cluster/ClusterGoals.ts"
import * as ClusterReport from "../../bench/cluster/ClusterReport.ts"
import type { ClusterResults, ClusterRound, ClusterStart } from "../../bench/cluster/ClusterResults.ts"

/** CPU µs of each runner, and of Postgres, 40 unless given. */
const round = (requestsPerSecond: number, runnerMicros: ReadonlyArray<number>, postgresMicros = 40): ClusterRound => ({
  acknowledged: 1000,
  requestsPerSecond,
  p50Millis: 5,
  p99Millis: 20,
  maxMillis: 30,
  runnerMicros,
  postgresMicros,
  othersShare: 0,
  forwardedShare: 0,
  logBytes: 3600
})

const start = (changes: Partial<ClusterStart> = {}): ClusterStart => ({
  sole: [round(8000, [100])],
  one: [round(8000, [100])],
  two: [{ ...round(7000, [60, 80]), forwardedShare: 0.5 }],
  four: [{ ...round(6000, [40, 40, 40, 40]), forwardedShare: 0.75 }],
  local: [round(8000, [100, 1])],
  forwarded: [{ ...round(5000, [130, 40], 45), forwardedShare: 1 }],
  ...changes
})

const results = (...starts: ReadonlyArray<ClusterStart>): ClusterResults => ({
  at: "2026-11-25T00:00:00.000Z",
  machine: { cpu: "A", cores: 2, memoryGigabytes: 24, system: "l", node: "v24", postgres: "18.4", commit: "abc" },
  accounts: 100,
  connections: 64,
  starts
})

describe("the figures of several runners", () => {
  it("compare rounds that are close in time, and starts by their medians", () => {
    const slowMinute = start({
      sole: [round(8000, [100]), round(80, [1000]), round(8000, [100])],
      one: [round(7840, [101]), round(78.4, [1010]), round(7840, [101])]
    })
    const requestsPerSecond = (one: ClusterRound) => one.requestsPerSecond
    assert.deepStrictEqual(ratiosByStart(results(slowMinute, start()), ["one", "sole"], requestsPerSecond), [0.98, 1])
    assert.closeTo(ratioOf(results(slowMinute, start()), ["one", "sole"], requestsPerSecond)!, Math.sqrt(0.98), 1e-9)
  })

  it("count all runners and Postgres for what forwarding takes", () => {
    assert.closeTo(forwardingMicros(results(start()), allMicros)!, 130 + 40 + 45 - (100 + 1 + 40), 1e-9)
    const other = start({ forwarded: [round(5000, [140, 60], 45)] })
    assert.closeTo(forwardingMicros(results(start(), other), allMicros)!, (74 + 104) / 2, 1e-9)
  })

  it("are missing where the system does not report them", () => {
    const { postgresMicros: _, runnerMicros: __, ...untold } = round(8000, [])
    const rounds = [untold]
    const all = { sole: rounds, one: rounds, two: rounds, four: rounds, local: rounds, forwarded: rounds }
    assert.isUndefined(costsOf(results(all)))
    assert.deepStrictEqual(
      judge(results(all)).map(({ text }) => text.split(" ≥")[0]),
      ["a cluster of one: creates/s ÷ without cluster"]
    )
    assert.notInclude(ClusterReport.text(results(all)), "NaN")
  })
})

describe("what more cores would do", () => {
  const costs = { owner: 100, forwarding: 80, postgres: 40, logBytes: 3600 }

  it("follows from the CPU times, forwarding included", () => {
    // Three runners would leave a core for Postgres, which needs less than one.
    const { createsPerSecond, forwardedShare, postgresCores, runners, ...four } = capacityOf(4, costs)
    assert.strictEqual(runners, 4)
    assert.strictEqual(forwardedShare, 0.75)
    assert.closeTo(createsPerSecond, 4_000_000 / (100 + 0.75 * 80 + 40), 1e-6)
    assert.closeTo(postgresCores, (createsPerSecond * 40) / 1_000_000, 1e-9)
    assert.closeTo(four.logBytesPerSecond, createsPerSecond * 3600, 1e-3)
  })

  it("takes no more runners than help, and one thread of each", () => {
    // With one core, nothing is forwarded.
    assert.deepInclude(capacityOf(1, costs), { runners: 1, forwardedShare: 0 })
    // Postgres would need most of the cores: another runner would only forward.
    const heavy = capacityOf(4, { ...costs, postgres: 400 })
    assert.strictEqual(heavy.runners, 1)
    assert.closeTo(heavy.createsPerSecond, 4_000_000 / 500, 1e-6)
    const light = capacityOf(2, { ...costs, postgres: 0 })
    assert.isAtMost(light.createsPerSecond, (light.runners * 1_000_000) / (100 + light.forwardedShare * 80) + 1e-6)
    assert.isAtMost(capacityOf(1000, costs).runners, 64)
  })

  it("is more with more cores", () => {
    const perSecond = [1, 2, 4, 16, 64].map((cores) => capacityOf(cores, costs).createsPerSecond)
    assert.deepStrictEqual(
      perSecond,
      perSecond.toSorted((a, b) => a - b)
    )
  })
})

describe("the goals of several runners", () => {
  const reached = (changes: Partial<ClusterStart>) => judge(results(start(changes))).map(({ reached }) => reached)

  it("are judged one by one, on both sides of their bounds", () => {
    assert.deepStrictEqual(reached({}), [true, true, true])
    assert.deepStrictEqual(reached({ one: [round(7839, [100])] }), [false, true, true])
    assert.deepStrictEqual(reached({ one: [round(8000, [103])] }), [true, false, true])
    assert.deepStrictEqual(reached({ forwarded: [round(5000, [140, 52], 40)] }), [true, true, false])
  })
})

describe("the report of several runners", () => {
  const cellsOf = (report: string, name: string) =>
    report
      .split("\n")
      .find((line) => line.replace(/^[| ]+/u, "").startsWith(name))!
      .split(/ {2,}|\|/)
      .map((cell) => cell.trim())
      .filter((cell) => cell !== "")

  it("shows the CPU time of each part, and the assumptions", () => {
    for (const report of [ClusterReport.text(results(start())), ClusterReport.markdown(results(start()))]) {
      const two = "2 runners, 7 000, 0.88 ×, 5.00, 20.0, 140, 40.0, 180, 50.0 %, 3 600"
      assert.strictEqual(cellsOf(report, "2 runners").join(", "), two)
      assert.deepStrictEqual(cellsOf(report, "to the other runner").slice(1), ["130", "40.0", "45.0", "215"])
      assert.deepStrictEqual(cellsOf(report, "forwarding it takes").slice(1), ["74.0"])
      assert.deepStrictEqual(cellsOf(report, "16").slice(0, 2), ["16", "13"])
      assert.include(report, ClusterReport.ASSUMPTION)
      assert.include(report, "by start: 1.000")
      assert.notInclude(report, "quiet")
    }
  })

  it("warns if the machine was not quiet", () => {
    const noisy = [{ ...round(8000, [100]), othersShare: 0.4 }]
    const start = { sole: noisy, one: noisy, two: noisy, four: noisy, local: noisy, forwarded: noisy }
    assert.include(ClusterReport.text(results(start)), "others took 40 % of its CPU")
  })
})
