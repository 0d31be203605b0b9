import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { nowMicros } from "../../bench/load/MonotonicClock.ts"
import * as PacedLoad from "../../bench/load/PacedLoad.ts"
import { LOST, type PacedLoadPlan, type PacedLoadRecord } from "../../bench/load/PacedLoadPlan.ts"
import { percentile } from "../../bench/load/Percentiles.ts"
import * as OverloadChart from "../../bench/overload/OverloadChart.ts"
import { outcomesOf, stepOf } from "../../bench/overload/OverloadFigures.ts"
import { judge } from "../../bench/overload/OverloadGoals.ts"
import * as OverloadReport from "../../bench/overload/OverloadReport.ts"
import type { OverloadResults, Turn } from "../../bench/overload/OverloadResults.ts"
import { serverOf } from "./LocalServer.ts"

const plan = (port: number, changes: Partial<PacedLoadPlan> = {}): PacedLoadPlan => ({
  port,
  connections: 4,
  seconds: 0.3,
  ratePerSecond: null,
  path: "/a",
  apiKey: "k",
  body: `{"amount":1}`,
  run: "a",
  flood: { refusals: [429, 503], drainSeconds: 5 },
  ...changes
})

const numberOf = (key: unknown): number => Number(String(key).split("-").at(-1))

describe("a flood", () => {
  /** The server's answer to a request, by its number. */
  const fates = [200, 503, LOST, 429, 200] as const
  const fateOf = (request: number) => fates[request % fates.length]!

  const isolated = Effect.fnUntraced(function* (changes: Partial<PacedLoadPlan>) {
    const seen: Array<number> = []
    const { port } = yield* serverOf((request, response) => {
      const number = numberOf(request.headers["idempotency-key"])
      seen.push(number)
      request.resume().on("end", () => {
        const fate = fateOf(number)
        if (fate === LOST) request.socket.destroy()
        else response.writeHead(fate, { "content-length": 2 }).end("{}")
      })
    })
    const load = yield* PacedLoad.makeYielding
    const record = yield* load.run(plan(port, changes))
    assert.deepStrictEqual(
      seen.toSorted((a, b) => a - b),
      Array.from(record.statuses, (_, i) => i)
    )
    assert.deepStrictEqual(
      [...record.statuses],
      Array.from(record.statuses, (_, i) => fateOf(i))
    )
    assert.isTrue(record.sentMicros.every((sent, i) => sent < record.answeredMicros[i]!))
    return record
  })

  it.live("notes refusals and lost connections, and sends every request once", () =>
    Effect.gen(function* () {
      for (const ratePerSecond of [null, 400]) {
        const { leftOut, reopened, statuses } = yield* isolated({ ratePerSecond, connections: 32 })
        assert.isAbove(statuses.length, fates.length)
        assert.isAtLeast(reopened, 1)
        if (ratePerSecond !== null) assert.strictEqual(statuses.length + leftOut, 0.3 * ratePerSecond)
      }
    })
  )

  it.live("leaves out what no connection is free for", () =>
    Effect.gen(function* () {
      const { port } = yield* serverOf((request, response) => {
        request.resume().on("end", () => setTimeout(() => response.end("{}"), 100))
      })
      const load = yield* PacedLoad.make
      const record = yield* load.run(plan(port, { ratePerSecond: 200, connections: 2 }))
      assert.strictEqual(record.statuses.length + record.leftOut, 60)
      // Three requests on each of the two connections at most, and one on each also on a slow machine.
      assert.isAtMost(record.statuses.length, 6)
      assert.isAtLeast(record.statuses.length, 2)
    })
  )

  it.live("gives up after its time, and records that for each request", () =>
    Effect.gen(function* () {
      const { port } = yield* serverOf((request) => void request.resume())
      const load = yield* PacedLoad.make
      const flood = { refusals: [], drainSeconds: 0.2 }
      for (const ratePerSecond of [null, 100]) {
        const record = yield* load.run(plan(port, { ratePerSecond, flood }))
        // No request is answered, so a run that waits for answers would not end.
        assert.deepStrictEqual([...record.statuses], [LOST, LOST, LOST, LOST])
      }
    })
  )

  it.live("begins at the given time, over connections that are open before", () =>
    Effect.gen(function* () {
      let requests = 0
      const { port } = yield* serverOf((request, response) => {
        requests++
        request.resume().on("end", () => response.end("{}"))
      })
      const load = yield* PacedLoad.make
      const startAtMicros = nowMicros() + 400_000
      const record = yield* load.run(plan(port, { startAtMicros, connections: 500, requestsMax: 500 }))
      assert.isAtLeast(
        record.sentMicros.reduce((a, b) => Math.min(a, b)),
        startAtMicros
      )
      assert.strictEqual(requests, 500)
    })
  )

  it.live("fails on an answer that is no refusal", () =>
    Effect.gen(function* () {
      const { port } = yield* serverOf((_, response) => response.writeHead(500, { "content-length": 2 }).end("{}"))
      const load = yield* PacedLoad.make
      assert.include((yield* Effect.flip(load.run(plan(port)))).problem, "500 Internal Server Error")
    })
  )
})

