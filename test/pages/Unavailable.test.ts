/** During a storage failure payers get an error page, and sending the form again does not charge them twice. */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { StorageFailure } from "../../src/engine/log/Journal.ts"
import type { FaultPoint } from "../engine/storage/Faults.ts"
import { until } from "../support/TillProcess.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { filledIn, openSession, pay, send, tokenIn, visit } from "../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
let failing: FaultPoint | null = null
beforeAll(async () => {
  server = await start({
    merchantName: "Lumen Coffee",
    faults: (point) =>
      Effect.suspend(() => (point === failing ? Effect.fail(new StorageFailure({ cause: "lost" })) : Effect.void))
  })
})
afterAll(() => server.close())
beforeEach(() => {
  failing = null
})

describe("a form that is sent while the storage fails", () => {
  it.each(["append.before", "append.after"] as const)("(%s) can be sent again, and pays once", async (point) => {
    const session = await openSession(server)
    const form = { token: tokenIn((await visit(session.url)).text), ...filledIn() }
    failing = point
    const lost = await send(session.url, form)
    assert.strictEqual(lost.status, 503)
    assert.include(lost.text, "you will not be charged twice")
    // The same form again: its token prevents a second payment.
    assert.strictEqual(tokenIn(lost.text), form.token)
    assert.notInclude(lost.text, 'value="4242')
    failing = null
    let paid = lost
    await until("the storage is back", async () => (paid = await send(session.url, form)).status !== 503)
    assert.strictEqual(paid.status, 303)
    const { charges } = await server.get(`/v1/payment_intents/${session.payment_intent}`)
    assert.strictEqual(charges.data.length, 1)
  })
})

describe("a page that is opened while the storage fails", () => {
  it("reports the outage, and works again afterwards", async () => {
    failing = "read"
    const unknown = `${server.url}/checkout/cs_000000000000000000000000`
    const { headers, status, text } = await visit(unknown)
    assert.strictEqual(status, 503)
    assert.include(text, "Please try again")
    assert.strictEqual(headers.get("cache-control"), "no-store")
    failing = null
    assert.strictEqual((await visit(unknown)).status, 404)
    assert.strictEqual((await pay(await openSession(server))).status, 303)
  })
})

describe("a page that is opened while the storage hangs", () => {
  it("reports the outage after a time-out", async () => {
    let hangs = false
    const hanging = await start({
      merchantName: "Lumen Coffee",
      faults: (point) => (point === "read" && hangs ? Effect.never : Effect.void),
      http: { requestMillisMax: 300 }
    })
    try {
      const unknown = `${hanging.url}/checkout/cs_000000000000000000000000`
      assert.strictEqual((await visit(unknown)).status, 404)
      hangs = true
      const { status, text } = await visit(unknown)
      assert.strictEqual(status, 503)
      assert.include(text, "Please try again")
    } finally {
      hangs = false
      await hanging.close()
    }
  })
})

describe("a session whose time has come", () => {
  it("is expired on its page by its account's clock", async () => {
    const session = await openSession(server)
    await server.post("/v1/test_helpers/clock/advance", { seconds: 86_400 + 1 })
    const { status, text } = await visit(session.url)
    assert.strictEqual(status, 410)
    assert.include(text, "This checkout has expired")
  })
})
