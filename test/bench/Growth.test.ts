import { assert, describe, it } from "@effect/vitest"
import { judge } from "../../bench/growth/GrowthGoals.ts"
import * as GrowthReport from "../../bench/growth/GrowthReport.ts"
import type { GrowthResults } from "../../bench/growth/GrowthResults.ts"
import type { Round } from "../../bench/Results.ts"

const round = (requestsPerSecond: number, othersShare = 0): Round => ({
  acknowledged: 1000,
  elapsedMillis: 1000,
  requestsPerSecond,
  generatorMicros: 10,
  p50Millis: 5,
  p99Millis: 20,
  maxMillis: 30,
  serverMicros: 90,
  postgresMicros: 40,
  othersShare
})
const latency = { p50Millis: 0.5, p99Millis: 2, maxMillis: 9, p999Millis: 4 }

const results: GrowthResults = {
  at: "2026-11-21T00:00:00.000Z",
  machine: { cpu: "A", cores: 2, memoryGigabytes: 24, system: "l", node: "v24", postgres: "18.4", commit: "abc" },
  objects: 2_000_000,
  accounts: 1,
  fillPerSecond: [10_000, 9000],
  residentBytesFilled: 650_000_000,
  residentBytesStarted: 700_000_000,
  residentBytesEmpty: 300_000_000,
  sizes: [
    { table: "journal", rowBytes: 2_999_975_424, indexBytes: 200_000_000 },
    { table: "objects", rowBytes: 400_000_000, indexBytes: 200_000_000 },
    { table: "tiny", rowBytes: 8192, indexBytes: 16_384 }
  ],
  restarts: [900, 2000, 2400].map((readyMillis) => ({ readyMillis, firstCreateMillis: 50 })),
  takeoverMillis: 1000,
  // A slow minute affects both.
  starts: [
    [
      { grown: round(950), empty: round(1000) },
      { grown: round(9), empty: round(10) }
    ],
    [{ grown: round(9700), empty: round(10_000) }]
  ],
  retrieve: latency,
  list: { ...latency, p99Millis: 3 },
  records: 2_100_000,
  verifySeconds: 31.5
}

describe("the goals of growth", () => {
  const reached = (changes: Partial<GrowthResults>) => judge({ ...results, ...changes }).map(({ reached }) => reached)
  const but = (at: number) => [0, 1, 2, 3, 4, 5, 6, 7].map((i) => i !== at)

  it("are judged one by one, on both sides of their bounds", () => {
    assert.deepStrictEqual(reached({}), but(-1))
    assert.deepStrictEqual(reached({ starts: [[{ grown: round(949), empty: round(1000) }]] }), but(0))
    assert.deepStrictEqual(reached({ residentBytesFilled: 700_000_001 }), but(1))
    assert.deepStrictEqual(reached({ restarts: [{ readyMillis: 2001, firstCreateMillis: 1 }] }), but(2))
    assert.deepStrictEqual(reached({ sizes: [{ table: "journal", rowBytes: 3_800_000_001, indexBytes: 0 }] }), but(6))
    assert.deepStrictEqual(reached({ verifySeconds: 31.6 }), but(7))
    assert.deepStrictEqual(reached({ takeoverMillis: 1001 }), but(3))
    assert.deepStrictEqual(reached({ retrieve: { ...latency, p99Millis: 25.1 } }), but(4))
    assert.deepStrictEqual(reached({ list: { ...latency, p99Millis: 25.1 } }), but(5))
  })

  it("leave memory out where the system does not report it", () => {
    const { residentBytesEmpty: _, residentBytesFilled: __, residentBytesStarted: ___, ...rest } = results
    assert.deepStrictEqual(
      judge(rest).map(({ text }) => text.split(" ")[0]),
      ["create", "restart", "longest", "cold", "cold", "disk", "`till"]
    )
  })
})

describe("the report of growth", () => {
  it("shows sizes per object, and leaves out nearly empty tables", () => {
    for (const report of [GrowthReport.text(results), GrowthReport.markdown(results)]) {
      const cells = (name: string) =>
        report
          .split("\n")
          .find((line) => line.includes(name))!
          .split(/ {2,}|\|/)
          .map((cell) => cell.trim())
          .filter((cell) => cell !== "")
      assert.deepStrictEqual(cells("journal"), ["journal", "1 600", "1 500", "100"])
      assert.deepStrictEqual(cells("all tables"), ["all tables", "1 900", "1 700", "200"])
      assert.deepStrictEqual(cells("list 10"), ["list 10 PaymentIntents", "0.50", "3.00", "4.00"])
      assert.deepStrictEqual(cells("per million").slice(-1), ["15.0 s"])
      assert.deepStrictEqual(cells("to the first good answer").slice(-1), ["2.00 s"])
      assert.deepStrictEqual(cells("empty").slice(0, 2), ["empty", "1 000"])
      assert.notInclude(report, "tiny")
      assert.notInclude(report, "quiet")
    }
  })

  it("shows the number of accounts", () => {
    assert.include(GrowthReport.text(results), "2 000 000 PaymentIntents in the account")
    assert.include(GrowthReport.text({ ...results, accounts: 1000 }), "2 000 000 PaymentIntents in 1 000 accounts")
  })

  it("warns if the machine was not quiet", () => {
    const starts = [[{ grown: round(1000, 0.4), empty: round(1000, 0.4) }]]
    assert.include(GrowthReport.text({ ...results, starts }), "others took 40 % of its CPU")
  })
})
