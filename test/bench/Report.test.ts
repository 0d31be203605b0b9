import { assert, describe, it } from "@effect/vitest"
import * as Chart from "../../bench/Chart.ts"
import type { ContenderName } from "../../bench/Contender.ts"
import { judge } from "../../bench/Goals.ts"
import { parseMachineStat, parseResidentBytes, parseStat } from "../../bench/ProcessTime.ts"
import * as Report from "../../bench/Report.ts"
import { type Results, type SubjectResult, throughputRatio } from "../../bench/Results.ts"

const subject = (
  contender: ContenderName,
  throughputs: ReadonlyArray<number>,
  p99Millis = 10,
  othersShares: ReadonlyArray<number> = [0.05],
  serverMicros: ReadonlyArray<number> = [100]
): SubjectResult => ({
  title: `<${contender}>`,
  contender,
  latency: { p50Millis: 1.234, p99Millis, maxMillis: 50 },
  rounds: throughputs.map((requestsPerSecond, i) => ({
    acknowledged: 1000,
    elapsedMillis: 1000,
    requestsPerSecond,
    p50Millis: 1.234,
    p99Millis,
    maxMillis: 50,
    generatorMicros: 13,
    serverMicros: serverMicros[i % serverMicros.length]!,
    othersShare: othersShares[i % othersShares.length]!
  }))
})

const results = (...subjects: ReadonlyArray<SubjectResult>): Results => ({
  at: "2026-11-21T00:00:00.000Z",
  machine: {
    cpu: "A & B",
    cores: 2,
    memoryGigabytes: 24,
    system: "linux",
    node: "v24",
    postgres: "18.4",
    commit: "abc"
  },
  secondsPerRound: 1,
  scenarios: [{ name: "create", title: "Create", connections: 64, subjects }],
  paced: [],
  leftOut: [],
  failures: []
})

describe("results", () => {
  it("compares round by round: a slow round of both changes nothing", () =>
    assert.strictEqual(
      throughputRatio(subject("till", [8000, 800, 8000]), subject("transactionPerRequest", [2000, 200, 2500])),
      4
    ))

  const judged = (some: Results) => judge(some).map(({ reached, text }) => `${reached ? "+" : "-"} ${text}`)

  it("judges goals on both sides of their bounds, and only those that were measured", () => {
    const beside = [
      subject("transactionPerRequest", [1000]),
      subject("emulate", [2000]),
      subject("groupCommit", [6000])
    ]
    const ofCreate = (till: number) => judged(results(subject("till", [till]), ...beside))
    assert.deepStrictEqual(ofCreate(4000), [
      "+ create ÷ transaction per request ≥ 4 ×",
      "+ create ÷ emulate ≥ 1.5 ×",
      "+ create ÷ node:http + group commit ≥ 0.6 ×"
    ])
    assert.deepStrictEqual(
      ofCreate(3599).map(([sign]) => sign),
      ["-", "+", "-"]
    )
    assert.deepStrictEqual(judged(results(...beside)), [])
  })

  it("judges the open loop by its median rounds, and one connection by the p99s of all requests", () => {
    const round = (p99Millis: number, p999Millis: number) => ({
      maximumPerSecond: 9000,
      offeredPerSecond: 6300,
      requests: 30_000,
      p50Millis: 2,
      p99Millis,
      p999Millis,
      maxMillis: 99
    })
    const open = (...rounds: ReadonlyArray<ReturnType<typeof round>>): Results => {
      const one = { name: "create-latency", title: "One", connections: 1 }
      const subjects = [subject("till", [900], 1.5), subject("transactionPerRequest", [400], 1.5)]
      const paced = [{ title: "Till", contender: "till" as const, rounds }]
      return { ...results(), scenarios: [{ ...one, subjects }], paced }
    }
    assert.deepStrictEqual(judged(open(round(25, 60), round(500, 500), round(3, 4))), [
      "+ p99 at 70 % load, open loop ≤ 25 ms",
      "+ p99.9 at 70 % load, open loop ≤ 60 ms",
      "+ create over one connection, p99 ÷ transaction per request's ≤ 1 ×"
    ])
    assert.deepStrictEqual(
      judged(open(round(25.1, 60.1), round(500, 500), round(3, 4))).map(([sign]) => sign),
      ["-", "-", "+"]
    )
  })
})

