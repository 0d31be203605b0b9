import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Arrivals } from "../../bench/webhooks/Arrivals.ts"
import {
  answersUntil,
  distributionOf,
  failureIn,
  type Figures,
  figuresOf,
  missingOf
} from "../../bench/webhooks/Figures.ts"
import type { PacedLoadRecord } from "../../bench/load/PacedLoadPlan.ts"
import { judge } from "../../bench/webhooks/WebhookGoals.ts"
import * as WebhookReport from "../../bench/webhooks/WebhookReport.ts"
import type { Trial, WebhookResults } from "../../bench/webhooks/WebhookResults.ts"

/** A load's requests: delay, time of the answer, and time of the delivery to each of two endpoints. */
const Times = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))
const Requests = Schema.Array(Schema.Struct({ waited: Times, answer: Times, first: Times, second: Times })).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(50)
)

const START_MICROS = 5_000_000_000
const APART_MICROS = 500

const recordsOf = (requests: typeof Requests.Type) => {
  const wanted = requests.map((_, i) => START_MICROS + i * APART_MICROS)
  const sent = requests.map(({ waited }, i) => wanted[i]! + waited)
  const load: PacedLoadRecord = {
    wantedMicros: Float64Array.from(wanted),
    sentMicros: Float64Array.from(sent),
    answeredMicros: Float64Array.from(requests, ({ answer }, i) => sent[i]! + answer),
    statuses: Uint16Array.from(requests, () => 200),
    leftOut: 0,
    reopened: 0
  }
  const arrivals = new Arrivals("a", 2)
  // Deliveries have no order.
  for (const [i, { first, second }] of [...requests.entries()].toReversed()) {
    arrivals.add({ run: "a", endpoint: 0, request: i }, sent[i]! + first)
    arrivals.add({ run: "a", endpoint: 1, request: i }, sent[i]! + second)
  }
  return { load, arrivals }
}

const mean = (values: ReadonlyArray<number>) => values.reduce((a, b) => a + b, 0) / values.length
const close = (a: number, b: number) => assert.approximately(a, b, Math.abs(b) * 1e-9 + 1e-9)

describe("Figures", () => {
  it.effect.prop("count from the request and from its answer, over all endpoints", [Requests], ([requests]) =>
    Effect.sync(() => {
      const { arrivals, load } = recordsOf(requests)
      const figures = figuresOf(load, arrivals.record())
      const taken = requests.flatMap(({ first, second }) => [first, second])
      const afterAnswer = requests.flatMap(({ answer, first, second }) => [first - answer, second - answer])
      close(figures.fromSent.averageMillis, mean(taken) / 1000)
      close(figures.fromSent.maxMillis, Math.max(...taken) / 1000)
      close(figures.fromAnswered.averageMillis, mean(afterAnswer) / 1000)
      close(figures.answer.averageMillis, mean(requests.map(({ answer, waited }) => answer + waited)) / 1000)
      assert.deepStrictEqual([figures.requests, figures.endpoints], [requests.length, 2])
      const { deliveriesPerSecond, requestsPerSecond } = figures
      const sentFirst = Math.min(...load.sentMicros)
      const seconds = (last: number) => (last - sentFirst) / 1_000_000
      close(requestsPerSecond * seconds(Math.max(...load.answeredMicros)), requests.length)
      const lastArrival = Math.max(
        ...requests.map(({ first, second }, i) => load.sentMicros[i]! + Math.max(first, second))
      )
      close(deliveriesPerSecond * seconds(lastArrival), requests.length * 2)
    })
  )

  it.effect.prop("find every missing delivery", [Requests, Schema.Array(Times)], ([requests, left]) =>
    Effect.sync(() => {
      const { arrivals } = recordsOf(requests)
      const record = arrivals.record()
      assert.isUndefined(failureIn(requests.length, record))
      const lost = new Set(left.map((number) => number % requests.length))
      for (const request of lost) record.firstMicros[1]![request] = 0
      assert.strictEqual(missingOf(requests.length, record), lost.size)
      if (lost.size > 0) {
        assert.strictEqual(failureIn(requests.length, record, true)?.problem, `${lost.size} deliveries are missing.`)
      }
      // One more request than there are deliveries.
      assert.strictEqual(missingOf(requests.length + 1, arrivals.record()), 2 + lost.size)
    })
  )

  it("fail on a delivery too many, unless something was killed", () => {
    const again = { firstMicros: [Float64Array.of(1)], repeated: 1, stray: 0 }
    const stray = { ...again, repeated: 0, stray: 1 }
    assert.include(failureIn(1, again)?.problem, "1 deliveries came again")
    assert.include(failureIn(1, stray)?.problem, "1 came that are not")
    assert.isUndefined(failureIn(1, again, true))
    assert.isUndefined(failureIn(1, stray, true))
  })

  it("take percentiles that were measured", () =>
    assert.deepStrictEqual(distributionOf(Array.from({ length: 100 }, (_, i) => (100 - i) * 1000)), {
      averageMillis: 50.5,
      p50Millis: 50,
      p95Millis: 95,
      p99Millis: 99,
      maxMillis: 100
    }))

  it("select a part of a load by the planned times", () => {
    const { load } = recordsOf([1, 2, 3].map((n) => ({ waited: n, answer: n * 10, first: 1, second: 1 })))
    assert.deepStrictEqual(answersUntil(load, START_MICROS + 2 * APART_MICROS), [11, 22])
    assert.deepStrictEqual(answersUntil(load, Infinity), [11, 22, 33])
  })
})

