/** The access log: a line per answered request, without blocking the process and without secrets. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import * as AccessLog from "../../src/http/AccessLog.ts"
import * as RequestMetrics from "../../src/http/RequestMetrics.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"

/** An output whose reader is `behind` by that many bytes. */
class Pipe implements AccessLog.Output {
  writableLength = 0
  readonly writes: Array<string> = []
  failure: Error | null = null
  listeners = 0

  write(text: string, onWritten: (error?: Error | null) => void): void {
    this.writes.push(text)
    onWritten(this.failure)
  }

  on(): void {
    this.listeners++
  }

  off(): void {
    this.listeners--
  }

  get lines(): ReadonlyArray<Readonly<Record<string, unknown>>> {
    return this.writes.flatMap((text) =>
      text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
    )
  }
}

const turned = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const pipe = new Pipe()
let till: MemoryTillWithPages
beforeAll(async () => void (till = await start({ requestLog: RequestMetrics.layer(pipe) })))
afterAll(() => till.close())

/** Makes requests, and returns their lines. */
const linesOf = async (requests: () => Promise<unknown>) => {
  const before = pipe.lines.length
  await requests()
  await turned()
  return pipe.lines.slice(before)
}

describe("semantics operation.access_log: a line", () => {
  it("names a request's route and merchant, and marks a replay", async () => {
    const options = { body: { email: "a@b.example" }, idempotencyKey: "twice" }
    const [first, second] = await linesOf(async () => {
      await till.request("POST", "/v1/customers", options)
      await till.request("POST", "/v1/customers", options)
    })
    const { duration_ms: millis, timestamp, "till.request_id": id, ...rest } = first!
    assert.deepStrictEqual(rest, {
      "event.name": "http.server.request",
      "http.request.method": "POST",
      "http.route": "/v1/customers",
      "url.path": "/v1/customers",
      "http.response.status_code": 200,
      "till.merchant": till.merchantId,
      "till.mode": "test"
    })
    assert.isAbove(millis as number, 0)
    assert.match(String(id), /^req_/)
    assert.isBelow(Math.abs(Date.now() - Date.parse(String(timestamp))), 60_000)
    assert.deepInclude(second, { "till.replay": true, "http.response.status_code": 200 })
  })

  it("names the template of a path, and no merchant without a valid key", async () => {
    const [found, denied, missing] = await linesOf(async () => {
      await till.request("GET", "/v1/customers/cus_123456789")
      await till.request("GET", "/v1/customers/cus_123456789", { key: "sk_test_wrong123" })
      await till.request("GET", "/v1/nothing")
    })
    assert.deepInclude(found, { "http.route": "/v1/customers/{id}", "http.response.status_code": 404 })
    assert.deepInclude(denied, { "http.response.status_code": 401 })
    assert.notProperty(denied, "till.merchant")
    assert.notProperty(missing, "http.route")
  })

  it("is written for pages and the dashboard, with their account", async () => {
    const product = await till.post("/v1/products", { name: "Tea" })
    const session = await till.post("/v1/checkout_sessions", {
      line_items: [{ price_data: { currency: "usd", unit_amount: 500, product: product.id }, quantity: 1 }],
      mode: "payment",
      success_url: "https://shop.example/"
    })
    const lines = await linesOf(async () => {
      await fetch(`${till.url}/checkout/${session.id}`)
      await fetch(`${till.url}/dashboard/test/payments`, { redirect: "manual" })
      await fetch(`${till.url}/pay/nothing/here`)
    })
    const shown = lines.map((line) => [line["http.route"], line["http.response.status_code"]])
    assert.deepStrictEqual(shown, [
      ["/checkout/{id}", 200],
      ["/dashboard/{mode}/payments", 303],
      [undefined, 404]
    ])
    assert.deepInclude(lines[0], { "till.merchant": till.merchantId, "till.mode": "test" })
  })

  it("is not written for health checks", async () => {
    const lines = await linesOf(async () => {
      await fetch(`${till.url}/healthz`)
      await fetch(`${till.url}/readyz`)
    })
    assert.deepStrictEqual(lines, [])
  })

  it("has no card number, key, query or body", async () => {
    const lines = await linesOf(async () => {
      await till.request("GET", `/v1/customers/4242424242424242?client_secret=pi_1_secret_abcdefgh`)
      await till.request("GET", `/v1/${till.secretTest}/4242%204242%204242%204242`)
      await fetch(`${till.url}/dashboard/link/abcdefghijklmnop`)
      await till.request("POST", "/v1/customers", { body: { description: "a private matter" } })
    })
    assert.lengthOf(lines, 4)
    const text = JSON.stringify(lines)
    assert.notMatch(text, /4242|secret_|abcdefghijklmnop|private matter/)
    assert.notInclude(text, till.secretTest)
  })
})

describe("the writer of the access log", () => {
  const answered = {
    id: "req_1",
    method: "GET",
    path: "/",
    route: "/",
    status: 200,
    millis: 1,
    account: undefined,
    isReplay: false
  }
  const within = async (use: (log: AccessLog.AccessLog, output: Pipe) => Promise<void>) => {
    const output = new Pipe()
    const scope = Effect.runSync(Scope.make())
    await use(Effect.runSync(Scope.provide(AccessLog.make(output), scope)), output)
    await Effect.runPromise(Scope.close(scope, Exit.void))
    assert.strictEqual(output.listeners, 0)
    return output
  }

  it("writes the lines of a turn of the event loop together, and the rest when it closes", async () => {
    const output = await within(async (log, { writes }) => {
      for (let i = 0; i < 3; i++) log.write(answered)
      assert.lengthOf(writes, 0)
      await turned()
      assert.lengthOf(writes, 1)
      log.write(answered)
    })
    assert.lengthOf(output.writes, 2)
    assert.lengthOf(output.lines, 4)
  })

  it("drops and counts lines while the reader is behind, and in a turn with too many", async () => {
    await within(async (log, output) => {
      output.writableLength = 1_048_577
      for (let i = 0; i < 3; i++) log.write(answered)
      await turned()
      assert.deepStrictEqual([output.writes.length, log.dropped()], [0, 3])
      output.writableLength = 0
      for (let i = 0; i < 20_000; i++) log.write(answered)
      await turned()
      assert.isAbove(log.dropped(), 3)
      assert.strictEqual(output.lines.length + log.dropped(), 20_003)
    })
  })

  it("counts lines that a closed pipe has lost", async () => {
    await within(async (log, output) => {
      output.failure = new Error("EPIPE")
      log.write(answered)
      await turned()
      assert.strictEqual(log.dropped(), 1)
    })
  })
})
