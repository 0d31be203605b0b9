/** The request log over the API (semantics request_log.list). */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { layerFreshLog } from "../support/RequestLog.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, type Reply, start, VERSION } from "../support/MemoryTill.ts"

interface Logged {
  readonly id: string
  readonly status: number
}

let server: MemoryTill
beforeAll(async () => {
  server = await start({ requestLog: layerFreshLog({ batchMillis: 5 }) })
})
afterAll(() => server.close())

const idOf = ({ headers }: Reply): string => headers.get("x-request-id")!
const list = async (key: string, query = ""): Promise<Reply> =>
  await server.request("GET", `/v1/request_logs?${query}`, { key })
const idsIn = async (key: string, query = ""): Promise<ReadonlyArray<string>> => {
  const reply = await list(key, query)
  assertOk(reply)
  return reply.body.data.map(({ id }: Logged) => id)
}
/** Waits for a request's entry. */
const logged = async (key: string, id: string): Promise<Reply> =>
  await vi.waitFor(
    async () => {
      const reply = await server.request("GET", `/v1/request_logs/${id}`, { key })
      assertOk(reply)
      return reply
    },
    { timeout: 120_000, interval: 10 }
  )

/** A customer, its replay, a refusal and a read, in this order. */
const someRequests = async ({ secretTest: key }: Keys) => {
  const customer = { email: "jo@example.com", metadata: { order: "7" } }
  const post = (path: string, body: object, idempotencyKey: string) =>
    server.request("POST", path, { key, body, idempotencyKey })
  const made = await post("/v1/customers", customer, "once")
  const again = await post("/v1/customers", customer, "once")
  const refused = await post("/v1/payment_intents", { amount: 0, currency: "usd", card: "4242" }, "refused")
  const read = await server.request("GET", "/v1/customers?limit=2", { key })
  const ids = [made, again, refused, read].map(idOf)
  await logged(key, ids.at(-1)!)
  return { made, again, refused, read, ids }
}

describe("request_log.list: the log of requests over the API", () => {
  it("request_log.object: shows a request with its answer", async () => {
    const keys = await server.merchant()
    const { again, made, refused } = await someRequests(keys)
    const { body } = await logged(keys.secretTest, idOf(refused))
    assert.match(body.api_key, /^key_/)
    assert.isAbove(body.duration_ms, 0)
    assert.closeTo(body.created, Date.now() / 1000, 20)
    const { api_key: _, created: __, duration_ms: ___, ...rest } = body
    assert.deepStrictEqual(rest, {
      id: idOf(refused),
      object: "request_log",
      livemode: false,
      method: "POST",
      path: "/v1/payment_intents",
      status: 400,
      api_version: VERSION,
      idempotency_key: "refused",
      original_request: null,
      error: {
        type: "invalid_request_error",
        code: refused.body.error.code,
        param: refused.body.error.param,
        message: refused.body.error.message
      },
      objects: [],
      request_body: { amount: 0, currency: "usd", card: "****" },
      query: null
    })
    const replay = (await logged(keys.secretTest, idOf(again))).body
    assert.strictEqual(replay.original_request, idOf(made))
    assert.deepStrictEqual(replay.objects, [made.body.id])
    assert.isNull(replay.error)
  })

  it("can be filtered by all of its fields, and by time", async () => {
    const keys = await server.merchant()
    const { secretTest: key } = keys
    const { ids, made } = await someRequests(keys)
    const [first, replay, refused, read] = ids as [string, string, string, string]
    const { body } = await logged(key, read)
    assert.deepStrictEqual(body.query, { limit: "2" })
    assert.isNull(body.request_body)
    const found: Readonly<Record<string, ReadonlyArray<string>>> = {
      "": [read, refused, replay, first],
      "status=400": [refused],
      "status=4xx": [refused],
      "status=2XX&method=POST": [replay, first],
      "status=5xx": [],
      "path=/v1/cust": [read, replay, first],
      [`api_key=${body.api_key}`]: [read, refused, replay, first],
      "api_key=key_other": [],
      [`api_version=${VERSION}`]: [read, refused, replay, first],
      "api_version=2020-01-01": [],
      "idempotency_key=once": [replay, first],
      [`object=${made.body.id}`]: [replay, first],
      [`error_code=${(await logged(key, refused)).body.error.code}`]: [refused],
      [`created[lte]=${body.created}`]: [read, refused, replay, first],
      [`created[gt]=${body.created}`]: [],
      [`created[lt]=${body.created - 60}`]: []
    }
    for (const [query, expected] of Object.entries(found))
      assert.deepStrictEqual(await idsIn(key, query), expected, query)
  })

  it("is read page by page, in both directions, and contains none of the requests that read it", async () => {
    const keys = await server.merchant()
    const { secretTest: key } = keys
    const { ids } = await someRequests(keys)
    const newestFirst = ids.toReversed()
    const page = (await list(key, "limit=3")).body
    assert.deepStrictEqual([page.has_more, page.next_cursor, page.url], [true, newestFirst[2], "/v1/request_logs"])
    assert.deepStrictEqual(await idsIn(key, `limit=3&starting_after=${newestFirst[2]}`), newestFirst.slice(3))
    assert.deepStrictEqual(await idsIn(key, `limit=2&ending_before=${newestFirst[3]}`), newestFirst.slice(1, 3))
    assert.deepStrictEqual(await idsIn(key, "limit=100"), newestFirst)
    for (const cursor of ["starting_after", "ending_before"]) {
      assertError(await list(key, `${cursor}=req_none`), 404, "resource_missing", cursor)
    }
  })

  it("shows no other merchant's requests, none to publishable keys, and no missing ones", async () => {
    const keys = await server.merchant()
    const { ids } = await someRequests(keys)
    const [id] = ids
    const get = (key: string, path: string) => server.request("GET", `/v1/request_logs${path}`, { key })
    for (const key of [keys.secretLive, server.keys.secretTest]) {
      assertError(await get(key, `/${id}`), 404, "resource_missing", "id")
      assertError(await get(key, `?starting_after=${id}`), 404, "resource_missing", "starting_after")
      assert.notInclude(await idsIn(key, "limit=100"), id!)
    }
    for (const path of ["", `/${id}`]) assertError(await get(keys.publishableTest, path), 403, "secret_key_required")
    for (const none of ["req_none", "%00"]) {
      assertError(await get(keys.secretTest, `/${none}`), 404, "resource_missing", "id")
    }
  })

  it("reports that it is turned off", async () => {
    const off = await start()
    for (const path of ["", "/req_1"]) {
      assertError(await off.request("GET", `/v1/request_logs${path}`), 400, "request_log_off")
    }
    await off.close()
  })
})
