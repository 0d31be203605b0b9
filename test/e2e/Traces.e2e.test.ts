/** Traces of real processes, from a request to its webhook (semantics operation.traces). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { attributesOf, collector, type SentSpan } from "../support/Collector.ts"
import { startFleet } from "../support/TillFleet.ts"
import { startTill, type TillProcess, until } from "../support/TillProcess.ts"
import { answersWith, receiver } from "../webhooks/RawReceiver.ts"

const SERVER_KIND = 2
const CLIENT_KIND = 3
const ERROR = 2

const TRACE = "0af7651916cd43dd8448eb211c80319c"
const SENDER = "b7ad6b7169203331"
const traceparent = (flags: "00" | "01", trace = TRACE) => `00-${trace}-${SENDER}-${flags}`

const create = (server: TillProcess, idempotencyKey: string, header?: string) =>
  server.request("POST", "/v1/customers", {
    body: { name: "Zoë" },
    idempotencyKey,
    headers: header === undefined ? {} : { traceparent: header }
  })

/** The span of this name; there must be one. */
const one = (spans: ReadonlyArray<SentSpan>, name: string): SentSpan => {
  const found = spans.filter((span) => span.name === name)
  assert.lengthOf(found, 1, name)
  return found[0]!
}

const variables = { OTEL_BSP_SCHEDULE_DELAY: "200" }

describe("a trace", () => {
  it.live("of a payment goes on from the sender's span, through command, flush and projection, to the webhook", () =>
    Effect.gen(function* () {
      const there = yield* collector
      const shop = yield* receiver(answersWith(500))
      const endpoint = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${there.url}/v1/traces` }
      const server = yield* startTill({ variables: { ...variables, ...endpoint } })
      yield* Effect.promise(async () => {
        await server.post("/v1/webhook_endpoints", { url: shop.url, enabled_events: ["payment_intent.succeeded"] })
        const { id } = await server.post("/v1/payment_intents", { amount: 2000, currency: "usd" })
        const answer = await server.request("POST", `/v1/payment_intents/${id}/confirm`, {
          body: { payment_method: "pm_card_visa" },
          idempotencyKey: "traced",
          headers: { traceparent: traceparent("01") }
        })
        const ofTrace = () => there.spans.filter(({ traceId }) => traceId === TRACE)
        await until("all spans were sent", async () => ofTrace().length >= 5)
        const spans = ofTrace()
        assert.lengthOf(spans, 5)
        const request = one(spans, "POST /v1/payment_intents/{id}/confirm")
        const command = one(spans, "command")
        const webhook = one(spans, "webhook")
        assert.deepStrictEqual([request.kind, webhook.kind], [SERVER_KIND, CLIENT_KIND])
        assert.strictEqual(request.parentSpanId, SENDER)
        assert.strictEqual(command.parentSpanId, request.spanId)
        for (const name of ["flush", "projection", "webhook"]) {
          assert.strictEqual(one(spans, name).parentSpanId, command.spanId, name)
        }
        assert.deepInclude(attributesOf(request), {
          "http.request.method": "POST",
          "http.route": "/v1/payment_intents/{id}/confirm",
          "http.response.status_code": 200,
          "till.request_id": answer.headers["x-request-id"]
        })
        assert.deepInclude(attributesOf(webhook), { "http.response.status_code": 500, "till.attempt": 1 })
        assert.strictEqual(webhook.status.code, ERROR)
        assert.isAtMost(Number(request.startTimeUnixNano), Number(command.startTimeUnixNano))
        for (const span of spans) assert.isAtMost(Number(span.startTimeUnixNano), Number(span.endTimeUnixNano))
        assert.deepStrictEqual(
          shop.requests.map(({ headers }) => headers.get("traceparent")),
          [`00-${TRACE}-${webhook.spanId}-01`]
        )
      })
    })
  )

  it.live("is sent if, and only if, its sender's is, and otherwise by the sampler", () =>
    Effect.gen(function* () {
      const there = yield* collector
      const server = yield* startTill({
        variables: {
          ...variables,
          OTEL_EXPORTER_OTLP_ENDPOINT: there.url,
          OTEL_METRICS_EXPORTER: "none",
          OTEL_TRACES_SAMPLER: "parentbased_always_off"
        }
      })
      yield* Effect.promise(async () => {
        await create(server, "unsampled", traceparent("00", TRACE.replace("0af", "1af")))
        await create(server, "malformed", "00-xyz")
        await create(server, "without")
        await create(server, "sampled", traceparent("01"))
        await until("the sampled one was sent", async () => there.spans.some(({ name }) => name === "projection"))
        assert.deepStrictEqual([...new Set(there.spans.map(({ traceId }) => traceId))], [TRACE])
        assert.deepStrictEqual([...new Set(there.paths)], ["/v1/traces"])
      })
    })
  )

  it.live("has a span in each process of a forwarded request", () =>
    Effect.gen(function* () {
      const there = yield* collector
      const endpoint = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${there.url}/v1/traces` }
      const servers = yield* startFleet(2, { ...variables, ...endpoint })
      yield* Effect.promise(async () => {
        const traces = servers.map((_, i) => TRACE.replace("0af", `${i + 2}af`))
        await Promise.all(servers.map((server, i) => create(server, `key ${i}`, traceparent("01", traces[i]))))
        const requests = () => there.spans.filter(({ kind }) => kind === SERVER_KIND)
        await until("both were sent, one of them twice", async () => requests().length >= 3)
        const forwarded = requests().filter((span) => attributesOf(span)["till.forwarded"] === true)
        assert.lengthOf(forwarded, 1)
        const [outer] = forwarded
        assert.strictEqual(outer!.parentSpanId, SENDER)
        const inner = requests().filter(({ parentSpanId }) => parentSpanId === outer!.spanId)
        assert.lengthOf(inner, 1)
        assert.strictEqual(inner[0]!.traceId, outer!.traceId)
      })
    })
  )
})