const Micros = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3_000_000 }))
const Requests = Schema.Array(
  Schema.Struct({ wanted: Micros, waited: Micros, answer: Micros, status: Schema.Literals([200, 503, LOST]) })
).check(Schema.isMinLength(1), Schema.isMaxLength(60))

const START_MICROS = 5_000_000_000

const recordOf = (requests: typeof Requests.Type): PacedLoadRecord => ({
  wantedMicros: Float64Array.from(requests, ({ wanted }, i) => START_MICROS + (i === 0 ? 0 : wanted)),
  sentMicros: Float64Array.from(requests, ({ wanted, waited }, i) => START_MICROS + (i === 0 ? 0 : wanted) + waited),
  answeredMicros: Float64Array.from(
    requests,
    ({ answer, waited, wanted }, i) => START_MICROS + (i === 0 ? 0 : wanted) + waited + answer
  ),
  statuses: Uint16Array.from(requests, ({ status }) => status),
  leftOut: 0,
  reopened: 0
})

const SECONDS = 2
const END_MICROS = START_MICROS + SECONDS * 1_000_000

describe("a step's figures", () => {
  it.effect.prop(
    "count each request once, by its outcome and time",
    [Requests, Requests, Requests],
    ([first, second, probed]) =>
      Effect.sync(() => {
        const floods = [recordOf(first), recordOf(second)]
        const probe = recordOf(probed)
        const step = stepOf(floods, probe, { connections: 2, seconds: SECONDS }, 1)
        let [sent, goodput, refused, lost] = [0, 0, 0, 0]
        const accepted: Array<number> = []
        for (const { answeredMicros, sentMicros, statuses } of floods) {
          for (const [i, status] of statuses.entries()) {
            const inTime = answeredMicros[i]! <= END_MICROS
            if (sentMicros[i]! <= END_MICROS) sent++
            if (status === 200 && inTime) goodput++
            if (status === 503 && inTime) refused++
            if (status === LOST) lost++
            if (status === 200) accepted.push((answeredMicros[i]! - sentMicros[i]!) / 1000)
          }
        }
        assert.strictEqual(step.sentPerSecond, sent / SECONDS)
        assert.strictEqual(step.goodputPerSecond, goodput / SECONDS)
        assert.strictEqual(step.refusedPerSecond, refused / SECONDS)
        assert.strictEqual(step.lost, lost)
        assert.deepStrictEqual(outcomesOf(floods), { acknowledged: accepted.length, lost })
        if (accepted.length === 0) assert.isUndefined(step.accepted)
        else assert.strictEqual(step.accepted?.p99Millis, percentile(Float64Array.from(accepted).toSorted(), 99))
        const { requests } = step.probe
        assert.strictEqual(requests, probe.wantedMicros.filter((wanted) => wanted < END_MICROS).length)
      })
  )

  /** A probe every 10 ms for 5 s, with the delay of each answer in milliseconds, or a refusal. */
  const probeWith = (fate: (afterEndMillis: number) => number | "refused"): PacedLoadRecord => {
    const wanted = Array.from({ length: 500 }, (_, i) => START_MICROS + i * 10_000)
    const fates = wanted.map((at) => fate((at - END_MICROS) / 1000))
    return {
      wantedMicros: Float64Array.from(wanted),
      sentMicros: Float64Array.from(wanted),
      answeredMicros: Float64Array.from(wanted, (at, i) => at + (fates[i] === "refused" ? 1 : Number(fates[i])) * 1000),
      statuses: Uint16Array.from(fates, (one) => (one === "refused" ? 503 : 200)),
      leftOut: 0,
      reopened: 0
    }
  }
  const answeredBy = (millis: number): PacedLoadRecord =>
    recordOf([{ wanted: 1, waited: 1, answer: SECONDS * 1_000_000 + millis * 1000 - 1, status: 200 }])
  const recovery = (flood: PacedLoadRecord, probe: PacedLoadRecord) =>
    stepOf([flood], probe, { connections: 1, seconds: SECONDS }, 2).recoveryMillis

  it("has recovered when the flood is answered and the probe is as quick as before", () => {
    assert.strictEqual(
      recovery(
        answeredBy(-500),
        probeWith(() => 6)
      ),
      0
    )
    assert.strictEqual(
      recovery(
        answeredBy(700),
        probeWith(() => 6)
      ),
      700
    )
    assert.strictEqual(
      recovery(
        answeredBy(-500),
        probeWith((at) => (at < 300 ? "refused" : 2))
      ),
      300
    )
    assert.strictEqual(
      recovery(
        answeredBy(900),
        probeWith((at) => (at < 300 ? "refused" : 2))
      ),
      900
    )
    // The median of twenty in a row: ten slow ones do not move it.
    assert.strictEqual(
      recovery(
        answeredBy(-500),
        probeWith((at) => (at < 1000 ? 7 : 2))
      ),
      900
    )
    assert.isUndefined(
      recovery(
        answeredBy(-500),
        probeWith(() => 6.1)
      )
    )
    assert.isUndefined(
      recovery(
        answeredBy(-500),
        probeWith(() => "refused")
      )
    )
  })
})

