/** Requests that wait for events and for changes of a webhook endpoint (semantics requests.wait). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { ACCOUNT_WAITING_MAX } from "../../src/http/Waiting.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { basic } from "../support/HttpExchange.ts"
import * as MemoryFleet from "../support/MemoryFleet.ts"
import { type MemoryTill, type Reply, start } from "../support/MemoryTill.ts"
import { assertError, assertOk } from "./Assertions.ts"

let server: MemoryTill
beforeAll(async () => {
  server = await start({ waits: true })
})
afterAll(() => server.close())

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** Fails for an answer that comes within the time. */
const stillWaiting = async (answer: Promise<unknown>, millis = 300) => {
  const first = await Promise.race([answer, pause(millis).then(() => "waiting")])
  assert.strictEqual(first, "waiting")
}

const okBody = (reply: Reply) => {
  assertOk(reply)
  return reply.body
}

const typesOf = (body: { readonly data: ReadonlyArray<{ readonly type: string }> }) => body.data.map(({ type }) => type)

/** A merchant of its own, with its newest event. */
const merchant = async () => {
  const { secretTest: key } = await server.merchant()
  const get = (path: string) => server.request("GET", path, { key })
  const post = (path: string, body: unknown) => server.request("POST", path, { key, body })
  const remove = (path: string) => server.request("DELETE", path, { key })
  await post("/v1/customers", {})
  const [{ id: newest }] = (await get("/v1/events")).body.data
  return { get, post, remove, newest: String(newest) }
}

describe("a request for events that waits", () => {
  it("is answered at once if there are events, and otherwise with the first one of its type", async () => {
    const { get, newest, post } = await merchant()
    assert.deepStrictEqual(typesOf(okBody(await get("/v1/events?wait=25"))), ["customer.created"])
    const any = get(`/v1/events?wait=25&ending_before=${newest}`)
    const ofType = get(`/v1/events?wait=25&type=product.*&ending_before=${newest}`)
    await stillWaiting(any)
    await post("/v1/customers", {})
    assert.deepStrictEqual(typesOf(okBody(await any)), ["customer.created"])
    await stillWaiting(ofType)
    await post("/v1/products", { name: "x" })
    assert.deepStrictEqual(typesOf(okBody(await ofType)), ["product.created"])
  })

  it("is answered with an empty page when the time is over, and hears nothing of other merchants", async () => {
    const { get, newest } = await merchant()
    const start = performance.now()
    const reply = get(`/v1/events?wait=1&ending_before=${newest}`)
    await (await merchant()).post("/v1/customers", {})
    assert.deepStrictEqual(okBody(await reply).data, [])
    assert.isAtLeast(performance.now() - start, 1000)
  })

  it("gets the error of its cursor when the environment is emptied", async () => {
    const { get, newest, remove } = await merchant()
    const reply = get(`/v1/events?wait=25&ending_before=${newest}`)
    await stillWaiting(reply)
    await remove("/v1/test_helpers/data")
    assertError(await reply, 404, "resource_missing", "ending_before")
  })

  it("is refused beyond the limit of its account, and not because of another one", async () => {
    const { get, newest, post } = await merchant()
    const other = await merchant()
    const path = `/v1/events?wait=25&ending_before=${newest}`
    const waits = Array.from({ length: ACCOUNT_WAITING_MAX + 1 }, () => get(path))
    // All others wait.
    assertError(await Promise.race(waits), 503, "service_unavailable", null)
    const ofOther = other.get(`/v1/events?wait=25&ending_before=${other.newest}`)
    await stillWaiting(ofOther)
    await post("/v1/customers", {})
    const answered = (await Promise.all(waits)).filter(({ status }) => status === 200)
    assert.lengthOf(answered, ACCOUNT_WAITING_MAX)
    for (const reply of answered) assert.lengthOf(okBody(reply).data, 1)
    const again = get(path.replace(newest, (await get("/v1/events")).body.data[0].id))
    await stillWaiting(again)
    await Promise.all([post("/v1/customers", {}), other.post("/v1/customers", {})])
    assertOk(await again)
    assertOk(await ofOther)
  })

  it("is answered at once when the service stops", async () => {
    const stopping = await start({ waits: true })
    await stopping.request("POST", "/v1/customers", { body: {} })
    const [{ id }] = (await stopping.request("GET", "/v1/events")).body.data
    const reply = stopping.request("GET", `/v1/events?wait=25&ending_before=${id}`)
    await stillWaiting(reply)
    const begun = performance.now()
    await Promise.all([stopping.close(), reply])
    assert.deepStrictEqual(okBody(await reply).data, [])
    assert.isBelow(performance.now() - begun, 5000)
  })
})

describe("a request for a webhook endpoint that waits", () => {
  it("is answered when the endpoint is changed or deleted, and not before", async () => {
    const { get, post, remove } = await merchant()
    const parameters = { url: "https://shop.example/hooks", enabled_events: ["*"] }
    const { id } = (await post("/v1/webhook_endpoints", parameters)).body
    const other = (await post("/v1/webhook_endpoints", parameters)).body
    const path = `/v1/webhook_endpoints/${id}`
    const changed = get(`${path}?wait=25`)
    await post(`/v1/webhook_endpoints/${other.id}`, { description: "other" })
    await post("/v1/customers", {})
    await stillWaiting(changed)
    await post(path, { description: "mine" })
    assert.strictEqual(okBody(await changed).description, "mine")
    const deleted = get(`${path}?wait=25`)
    await stillWaiting(deleted)
    await remove(path)
    assertError(await deleted, 404, "resource_missing", "id")
    const wiped = get(`/v1/webhook_endpoints/${other.id}?wait=25`)
    await stillWaiting(wiped)
    await remove("/v1/test_helpers/data")
    assertError(await wiped, 404, "resource_missing", "id")
    assertError(await get(`${path}?wait=25`), 404, "resource_missing", "id")
  })
})

describe("a request that waits at one of several runners", () => {
  let runners: MemoryFleet.MemoryFleet
  let keys: Keys
  beforeAll(async () => {
    runners = await MemoryFleet.start(3)
    keys = await runners.merchant()
  })
  afterAll(() => runners.close())

  const account = () => `${keys.merchantId}:test`
  const at = (index: number, path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${runners.all[index]!.port}${path}`, {
      ...init,
      headers: {
        authorization: basic(keys.secretTest),
        "idempotency-key": crypto.randomUUID(),
        "content-type": "application/json"
      }
    })
  const create = (index: number) => at(index, "/v1/customers", { method: "POST", body: "{}" })
  const newest = async () => {
    const page = await at(0, "/v1/events")
    return ((await page.json()) as { readonly data: ReadonlyArray<{ readonly id: string }> }).data[0]!.id
  }

  it("is answered by the account's process, also after the account has moved", async () => {
    await create(0)
    for (const index of [0, 1, 2]) {
      await runners.move(account(), 0)
      const reply = at(index, `/v1/events?wait=25&ending_before=${await newest()}`)
      await stillWaiting(reply)
      await runners.move(account(), 1)
      await stillWaiting(reply, 2500)
      await create(2)
      const { data } = (await (await reply).json()) as { readonly data: ReadonlyArray<object> }
      assert.lengthOf(data, 1)
    }
  })

  it("does not delay the end of the runner that has forwarded it", async () => {
    await runners.move(account(), 0)
    const reply = at(2, `/v1/events?wait=25&ending_before=${await newest()}`)
    await stillWaiting(reply)
    const begun = performance.now()
    await runners.all[2]!.stop()
    assert.isBelow(performance.now() - begun, 5000)
    assert.include([200, 503], (await reply).status)
  })
})
