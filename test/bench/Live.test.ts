import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Redacted } from "effect"
import * as Gateway from "../../bench/live/Gateway.ts"
import { judge } from "../../bench/live/LiveGoals.ts"
import * as LiveReport from "../../bench/live/LiveReport.ts"
import type { Beside, Confirms, LiveResults } from "../../bench/live/LiveResults.ts"
import { PUBLIC_ONLY } from "../../src/domain/WebhookHosts.ts"
import * as Exchange from "../../src/processors/Exchange.ts"
import * as HttpProcessor from "../../src/processors/protocol/HttpProcessor.ts"
import { requestOf } from "../processors/protocol/Calls.ts"

describe("the bench's gateway", () => {
  it.live("answers as the protocol demands, late, never, or not at all, and counts", () =>
    Effect.gen(function* () {
      const gateway = yield* Gateway.make
      const exchange = yield* Exchange.make({ hosts: { httpsOnly: true, besidePublic: PUBLIC_ONLY } })
      const { secret, url } = gateway
      const processor = HttpProcessor.make({ id: "prc_1", url, secrets: [Redacted.make(secret)], exchange })
      const payment = (i: number, more = {}) => requestOf({ id: `op_${i}`, payment: `pi_${i}`, ...more })
      assert.deepInclude(yield* processor.check, { protocol: 1, livemode: true })
      assert.strictEqual((yield* processor.describe("tok_bench")).kind, "card")
      assert.strictEqual((yield* processor.look(payment(1))).kind, "not_executed")
      for (const call of [processor.perform, processor.perform, processor.look]) {
        assert.strictEqual((yield* call(payment(1))).kind, "approved")
      }
      assert.deepStrictEqual(yield* gateway.ledger, { operations: 1, repeated: 1, wrong: 0, held: 0 })
      yield* gateway.answer({ kind: "after", millis: 300 })
      const began = performance.now()
      const late = yield* Effect.forkChild(processor.perform(payment(2)))
      yield* gateway.holds(1)
      assert.strictEqual((yield* Fiber.join(late)).kind, "approved")
      assert.isAtLeast(performance.now() - began, 295)
      yield* gateway.answer({ kind: "never" })
      const silent = yield* Effect.forkChild(processor.perform(payment(3)))
      yield* gateway.holds(1)
      yield* gateway.answer({ kind: "gone" })
      assert.strictEqual((yield* Fiber.join(silent)).kind, "unknown")
      assert.strictEqual((yield* processor.perform(payment(4))).kind, "not_executed")
      yield* gateway.answer({ kind: "after", millis: 0 })
      assert.strictEqual((yield* processor.perform(payment(3))).kind, "approved")
      assert.deepStrictEqual(yield* gateway.ledger, { operations: 3, repeated: 2, wrong: 0, held: 0 })
      yield* processor.perform(payment(1, { amount: 2001 }))
      yield* processor.perform(payment(5, { payment: "pi_1" }))
      assert.strictEqual((yield* gateway.ledger).wrong, 2)
    })
  )
})

const confirms = (requestsPerSecond: number, p50Millis: number, p99Millis: number): Confirms => ({
  requestsPerSecond,
  answer: { averageMillis: p50Millis, p50Millis, p95Millis: p50Millis, p99Millis, maxMillis: p99Millis }
})
const beside = (p99Millis: number, createsPerSecond: number): Beside => ({
  reads: { p50Millis: 1, p99Millis, maxMillis: p99Millis },
  createsPerSecond
})
const results: LiveResults = {
  at: "2026-11-27T12:00:00.000Z",
  machine: { cpu: "CPU", cores: 2, memoryBytes: 1, os: "linux", node: "v24", postgres: "18", commit: "abc" } as never,
  saturated: confirms(900, 60, 90),
  paced: confirms(50, 5, 29),
  pacedPerSecond: 50,
  waiting: {
    confirms: 500,
    waitMillis: 15_000,
    quiet: [beside(10, 5000), beside(10, 7000)],
    beside: beside(20, 5700),
    grownBytes: 50e6
  },
  killed: { open: 200, readySeconds: 1.5, resolvedSeconds: 2 },
  outage: {
    unresolved: 200,
    goneSeconds: 45,
    refusals: confirms(50, 2, 9).answer,
    resolvedSeconds: 14
  }
}

describe("the results of live payments", () => {
  const missed = (changed: LiveResults) => judge(changed).flatMap(({ reached, text }) => (reached ? [] : [text]))

  it("are judged, each figure by its goal", () => {
    assert.lengthOf(judge(results), 9)
    assert.deepStrictEqual(missed(results), [])
    const { killed, outage, waiting } = results
    const worse: ReadonlyArray<readonly [Partial<LiveResults>, RegExp]> = [
      [{ saturated: confirms(799, 60, 90) }, /confirms, 64 connections ≥ 800/],
      [{ paced: confirms(50, 6.1, 29) }, /p50 at 50\/s ≤ 6 ms/],
      [{ paced: confirms(50, 5, 30.1) }, /p99 at 50\/s ≤ 30 ms/],
      [{ waiting: { ...waiting, beside: beside(30.1, 5700) } }, /reads' p99 while 500 confirms wait 15 s ≤ 30 ms/],
      [{ waiting: { ...waiting, beside: beside(20, 5399) } }, /creates while 500 confirms wait 15 s ÷ quiet ≥ 0.9/],
      [{ waiting: { ...waiting, grownBytes: 61e6 } }, /memory of 500 waits ≤ 60 MB/],
      [{ killed: { ...killed!, resolvedSeconds: 10.1 } }, /200 open at a kill, resolved after ready ≤ 10 s/],
      [{ outage: { ...outage!, refusals: confirms(50, 2, 51).answer } }, /refusal's p99 .* ≤ 50 ms/],
      [{ outage: { ...outage!, resolvedSeconds: 61 } }, /200 unresolved, resolved after its return ≤ 60 s/]
    ]
    for (const [change, text] of worse) {
      const [only, ...others] = missed({ ...results, ...change })
      assert.match(only ?? "", text)
      assert.deepStrictEqual(others, [])
    }
  })

  it("are reported with and without what a profile leaves out", () => {
    const { killed: _, outage: __, ...profiled } = results
    assert.lengthOf(judge(profiled), 6)
    for (const text of [LiveReport.text(results), LiveReport.markdown(results)]) {
      assert.include(text, "200 open operations")
      assert.include(text, "gone for 45.0 s")
      assert.include(text, "5 700")
    }
    assert.notInclude(LiveReport.text(profiled), "kill -9")
  })
})