const distribution = { averageMillis: 3, p50Millis: 2.5, p95Millis: 100, p99Millis: 120, maxMillis: 250 }
const figures: Figures = {
  requests: 8000,
  endpoints: 1,
  requestsPerSecond: 1999,
  deliveriesPerSecond: 1990,
  answer: distribution,
  fromSent: distribution,
  fromAnswered: { ...distribution, p50Millis: -0.5 }
}
const trial: Trial = { ...figures, serverMicros: 300, postgresMicros: 150, othersShare: 0.05 }
const results: WebhookResults = {
  at: "2026-11-21T00:00:00.000Z",
  machine: { cpu: "A", cores: 2, memoryGigabytes: 24, system: "linux", node: "v24", postgres: "18.4", commit: "abc" },
  offered: trial,
  offeredPerSecond: 2000,
  saturated: trial,
  half: trial,
  idle: trial,
  fanOut: [
    { endpoints: 0, requestsPerSecond: [4000, 2000], deliveriesPerSecond: [] },
    { endpoints: 1, requestsPerSecond: [2000, 1000], deliveriesPerSecond: [2100, 2300] }
  ],
  retries: {
    deliveries: 10_000,
    readySeconds: 1.5,
    deliveredSeconds: 6.25,
    repeated: 16,
    createsPerSecond: 200,
    createsMeanwhile: distribution,
    createsOtherwise: distribution
  }
}

describe("the goals of webhooks", () => {
  const reached = (changes: Partial<WebhookResults>) => judge({ ...results, ...changes }).map(({ reached }) => reached)
  const slower = (changes: Partial<Trial>): Trial => ({ ...trial, ...changes })

  it("are judged one by one", () => {
    // Half of the creates with one endpoint, and good values otherwise.
    const usual = [false, true, true, true, true]
    const but = (at: number, value: boolean) => usual.map((one, i) => (i === at ? value : one))
    assert.deepStrictEqual(reached({}), usual)
    const fanOut = (creates: number) => [
      results.fanOut[0]!,
      { ...results.fanOut[1]!, requestsPerSecond: [creates, 2000] }
    ]
    assert.deepStrictEqual(reached({ fanOut: fanOut(2800) }), but(0, true))
    assert.deepStrictEqual(reached({ fanOut: fanOut(2799) }), usual)
    const createsMeanwhile = { ...distribution, p99Millis: 151 }
    assert.deepStrictEqual(reached({ retries: { ...results.retries!, createsMeanwhile } }), but(1, false))
    assert.deepStrictEqual(reached({ offered: slower({ deliveriesPerSecond: 1799 }) }), but(2, false))
    const late = slower({ fromSent: { ...distribution, p95Millis: 143.1 } })
    assert.deepStrictEqual(reached({ offered: late }), but(3, false))
    const idle = slower({ fromSent: { ...distribution, averageMillis: 4.31 } })
    assert.deepStrictEqual(reached({ idle }), but(4, false))
  })
})

describe("the report of webhooks", () => {
  it("holds every figure once, in the terminal and in Markdown", () => {
    for (const report of [WebhookReport.text(results), WebhookReport.markdown(results)]) {
      const cells = (name: string) =>
        report
          .split("\n")
          .find((line) => line.includes(name))!
          .split(/ {2,}|\|/)
          .map((cell) => cell.trim())
          .filter((cell) => cell !== "")
      const ofTrial = "1 999,1 990,3.00,2.50,100,120,250,-0.50,300,150".split(",")
      assert.deepStrictEqual(cells("one at a time"), ["one at a time, with pauses", ...ofTrial])
      assert.deepStrictEqual(cells("1 endpoint"), ["1 endpoint", "1 500", "0.50", "2 200"])
      assert.deepStrictEqual(cells("0 endpoints"), ["0 endpoints", "3 000", "1.00", "–"])
      assert.deepStrictEqual(cells("with nothing due"), ["with nothing due", "2.50", "120", "250"])
      assert.include(report, "10 000 retries due at the start: all delivered 6.25 s after it")
      assert.notInclude(report, "quiet")
    }
  })

  it("warns if the machine was not quiet, and does without retries", () => {
    const noisy = { ...trial, othersShare: 0.42 }
    const { retries: _, ...rest } = { ...results, saturated: noisy, half: noisy, offered: noisy }
    for (const report of [WebhookReport.text(rest), WebhookReport.markdown(rest)]) {
      assert.include(report, "others took 42 % of its CPU")
      assert.notInclude(report, "retries")
    }
  })
})
