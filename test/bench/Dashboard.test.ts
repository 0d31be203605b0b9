import { assert, describe, it } from "@effect/vitest"
import { judge } from "../../bench/dashboard/DashboardGoals.ts"
import * as DashboardReport from "../../bench/dashboard/DashboardReport.ts"
import type { DashboardResults } from "../../bench/dashboard/DashboardResults.ts"

const page = { title: "home, 24h", p50Millis: 5, p95Millis: 100, maxMillis: 300, serverMillis: 3, postgresMillis: 2 }

const results: DashboardResults = {
  at: "2026-11-25T00:00:00.000Z",
  machine: { cpu: "A", cores: 2, memoryGigabytes: 24, system: "l", node: "v24", postgres: "18.4", commit: "abc" },
  payments: 1_000_000,
  pages: [page, { ...page, title: "payments", p95Millis: 20 }],
  openPages: 500,
  // A slow minute hits both.
  live: [
    { with: 950, without: 1000 },
    { with: 5, without: 10 },
    { with: 9800, without: 10_000 }
  ],
  loadsPerSecond: 4,
  residentBytes: [200 * 2 ** 20, 210 * 2 ** 20],
  requestLog: [{ with: 970, without: 1000 }]
}

describe("the goals of the dashboard", () => {
  const reached = (changes: Partial<DashboardResults>) =>
    judge({ ...results, ...changes }).map(({ reached }) => reached)

  it("are judged one by one, on both sides of their bounds", () => {
    assert.deepStrictEqual(reached({}), [true, true, true])
    assert.deepStrictEqual(reached({ pages: [page, { ...page, p95Millis: 100.1 }] }), [false, true, true])
    assert.deepStrictEqual(reached({ live: [{ with: 949, without: 1000 }] }), [true, false, true])
    assert.deepStrictEqual(reached({ requestLog: [{ with: 969, without: 1000 }] }), [true, true, false])
  })
})

describe("the report of the dashboard", () => {
  it("shows each page, what creates are left, and the memory, also where the system tells nothing", () => {
    const text = DashboardReport.text(results)
    assert.match(text, /^home, 24h +5\.00 +100 +300 +3\.00 +2\.00$/m)
    assert.match(text, /^500 open pages +950 +1 000 +0\.95 ×$/m)
    assert.include(text, "500 open pages loaded themselves 4.00 times a second in all.")
    assert.include(text, "200 MiB; after them: 210 MiB.")
    const { residentBytes: _, ...others } = results
    const { postgresMillis: __, serverMillis: ___, ...bare } = page
    const markdown = DashboardReport.markdown({ ...others, pages: [bare] })
    assert.include(markdown, "| home, 24h | 5.00 | 100 | 300 | – | – |")
    assert.notInclude(markdown, "MiB")
  })
})
