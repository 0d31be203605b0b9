/** While the storage hangs, reads get a 503 after the limit. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit } from "effect"
import { connect } from "node:net"
import type * as Faults from "../engine/storage/Faults.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { basic } from "../support/HttpExchange.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

const LIMIT_MILLIS = 200

/** While a fault point has a gate, everything that reaches the point waits for the gate. */
const gates = new Map<Faults.FaultPoint, Deferred.Deferred<void>>()
const faults: Faults.Faults = (point) =>
  Effect.suspend(() => {
    const gate = gates.get(point)
    return gate === undefined ? Effect.void : Deferred.await(gate)
  })

const close = (point: Faults.FaultPoint) => void gates.set(point, Deferred.makeUnsafe<void>())
const open = (point: Faults.FaultPoint) => {
  const gate = gates.get(point)!
  gates.delete(point)
  Deferred.doneUnsafe(gate, Exit.void)
}

let server: MemoryTill
beforeAll(async () => void (server = await start({ faults, http: { requestMillisMax: LIMIT_MILLIS } })))
afterAll(() => server.close())

describe("the time limit of requests", () => {
  it("a read that hangs is a 503, and other requests are answered", async () => {
    const { body } = await server.request("POST", "/v1/products", { body: { name: "Tea" } })
    close("read")
    const begun = performance.now()
    const list = server.request("GET", "/v1/customers?email=a@b.c")
    assertOk(await server.request("GET", `/v1/products/${body.id}`))
    const refused = await list
    assertError(refused, 503, "service_unavailable")
    assert.strictEqual(refused.headers.get("retry-after"), "1")
    assert.isAtLeast(performance.now() - begun, LIMIT_MILLIS)
    open("read")
    assertOk(await server.request("GET", "/v1/customers?email=a@b.c"))
  })

  it("readiness is denied before a caller's own time-out", async () => {
    close("read")
    assert.strictEqual((await server.request("GET", "/readyz", { key: null })).status, 503)
    open("read")
    assert.strictEqual((await server.request("GET", "/readyz", { key: null })).status, 200)
  })

  it("the time of a body's arrival does not count", async () => {
    const body = '{"name":"slow"}'
    const socket = connect(server.port, "127.0.0.1")
    let text = ""
    const answered = new Promise((resolve) =>
      socket.on("data", (chunk) => (text += String(chunk))).on("close", resolve)
    )
    socket.write(
      `POST /v1/customers HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(server.keys.secretTest)}\r\n` +
        `Content-Type: application/json\r\nIdempotency-Key: slow\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`
    )
    // Another request times out, so the limit has passed: a list that was not read before.
    await new Promise((resolve) => setImmediate(resolve))
    close("read")
    assertError(await server.request("GET", "/v1/customers?email=new@b.c"), 503, "service_unavailable")
    open("read")
    socket.write(body)
    await answered
    assert.match(text, /^HTTP\/1\.1 200 /)
  })
})
