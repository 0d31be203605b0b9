/** Every response of the service forbids browsers to guess its type. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { connect } from "node:net"
import { stylesheet } from "../../src/html/Assets.ts"
import { basic } from "../support/HttpExchange.ts"
import { type Answer, type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { filledIn, openSession, pay, send, tokenIn, visit } from "../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
let session: Answer
beforeAll(async () => {
  server = await start()
  session = await openSession(server)
})
afterAll(() => server.close())

const NOSNIFF = "x-content-type-options"

describe("an answer over HTTP", () => {
  const json = { "content-type": "application/json", "idempotency-key": "nosniff" }
  const preflight = { origin: "https://shop.example", "access-control-request-method": "POST" }
  const cases: ReadonlyArray<readonly [string, number, string, RequestInit?]> = [
    ["an object", 200, "POST /v1/customers", { headers: json, body: "{}" }],
    ["its repetition", 200, "POST /v1/customers", { headers: json, body: "{}" }],
    ["a list", 200, "GET /v1/customers"],
    ["no key", 401, "GET /v1/customers", { headers: { authorization: "" } }],
    ["no object", 404, "GET /v1/customers/cus_1"],
    ["no method", 405, "DELETE /v1/events"],
    ["a bad body", 400, "POST /v1/customers", { headers: { ...json, "idempotency-key": "bad" }, body: "{" }],
    ["too much", 413, "POST /v1/customers", { headers: json, body: " ".repeat(1_048_577) }],
    ["a preflight", 204, "OPTIONS /v1/payment_methods", { headers: preflight }],
    ["health", 200, "GET /healthz"],
    ["readiness", 200, "GET /readyz"],
    ["the contract", 200, "GET /openapi.json"],
    ["the documentation", 200, "GET /docs"],
    ["its address with a slash", 308, "GET /docs/"],
    ["the documentation of errors", 200, "GET /docs/errors"],
    ["that of one", 200, "GET /docs/errors/card_declined"],
    ["that of none", 404, "GET /docs/errors/nothing"],
    ["the script for shops", 200, "GET /checkout.js"],
    ["a style sheet", 200, `GET ${stylesheet.path}`],
    ["without compression", 200, `GET ${stylesheet.path}`, { headers: { "accept-encoding": "identity" } }],
    ["one that has not changed", 304, `GET ${stylesheet.path}`, { headers: { "if-none-match": stylesheet.etag } }],
    ["no page", 404, "GET /checkout/cs_1"],
    ["nothing", 404, "GET /nothing"],
    ["its head", 404, "HEAD /nothing"]
  ]

  for (const [what, expected, line, init = {}] of cases) {
    it(`of ${what} (${expected})`, async () => {
      const [method, path] = line.split(" ") as [string, string]
      const headers = { authorization: basic(server.secretTest), ...init.headers }
      const response = await fetch(server.url + path, { redirect: "manual", ...init, method, headers })
      await response.arrayBuffer()
      assert.strictEqual(response.status, expected)
      assert.strictEqual(response.headers.get(NOSNIFF), "nosniff")
    })
  }

  it("of a session's page: form, data for the script, and redirects", async () => {
    const form = await visit(session.url)
    const refused = await send(session.url, { token: tokenIn(form.text) })
    const asData = await send(session.url, { token: tokenIn(form.text) }, { accept: "application/json" })
    const paid = await pay(session, filledIn())
    const over = await visit(session.url)
    const answers = [form, refused, asData, paid, over]
    assert.deepStrictEqual(
      answers.map(({ status }) => status),
      [200, 400, 400, 303, 410]
    )
    for (const { headers } of answers) assert.strictEqual(headers.get(NOSNIFF), "nosniff")
  })
})

describe("an answer to bytes on a socket", () => {
  const cases: ReadonlyArray<readonly [string, number, string]> = [
    ["what is not HTTP", 400, "nonsense\r\n\r\n"],
    ["too many headers", 431, `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(20_000)}\r\n\r\n`],
    ["no Host", 400, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"],
    ["another version", 200, "GET /healthz HTTP/1.0\r\n\r\n"],
    [
      "who wants another protocol",
      200,
      "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: h2c\r\n\r\n"
    ],
    ["who expects what there is not", 200, "GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: a\r\nConnection: close\r\n\r\n"]
  ]

  for (const [whom, expected, bytes] of cases) {
    it(`from ${whom} (${expected})`, async () => {
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => socket.write(bytes))
      let text = ""
      for await (const chunk of socket) text += String(chunk)
      assert.strictEqual(Number(text.slice(9, 12)), expected)
      assert.match(text, /^x-content-type-options: nosniff\r$/im)
    })
  }
})
