/** Limits and the breaker of processors behind a network (semantics operations.limits). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { OperationRequest, Outcome, RemoteProcessor } from "../../src/payments/processing/RemoteProcessor.ts"
import type { ProcessorsShape } from "../../src/payments/processing/Processor.ts"
import { guarded } from "../../src/processors/Guard.ts"

const APPROVED: Outcome = { kind: "approved", reference: "ref", amount: 1, currency: "usd", captureBefore: null }
const UNKNOWN: Outcome = { kind: "unknown", why: "reset" }
const CARD = {
  brand: "visa",
  last4: "4242",
  exp_month: 12,
  exp_year: 2034,
  funding: "credit",
  country: "US",
  fingerprint: null
} as const
const REQUEST = { id: "op_1" } as OperationRequest

/** A guarded processor whose calls have the outcome that the test has set. */
const start = Effect.gen(function* () {
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const state = { outcome: APPROVED as Outcome, millis: 0, calls: 0, running: 0, most: 0 }
  const call = Effect.suspend(() => {
    state.calls++
    state.most = Math.max(state.most, ++state.running)
    return Effect.ensuring(
      Effect.as(Effect.sleep(state.millis), state.outcome),
      Effect.sync(() => state.running--)
    )
  })
  const remote: RemoteProcessor = {
    kind: "remote",
    id: "prc_1",
    keyMillis: 1,
    fieldsUrl: null,
    describe: () =>
      Effect.map(call, ({ kind }) =>
        kind === "approved" ? { kind: "card", card: CARD } : { kind: "unavailable", why: kind }
      ),
    perform: () => call,
    look: () => call,
    fence: () => call,
    list: () => Effect.succeed({ kind: "unavailable", why: "There is no list." }),
    onlyLooks: false,
    verify: () => null
  }
  const registry: ProcessorsShape = { of: () => remote, atOnce: () => null, byId: () => remote, mayBegin: () => true }
  const processors = guarded(registry, { fork: (question) => void fork(question) })
  return { state, processors, processor: processors.byId("prc_1")! }
})

const perform = ({ processor }: Effect.Success<typeof start>) => processor.perform(REQUEST)

describe("a processor", () => {
  it.effect("is out of order after 10 failures in a row: nothing begins, and nothing is sent", () =>
    Effect.gen(function* () {
      const till = yield* start
      till.state.outcome = UNKNOWN
      for (let i = 0; i < 9; i++) yield* perform(till)
      assert.isTrue(till.processors.mayBegin("prc_1"))
      yield* perform(till)
      assert.isFalse(till.processors.mayBegin("prc_1"))
      assert.strictEqual((yield* perform(till)).kind, "not_executed")
      assert.strictEqual(till.state.calls, 10)
    })
  )

  it.effect("is out of order if half of 20 calls within 30 seconds fail, and not for older failures", () =>
    Effect.gen(function* () {
      const till = yield* start
      const half = Effect.fnUntraced(function* (count: number) {
        for (let i = 0; i < count; i++) {
          till.state.outcome = i % 2 === 0 ? APPROVED : UNKNOWN
          yield* perform(till)
        }
      })
      yield* half(19)
      yield* TestClock.adjust("30 seconds")
      yield* half(19)
      assert.isTrue(till.processors.mayBegin("prc_1"))
      till.state.outcome = UNKNOWN
      yield* perform(till)
      assert.isFalse(till.processors.mayBegin("prc_1"))
    })
  )

  it.effect("is tried by one look in 5 seconds, and is back with the first answer", () =>
    Effect.gen(function* () {
      const till = yield* start
      till.state.outcome = UNKNOWN
      for (let i = 0; i < 10; i++) yield* perform(till)
      const looks = Effect.forEach([1, 2, 3], () => till.processor.look(REQUEST))
      yield* looks
      assert.strictEqual(till.state.calls, 10)
      yield* TestClock.adjust("5 seconds")
      yield* looks
      assert.strictEqual(till.state.calls, 11)
      assert.isFalse(till.processors.mayBegin("prc_1"))
      yield* TestClock.adjust("5 seconds")
      till.state.outcome = { kind: "not_executed", why: "never seen", retryAfterMillis: null }
      yield* till.processor.look(REQUEST)
      assert.isTrue(till.processors.mayBegin("prc_1"))
      till.state.outcome = APPROVED
      assert.strictEqual((yield* perform(till)).kind, "approved")
    })
  )

  it.effect("is tried by a request that needs it, although no operation waits", () =>
    Effect.gen(function* () {
      const till = yield* start
      const { processor, processors } = till
      till.state.outcome = { kind: "not_executed", why: "not sent", retryAfterMillis: null }
      for (let i = 0; i < 10; i++) yield* processor.perform(REQUEST)
      assert.strictEqual(processors.outOfOrder(), 1)
      assert.isFalse(processors.mayBegin("prc_1"))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(till.state.calls, 10)
      yield* TestClock.adjust("4 seconds")
      till.state.millis = 500
      // A look finds that the operation was never seen: the processor answers.
      for (let i = 0; i < 3; i++) assert.isFalse(processors.mayBegin("prc_1"))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(till.state.calls, 11)
      assert.isTrue(processors.mayBegin("prc_1"))
      assert.strictEqual(processors.outOfOrder(), 0)
    })
  )

  it.effect("is tried every 15 seconds although nothing needs it, and its return is announced once", () =>
    Effect.gen(function* () {
      const till = yield* start
      const back: Array<string> = []
      till.processors.onBack!((id) => void back.push(id))
      till.state.outcome = UNKNOWN
      for (let i = 0; i < 10; i++) yield* perform(till)
      yield* TestClock.adjust("44 seconds")
      assert.strictEqual(till.state.calls, 12)
      assert.deepStrictEqual(back, [])
      till.state.outcome = APPROVED
      yield* TestClock.adjust("1 second")
      assert.strictEqual(till.state.calls, 13)
      assert.deepStrictEqual(back, ["prc_1"])
      yield* perform(till)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(back, ["prc_1"])
      assert.strictEqual(till.state.calls, 14)
    })
  )

  it.effect("describes no token while it is out of order, but for one that tries it", () =>
    Effect.gen(function* () {
      const { processor, processors, state } = yield* start
      state.outcome = UNKNOWN
      for (let i = 0; i < 15; i++) assert.strictEqual((yield* processor.describe("tok")).kind, "unavailable")
      assert.strictEqual(state.calls, 10)
      assert.isFalse(processors.mayBegin("prc_1"))
      yield* TestClock.adjust("5 seconds")
      state.outcome = APPROVED
      assert.strictEqual((yield* processor.describe("tok")).kind, "card")
      assert.isTrue(processors.mayBegin("prc_1"))
    })
  )

  it.effect("gets 512 calls at once; those that wait longer than 5 seconds are not executed", () =>
    Effect.gen(function* () {
      const till = yield* start
      till.state.millis = 3000
      const calls = yield* Effect.forEach(Array.from({ length: 1100 }), () => Effect.forkChild(perform(till)))
      yield* TestClock.adjust("20 seconds")
      const outcomes = yield* Effect.forEach(calls, (call) => Fiber.join(call))
      assert.strictEqual(till.state.most, 512)
      const kinds = outcomes.map(({ kind }) => kind)
      assert.strictEqual(kinds.filter((kind) => kind === "approved").length, 1024)
      assert.strictEqual(kinds.filter((kind) => kind === "not_executed").length, 76)
    })
  )
})
