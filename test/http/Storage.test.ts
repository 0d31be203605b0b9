/**
 * While the storage fails, a client gets a 503, and no request has a partial effect (semantics errors.internal,
 * errors.table).
 */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { StorageFailure } from "../../src/engine/log/Journal.ts"
import type * as Faults from "../engine/storage/Faults.ts"
import { assertError, assertHeaders, assertOk } from "./Assertions.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

const failing = new Set<Faults.FaultPoint>()
const faults: Faults.Faults = (point) =>
  Effect.suspend(() => (failing.has(point) ? Effect.fail(new StorageFailure({ cause: "down" })) : Effect.void))

let server: MemoryTill
beforeAll(async () => void (server = await start({ faults })))
afterAll(() => server.close())
afterEach(() => failing.clear())

const recovered = async () => {
  while ((await server.request("GET", "/v1/customers")).status !== 200) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

describe("storage", () => {
  it("a write that fails is a 503 that may be repeated, and happens once", async () => {
    const create = () => server.request("POST", "/v1/customers", { idempotencyKey: "storage", body: { name: "A" } })
    failing.add("append.before")
    const refused = await create()
    assertError(refused, 503, "service_unavailable")
    assert.strictEqual(refused.body.error.type, "api_error")
    assert.strictEqual(refused.headers.get("retry-after"), "1")
    failing.clear()
    await recovered()
    const created = await create()
    assertOk(created)
    assert.isNull(created.headers.get("idempotent-replayed"))
    assert.strictEqual((await server.request("GET", "/v1/customers")).body.data.length, 1)
  })

  it("a write whose outcome is unknown happened once, for any answer", async () => {
    const before = (await server.request("GET", "/v1/customers?limit=100")).body.data.length
    const create = () =>
      server.request("POST", "/v1/customers", { idempotencyKey: "unknown outcome", body: { name: "B" } })
    failing.add("append.after")
    assertError(await create(), 503, "service_unavailable")
    failing.clear()
    await recovered()
    assertOk(await create())
    assert.strictEqual((await server.request("GET", "/v1/customers?limit=100")).body.data.length, before + 1)
  })

  it("operation.health: readiness fails, liveness does not", async () => {
    failing.add("read")
    const ready = await server.request("GET", "/readyz", { key: null })
    assert.strictEqual(ready.status, 503)
    assert.deepStrictEqual(ready.body, { status: "unavailable" })
    assertHeaders(ready)
    assert.strictEqual(ready.headers.get("retry-after"), "1")
    assert.strictEqual((await server.request("GET", "/healthz", { key: null })).status, 200)
    failing.clear()
    assert.strictEqual((await server.request("GET", "/readyz", { key: null })).status, 200)
  })
})