const turn = (goodput: number, changes: Partial<Turn["step"]> = {}, otherMillis = 8): Turn => {
  const latency = (millis: number) => ({ p50Millis: millis, p99Millis: 2 * millis, maxMillis: 3 * millis })
  const probe = { requests: 100, refused: 0, lost: 0, latency: latency(otherMillis) }
  const step = {
    connections: 256,
    seconds: 4,
    sentPerSecond: 2 * goodput,
    goodputPerSecond: goodput,
    refusedPerSecond: goodput,
    lost: 0,
    accepted: latency(500),
    probe,
    recoveryMillis: 1000,
    ...changes
  }
  return { quiet: { ...probe, latency: latency(2) }, peak: { ...step, connections: 256, goodputPerSecond: 1000 }, step }
}

const results = (byOffer: OverloadResults["byOffer"], byConnections: OverloadResults["byConnections"]) => ({
  at: "2026-11-21T00:00:00.000Z",
  machine: { cpu: "A & B", cores: 2, memoryGigabytes: 24, system: "l", node: "v24", postgres: "18.4", commit: "abc" },
  probePerSecond: 100,
  byOffer,
  byConnections
})

describe("the goals under overload", () => {
  const judged = (worst: Turn) =>
    judge(results([{ ...turn(500), timesPeak: 0.5 }], [turn(900), worst])).map(({ reached }) => reached)

  const ALL = [true, true, true, true, true, true]

  it("are judged by the worst load, and goodput only where it could be the peak", () => {
    assert.deepStrictEqual(judged(turn(900)), ALL)
    assert.deepStrictEqual(judged(turn(899)), ALL.with(0, false))
    const slow = { p50Millis: 1, p99Millis: 1001, maxMillis: 1001 }
    assert.deepStrictEqual(
      judged(turn(900, { accepted: slow, recoveryMillis: 1001 })),
      ALL.with(1, false).with(2, false)
    )
    assert.deepStrictEqual(judged(turn(900, {}, 8.1)), ALL.with(3, false))
    const probe = { requests: 100, refused: 0, lost: 0, latency: { ...slow, p99Millis: 100 } }
    assert.deepStrictEqual(judged(turn(900, { probe })), ALL)
    assert.deepStrictEqual(
      judged(turn(900, { probe: { ...probe, latency: { ...slow, p99Millis: 101 } } })),
      ALL.with(4, false)
    )
    assert.deepStrictEqual(judged(turn(900, { probe: { ...probe, refused: 1 } })), ALL.with(5, false))
  })

  it("require no peak of a load below the peak's", () => {
    assert.deepStrictEqual(judged(turn(100, { connections: 255 })), ALL)
    assert.deepStrictEqual(judged(turn(100, { connections: 10_000 })), ALL.with(0, false))
  })

  it("are not reached by what is not seen", () => {
    const { accepted: _, recoveryMillis: __, ...blind } = turn(900).step
    const probe = { requests: 0, refused: 0, lost: 0 }
    assert.deepStrictEqual(judged({ ...turn(900), step: { ...blind, probe } }), [
      true,
      false,
      false,
      false,
      false,
      true
    ])
  })
})

describe("the report of overload", () => {
  const some = results([{ ...turn(500), timesPeak: 10 }], [turn(900), turn(20, { connections: 10_000, lost: 3 })])

  it("is a table with as many cells in every row", () => {
    const lines = OverloadReport.markdown(some).split("\n")
    assert.strictEqual(lines.length, 5)
    assert.strictEqual(new Set(lines.map((line) => line.split("|").length)).size, 1)
    assert.include(OverloadReport.text(some), "10 000 connections")
  })

  it("warns if the machine was not quiet", () => {
    const noisy = results([{ ...turn(500, { othersShare: 0.42 }), timesPeak: 10 }], [])
    for (const report of [OverloadReport.text(noisy), OverloadReport.markdown(noisy), OverloadChart.svg(noisy)]) {
      assert.include(report, "others took 42 % of its CPU")
    }
    assert.notInclude(OverloadChart.svg(some), "quiet")
  })

  it("is a chart whose curves are to scale", () => {
    const chart = OverloadChart.svg(some)
    assert.notInclude(chart, "NaN")
    assert.include(chart, "A &amp; B")
    const ys = [...chart.matchAll(/<circle cx="[\d.]+" cy="([\d.]+)"/g)].map(([, y]) => Number(y))
    const zero = Number(/y1="([\d.]+)"/.exec(chart)![1])
    // The first curve has one offer; the curves of the connections follow those of its column.
    assert.approximately((zero - ys[4]!) / (zero - ys[0]!), 900 / 500, 1e-6)
    assert.approximately((zero - ys[5]!) / (zero - ys[0]!), 20 / 500, 1e-6)
  })
})
