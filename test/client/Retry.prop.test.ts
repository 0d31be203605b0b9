/** The times of attempts, on a test clock: the waits of Send.ts, and the same request every time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Ref, Schema, Stream } from "effect"
import { HttpClient, HttpClientError, HttpClientResponse, type HttpClientRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { retryAfterSeconds } from "../../src/client/Answer.ts"
import { Till } from "../../src/client/effect.ts"
import { BACKOFF_MAX_MILLIS, BACKOFF_MIN_MILLIS, RETRY_AFTER_MAX_SECONDS } from "../../src/client/Send.ts"

/** The outcome of an attempt; null is a lost response. */
const outcome = Schema.Union([
  Schema.Null,
  Schema.Struct({
    status: Schema.Literals([200, 400, 402, 404, 409, 422, 429, 500, 502, 503]),
    retryAfter: Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 70 })))
  })
])
type Outcome = typeof outcome.Type

interface Seen {
  readonly request: HttpClientRequest.HttpClientRequest
  readonly atMillis: number
}

/** Returns the outcomes in turn, then the last one forever, and records the times of the requests. */
const server = (outcomes: ReadonlyArray<Outcome>) => {
  const seen: Array<Seen> = []
  const client = HttpClient.make((request) =>
    Effect.clockWith((clock) => {
      const current = outcomes[Math.min(seen.length, outcomes.length - 1)]!
      seen.push({ request, atMillis: clock.currentTimeMillisUnsafe() })
      if (current === null) {
        return Effect.fail(
          new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request }) })
        )
      }
      const headers = { ...(current.retryAfter !== null && { "retry-after": String(current.retryAfter) }) }
      const response = new Response(bodyOf(current.status), { status: current.status, headers })
      return Effect.succeed(HttpClientResponse.fromWeb(request, response))
    })
  )
  return { seen, layer: Layer.succeed(HttpClient.HttpClient, client) }
}

const bodyOf = (status: number): string =>
  JSON.stringify(
    status === 200
      ? { object: "customer" }
      : {
          error: { type: "api_error", code: "some_code", message: "No.", param: null, doc_url: "https://example.test" }
        }
  )

const options = { apiKey: Redacted.make("sk_test_1"), baseUrl: "https://pay.example.test/prefix/" }

/** Runs a call for a virtual day. */
const runFor = <A, E>(call: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(Effect.result(call))
    yield* TestClock.adjust("1 day")
    return yield* Fiber.join(fiber)
  })

/** Returns a request without its trace headers. */
const sentBy = ({
  body,
  headers: { b3: _b3, traceparent: _traceparent, ...headers },
  method,
  url
}: Seen["request"]) => ({
  body,
  headers: { ...headers },
  method,
  url
})

const isTransient = (current: Outcome) => current === null || [409, 429, 500, 502, 503].includes(current.status)
const retryAfterOf = (current: Outcome) => current?.retryAfter ?? 0

describe("attempts", () => {
  it.effect.prop(
    "are made while outcomes are transient, no earlier than Retry-After and no later than the backoff",
    {
      outcomes: Schema.NonEmptyArray(outcome).check(Schema.isMaxLength(8)),
      retriesMax: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))
    },
    ({ outcomes, retriesMax }) =>
      Effect.gen(function* () {
        const { layer, seen } = server(outcomes)
        const till = yield* Effect.provide(Till.make(options), layer)
        const result = yield* runFor(till.customers.create({ name: "A" }, { retriesMax }))

        const outcomeAt = (index: number) => outcomes[Math.min(index, outcomes.length - 1)]!
        let expected = 1
        while (
          expected <= retriesMax &&
          isTransient(outcomeAt(expected - 1)) &&
          retryAfterOf(outcomeAt(expected - 1)) <= RETRY_AFTER_MAX_SECONDS
        ) {
          expected++
        }
        assert.strictEqual(seen.length, expected)
        const last = outcomeAt(expected - 1)
        assert.strictEqual(result._tag, last?.status === 200 ? "Success" : "Failure")
        if (result._tag === "Failure") assert.strictEqual(result.failure.status, last?.status ?? null)

        for (const [index, { atMillis, request }] of seen.slice(1).entries()) {
          const waited = atMillis - seen[index]!.atMillis
          const asked = retryAfterOf(outcomeAt(index)) * 1000
          const backoff = Math.min(BACKOFF_MAX_MILLIS, BACKOFF_MIN_MILLIS * 2 ** index)
          assert.isAtLeast(waited, Math.max(asked, Math.floor(backoff / 2)))
          assert.isAtMost(waited, Math.max(asked, backoff))
          assert.deepStrictEqual(sentBy(request), sentBy(seen[0]!.request))
        }
      })
  )

  it.effect("share a key in one run of a call, and have another one in the next", () =>
    Effect.gen(function* () {
      const { layer, seen } = server([null, { status: 200, retryAfter: null }, null, { status: 200, retryAfter: null }])
      const till = yield* Effect.provide(Till.make(options), layer)
      const call = till.customers.create({ name: "A" })
      yield* runFor(Effect.andThen(call, call))
      const keys = seen.map(({ request }) => request.headers["idempotency-key"]!)
      assert.strictEqual(keys[0], keys[1])
      assert.strictEqual(keys[2], keys[3])
      assert.notStrictEqual(keys[0], keys[2])
      assert.strictEqual(seen[0]!.request.url, "https://pay.example.test/prefix/v1/customers")
    })
  )

  it.effect("end at their timeout, or when interrupted", () =>
    Effect.gen(function* () {
      const interrupted = yield* Ref.make(0)
      const hanging = HttpClient.make(() =>
        Effect.onInterrupt(Effect.never, () => Ref.update(interrupted, (n) => n + 1))
      )
      const till = yield* Till.make({ ...options, retriesMax: 1, timeoutMillis: 5_000 }).pipe(
        Effect.provideService(HttpClient.HttpClient, hanging)
      )
      const outOfTime = yield* runFor(till.customers.list())
      assert.strictEqual(outOfTime._tag === "Failure" && outOfTime.failure._tag, "ConnectionError")
      assert.strictEqual(yield* Ref.get(interrupted), 2)
      const fiber = yield* Effect.forkChild(Stream.runDrain(till.customers.list.stream()))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* Ref.get(interrupted), 3)
    })
  )
})

describe("Retry-After", () => {
  it("is seconds or a date", () => {
    const now = Date.UTC(2026, 10, 21, 12)
    assert.isNull(retryAfterSeconds(undefined, now))
    assert.isNull(retryAfterSeconds("soon", now))
    assert.strictEqual(retryAfterSeconds("0", now), 0)
    assert.strictEqual(retryAfterSeconds("120", now), 120)
    assert.strictEqual(retryAfterSeconds("Sat, 21 Nov 2026 12:00:30 GMT", now), 30)
    assert.strictEqual(retryAfterSeconds("Sat, 21 Nov 2026 11:00:00 GMT", now), 0)
  })
})