describe("report", () => {
  const two = results(subject("till", [9000]), subject("transactionPerRequest", [3000]))

  it("is a table for the terminal", () =>
    assert.strictEqual(
      Report.scenarioText(two.scenarios[0]!),
      [
        "Create, 64 connections",
        "                           requests/s  p50 ms  p99 ms  max ms  CPU µs server  CPU µs Postgres  first ÷ this",
        "  <till>                        9 000    1.23    10.0    50.0            100                –",
        "  <transactionPerRequest>       3 000    1.23    10.0    50.0            100                –        3.00 ×"
      ].join("\n")
    ))

  it("warns if the machine was not quiet for a part of the time, and only then", () => {
    const noisy = results(subject("till", [9000, 9000, 9000, 9000], 10, [0, 0, 0.42, 0.5]))
    assert.include(Report.scenarioText(noisy.scenarios[0]!), "others took 42 % of its CPU")
    assert.include(Report.markdown(noisy), "others took 42 % of its CPU")
    assert.include(Chart.svg(noisy), "others took 42 % of its CPU")
    assert.notInclude(Chart.svg(two), "quiet")
    assert.notInclude(Report.scenarioText(two.scenarios[0]!), "quiet")
    assert.notInclude(Report.markdown(two), "quiet")
  })

  it("warns if the same echo took more CPU in some of its rounds, and only then", () => {
    const withEcho = (serverMicros: ReadonlyArray<number>) =>
      results(subject("till", [9000]), subject("echo", [30_000, 30_000, 30_000, 30_000], 10, [0], serverMicros))
    const warning = "the same echo took 20.0 µs of CPU in its quick rounds, 26.0 in its slow ones"
    const unsteady = withEcho([26, 20, 90, 20])
    assert.include(Report.scenarioText(unsteady.scenarios[0]!), warning)
    assert.include(Report.markdown(unsteady), warning)
    assert.include(Chart.svg(unsteady), warning)
    assert.notInclude(Report.markdown(withEcho([25, 20, 90, 20])), "steady")
    const [scenario] = unsteady.scenarios
    assert.notInclude(Report.markdown({ ...unsteady, scenarios: [{ ...scenario!, connections: 1 }] }), "steady")
  })

  it("is a Markdown table with as many cells in every row", () => {
    const lines = Report.markdown(two).split("\n")
    assert.strictEqual(lines.length, 5)
    assert.strictEqual(new Set(lines.map((line) => line.split("|").length)).size, 1)
  })

  it("begins with a short table: Till in full, and the throughput of the others", () => {
    const summed = Report.summary(results(subject("till", [9000]), subject("echo", [30_000])))
    const cells = summed.split("\n").map((line) => line.split("|").map((cell) => cell.trim()))
    assert.deepStrictEqual(cells[0]!.slice(1, 5), ["", "Till, requests/s", "p50 ms", "p99 ms"])
    assert.deepStrictEqual(cells[2], ["", "Create", "9 000", "1.23", "10.0", "–", "–", "–", "30 000", ""])
  })

  it("shows goals with what was measured", () => {
    const verdicts = judge(two)
    assert.deepStrictEqual(verdicts.map(Report.verdictText), [
      "NOT reached  create ÷ transaction per request ≥ 4 ×: 3 ×"
    ])
    assert.include(
      Report.verdictsMarkdown(verdicts),
      "| create ÷ transaction per request ≥ 4 × | 3 × | **not reached** |"
    )
    const unseen = { text: "recovery ≤ 1 ms", figure: Infinity, unit: " ms", reached: false }
    assert.strictEqual(Report.verdictText(unseen), "NOT reached  recovery ≤ 1 ms: not seen")
  })

  it("is a chart whose bars are to scale and whose text is escaped", () => {
    const chart = Chart.svg(two)
    const widths = [...chart.matchAll(/<rect x="\d+" y="\d+" width="(\d+)"/g)].map(([, width]) => Number(width))
    assert.strictEqual(widths.length, 2)
    assert.approximately(widths[0]! / widths[1]!, 3, 0.05)
    assert.include(chart, "&lt;till&gt;")
    assert.include(chart, "A &amp; B")
    assert.include(chart, "prefers-color-scheme: dark")
  })
})

describe("ProcessTime", () => {
  it("reads a process' memory from /proc/<pid>/status", () => {
    assert.strictEqual(parseResidentBytes("Name:\ta\nVmHWM:\t  9999 kB\nVmRSS:\t    2048 kB\n"), 2 * 1024 * 1024)
    assert.isUndefined(parseResidentBytes("Name:\tkthreadd\n"))
  })

  it("reads /proc/<pid>/stat, whatever the process is called", () =>
    assert.deepStrictEqual(parseStat("42 (a) b (c) S 7 42 42 0 -1 4194560 1000 2000 0 0 150 50 30 20 20 0 11 0 100"), {
      pid: 42,
      name: "a) b (c",
      parent: 7,
      own: 2_000_000,
      children: 500_000
    }))

  it("reads /proc/stat: everything but idleness and waiting", () =>
    assert.strictEqual(parseMachineStat("cpu  1 2 4 1000 2000 8 16 32 0 0\ncpu0 9 9 9 9 9 9 9 9 0 0\n"), 630_000))
})
