/** The operator's port for metrics. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Metrics from "../../src/engine/process/Metrics.ts"
import { listen } from "../../src/server/MetricsServer.ts"
import { parse } from "../support/PrometheusText.ts"

const request = (url: string, method = "GET") => Effect.promise(() => fetch(url, { method }))

describe("semantics operation.metrics: the port", () => {
  it.live("answers GET and HEAD of /metrics, and nothing else", () =>
    Effect.gen(function* () {
      const count = yield* Metrics.counter({ name: "payments_total", description: "Payments." })
      count(2)
      const url = yield* listen({ host: "127.0.0.1", ports: [0] })
      const response = yield* request(url)
      assert.strictEqual(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
      const families = parse(yield* Effect.promise(() => response.text()))
      assert.strictEqual(families.get("payments_total")?.samples[0]?.value, 2)
      const head = yield* request(url, "HEAD")
      assert.deepStrictEqual([head.status, yield* Effect.promise(() => head.text())], [200, ""])
      assert.strictEqual((yield* request(`${url}?name=x`)).status, 200)
      assert.strictEqual((yield* request(url, "POST")).status, 405)
      assert.strictEqual((yield* request(`${url}/x`)).status, 404)
      assert.strictEqual((yield* request(new URL("/", url).href)).status, 404)
    }).pipe(Effect.provide(Metrics.layer))
  )

  it.live("is the first free one of several, and an error if none is", () =>
    Effect.gen(function* () {
      const host = "127.0.0.1"
      const taken = Number(new URL(yield* listen({ host, ports: [0] })).port)
      const error = yield* Effect.flip(listen({ host, ports: [taken] }))
      assert.strictEqual(error.code, "EADDRINUSE")
      const second = new URL(yield* listen({ host, ports: [taken, 0] }))
      assert.notStrictEqual(Number(second.port), taken)
    }).pipe(Effect.provide(Metrics.layer))
  )
})
