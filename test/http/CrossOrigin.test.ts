/**
 * Pages of other origins may make the calls that a publishable key may make, and no others (semantics keys.publishable,
 * responses.headers).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Document from "../../src/api/openapi/Document.ts"
import { basic } from "../support/HttpExchange.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const ORIGIN = "https://shop.example"

const preflight = (method: string, path: string, headers: Record<string, string> = { origin: ORIGIN }) =>
  fetch(`http://127.0.0.1:${server.port}${path}`, {
    method: "OPTIONS",
    headers: { ...headers, "access-control-request-method": method, "access-control-request-headers": "authorization" }
  })

const OPEN = [
  ["POST", "/v1/payment_methods"],
  ["GET", "/v1/payment_intents/pi_1?client_secret=a"],
  ["POST", "/v1/payment_intents/pi_1/confirm"],
  ["GET", "/v1/checkout_sessions/cs_1?client_secret=a"],
  ["GET", "/v1/checkout_sessions/cs_1/line_items?client_secret=a"],
  ["POST", "/v1/checkout_sessions/cs_1/confirm"]
] as const

const CLOSED = [
  ["GET", "/v1/payment_methods"],
  ["POST", "/v1/payment_intents"],
  ["POST", "/v1/payment_intents/pi_1"],
  ["POST", "/v1/checkout_sessions/cs_1/expire"],
  ["GET", "/v1/customers"],
  ["GET", "/v1/api_keys"],
  ["POST", "/v1/refunds"],
  ["GET", "/v1/nothing"]
] as const

describe("a preflight", () => {
  it.each(OPEN)("of %s %s is answered, without a key", async (method, path) => {
    const { headers, status } = await preflight(method, path)
    assert.strictEqual(status, 204)
    assert.strictEqual(headers.get("access-control-allow-origin"), "*")
    assert.strictEqual(headers.get("access-control-allow-methods"), method)
    for (const name of ["authorization", "content-type", "idempotency-key", "x-api-version"]) {
      assert.include(headers.get("access-control-allow-headers"), name)
    }
    // Cookies and other credentials of the browser are not allowed.
    assert.isNull(headers.get("access-control-allow-credentials"))
    assert.match(headers.get("x-request-id")!, /^req_/)
    assert.strictEqual(headers.get("cache-control"), "no-store")
    assert.isNotNull(headers.get("x-api-version"))
  })

  it.each(CLOSED)("of %s %s is not", async (method, path) => {
    const { headers, status } = await preflight(method, path)
    assert.strictEqual(status, 401)
    assert.isNull(headers.get("access-control-allow-origin"))
    assert.isNull(headers.get("access-control-allow-methods"))
  })

  it("requests.cors: of every operation is answered if a publishable key may call it, and only then", async () => {
    const document = Document.make("https://pay.example.test")
    const operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { description = "" }]) => ({
        path,
        method: method.toUpperCase(),
        description
      }))
    )
    assert.isAbove(operations.length, 40)
    const opened: Array<string> = []
    for (const { description, method, path } of operations) {
      const { headers, status } = await preflight(method, path.replaceAll(/\{\w+\}/g, "id_1"))
      const isPublishable = description.includes("Also accepts a publishable key")
      assert.strictEqual(status, isPublishable ? 204 : 401, `${method} ${path}`)
      assert.strictEqual(headers.get("access-control-allow-origin"), isPublishable ? "*" : null, `${method} ${path}`)
      if (isPublishable) opened.push(`${method} ${path}`)
    }
    assert.isAtLeast(opened.length, OPEN.length)
  })

  it("needs a browser's headers: any other OPTIONS is a method like others (semantics requests.paths)", async () => {
    assert.strictEqual((await preflight("POST", "/v1/payment_methods", {})).status, 401)
    const reply = await server.request("OPTIONS", "/v1/payment_methods")
    assert.strictEqual(reply.status, 405)
  })
})

describe("an answer", () => {
  const card = { type: "card", card: { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" } }
  const allowedOrigin = async (key: string | null, path: string, body?: unknown, origin = { origin: ORIGIN }) => {
    const reply = await server.request(body === undefined ? "GET" : "POST", path, { key, body, headers: origin })
    return [reply.status, reply.headers.get("access-control-allow-origin")] as const
  }

  it("to a publishable key can be read by any page, errors included", async () => {
    const key = server.keys.publishableTest
    assert.deepStrictEqual(await allowedOrigin(key, "/v1/payment_methods", card), [200, "*"])
    assert.deepStrictEqual(await allowedOrigin(key, "/v1/payment_methods", {}), [400, "*"])
    assert.deepStrictEqual(await allowedOrigin(key, "/v1/customers"), [403, "*"])
    assert.deepStrictEqual(await allowedOrigin(`${key}x`, "/v1/payment_methods", card), [401, "*"])
    // The value of Origin does not matter: it is `null` for a sandboxed frame's page.
    assert.deepStrictEqual(await allowedOrigin(key, "/v1/customers", undefined, { origin: "null" }), [403, "*"])
    assert.deepStrictEqual(await allowedOrigin(server.keys.publishableLive, "/v1/customers"), [403, "*"])
  })

  it("to a secret key, or without a key, can be read by no page", async () => {
    const { publishableTest, secretTest } = server.keys
    assert.deepStrictEqual(await allowedOrigin(secretTest, "/v1/payment_methods", card), [200, null])
    assert.deepStrictEqual(await allowedOrigin(secretTest, "/v1/customers"), [200, null])
    assert.deepStrictEqual(await allowedOrigin(server.keys.secretLive, "/v1/customers"), [200, null])
    assert.deepStrictEqual(await allowedOrigin(`${secretTest}x`, "/v1/customers"), [401, null])
    assert.deepStrictEqual(await allowedOrigin(null, "/v1/payment_methods", card), [401, null])
    // The key is the text before the colon.
    assert.deepStrictEqual(await allowedOrigin(`${secretTest}:${publishableTest}`, "/v1/customers"), [200, null])
  })

  it("to a client that is no page has no such header", async () => {
    const reply = await server.request("POST", "/v1/payment_methods", {
      key: server.keys.publishableTest,
      body: card
    })
    assert.isNull(reply.headers.get("access-control-allow-origin"))
  })

  it("names the headers that a page may read", async () => {
    const reply = await server.request("POST", "/v1/payment_methods", {
      key: server.keys.publishableTest,
      body: card,
      headers: { origin: ORIGIN }
    })
    for (const name of ["x-request-id", "idempotent-replayed", "retry-after"]) {
      assert.include(reply.headers.get("access-control-expose-headers"), name)
    }
  })
})

it("is not opened by an origin that looks like a key", async () => {
  const response = await fetch(`http://127.0.0.1:${server.port}/v1/customers`, {
    headers: { origin: "pk_test_a", authorization: basic(server.keys.secretTest) }
  })
  assert.isNull(response.headers.get("access-control-allow-origin"))
})
