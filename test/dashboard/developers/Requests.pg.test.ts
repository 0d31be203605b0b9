/** The request log in Postgres, and its pages (semantics request_log.kept, dashboard.requests). */
import { PgClient } from "@effect/sql-pg"
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { Effect, identity, Layer } from "effect"
import { Placement } from "../../../src/engine/process/Placement.ts"
import { Pruning } from "../../../src/engine/process/Pruning.ts"
import { idOf, nextSequence } from "../../../src/engine/log/Identifiers.ts"
import { type LoggedRequest, RequestLog } from "../../../src/engine/RequestLog.ts"
import * as Migrations from "../../../src/postgres/Migrations.ts"
import * as RequestLogPostgres from "../../../src/postgres/RequestLogPostgres.ts"
import { basic } from "../../support/HttpExchange.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { layerFreshDatabase } from "../../support/Postgres.ts"
import { layerFreshLog } from "../../support/RequestLog.ts"
import { type Page, signedIn, type Tab } from "../People.ts"

describe("the pages of requests", () => {
  let server: MemoryTillWithPages
  let tab: Tab
  beforeAll(async () => {
    server = await start({
      merchantName: "Lumen",
      liveProcessor: "simulator",
      requestLog: layerFreshLog({ batchMillis: 20 })
    })
    tab = await signedIn(server, "support")
  })
  afterAll(() => server.close())

  const send = async (path: string, body: object, key: string) => {
    const response = await fetch(server.url + path, {
      method: "POST",
      headers: { authorization: basic(server.secretTest), "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify(body)
    })
    return { id: response.headers.get("x-request-id")!, status: response.status, body: await response.json() }
  }
  /** Waits for a page to contain a text. */
  const pageWith = async (path: string, text: string): Promise<Page> =>
    await vi.waitFor(
      async () => {
        const page = await tab.get(`/dashboard/test${path}`)
        assert.include(page.text, text)
        return page
      },
      { timeout: 120_000, interval: 30 }
    )

  it("show a request with its body, and mark its replay", async () => {
    const customer = { email: "jo@example.com", description: "4242 4242 4242 4242" }
    const [first, again] = [
      await send("/v1/customers", customer, "once"),
      await send("/v1/customers", customer, "once")
    ]
    const list = await pageWith("/requests", again.id)
    assert.include(list.text, first.id)
    assert.strictEqual(list.text.match(/badge plain">replayed/g)?.length, 1)
    const one = await pageWith(`/requests/${again.id}`, "Replay of")
    for (const text of [`requests/${first.id}`, `customers/${first.body.id}`, "jo@example.com", "once", "key_"]) {
      assert.include(one.text, text)
    }
    assert.notInclude(one.text, "4242 4242")
    assert.notInclude(one.text, server.secretTest)
  })

  it("show a request's changes, events, and response without secrets", async () => {
    const paying = { amount: 4321, currency: "usd", payment_method: "pm_card_visa", confirm: true }
    const paid = await send("/v1/payment_intents", paying, "paid")
    const refunded = await send("/v1/refunds", { payment_intent: paid.body.id, amount: 121 }, "refunded")
    // Later records of the same objects belong to other requests.
    for (let i = 0; i < 60; i++)
      await server.post(`/v1/payment_intents/${paid.body.id}`, { metadata: { i: String(i) } })
    const first = (await pageWith(`/requests/${paid.id}`, "Changes")).text
    for (const text of [
      "payment_intent.created",
      "charge.succeeded",
      "payment_intent.succeeded",
      paid.body.latest_charge
    ])
      assert.include(first, text)
    for (const text of ["payment_intent.updated", "refund.created", "_secret_"]) assert.notInclude(first, text)
    assert.match(first, /Response[^]*amount_received[^]*4321/)
    const second = (await pageWith(`/requests/${refunded.id}`, "Changes")).text
    for (const text of ["refund.created", "charge.refunded", "1.21"]) assert.include(second, text)
    assert.notInclude(second, "payment_intent.succeeded")
    const endpoint = { url: "https://shop.example/w", enabled_events: ["charge.refunded"] }
    const sealed = await send("/v1/webhook_endpoints", endpoint, "sealed")
    const third = (await pageWith(`/requests/${sealed.id}`, "it contains a secret")).text
    assert.notInclude(third, sealed.body.secret)
  })

  it("say that a request changed nothing", async () => {
    const refused = await send("/v1/payment_intents", { amount: -1, currency: "usd" }, "refused")
    const page = (await pageWith(`/requests/${refused.id}`, "Nothing was changed.")).text
    assert.notInclude(page, "Changes")
    const declined = { amount: 999, currency: "usd", payment_method: "pm_card_declined", confirm: true }
    const { id } = await send("/v1/payment_intents", declined, "declined first")
    assert.include((await pageWith(`/requests/${id}`, "Changes")).text, "payment_intent.payment_failed")
  })

  it("are filtered by their address, and grouped by error", async () => {
    const wrong = await send("/v1/customers", { email: 5 }, "wrong")
    const declined = { amount: 4321, currency: "usd", confirm: true, payment_method: "pm_card_chargeDeclined" }
    const refused = await send("/v1/payment_intents", declined, "declined")
    assert.deepStrictEqual([wrong.status, refused.status], [400, 402])
    await pageWith("/requests", refused.id)
    const has = async (query: string, { id }: { readonly id: string }, isThere: boolean) =>
      assert.strictEqual((await tab.get(`/dashboard/test/requests?${query}`)).text.includes(id), isThere, query)
    const payment = refused.body.error.payment_intent.id
    for (const query of [
      "status=402",
      "status=4xx",
      "path=/v1/payment",
      "code=card_declined",
      "idempotency_key=declined"
    ]) {
      await has(query, refused, true)
    }
    await has(`object=${payment}`, refused, true)
    await has(`object=${payment}`, wrong, false)
    for (const query of ["status=400", "status=5xx", "path=/v1/cus", "method=GET", "key=key_x", "version=2020-01-01"]) {
      await has(query, refused, false)
    }
    const groups = await tab.get("/dashboard/test/requests?view=errors")
    assert.include(groups.text, "card_declined")
    assert.include(groups.text, `requests/${wrong.id}`)
    const { body: product } = await send("/v1/products", { name: "Tea" }, "tea")
    const line = { price_data: { currency: "usd", unit_amount: 500, product: product.id }, quantity: 1 }
    const order = { mode: "payment", line_items: [line], success_url: "https://shop.example/ok" }
    const { body: session } = await send("/v1/checkout_sessions", order, "session")
    await pageWith(`/requests?object=${session.id}`, "/v1/checkout_sessions")
    const [, id] = /requests\/(req_\w+)"/.exec((await tab.get(`/dashboard/test/requests?object=${session.id}`)).text)!
    const ofSession = await tab.get(`/dashboard/test/requests/${id}`)
    assert.include(ofSession.text, `checkout-sessions/${session.id}"`)
    const key = /key=(key_\w+)"/.exec(ofSession.text)![1]!
    await has(`key=${key}&version=2026-03-09&status=402`, refused, true)
    const touching = await tab.get(`/dashboard/test/payments/${payment}`)
    assert.include(touching.text, `requests/${refused.id}`)
    assert.include((await tab.get(`/dashboard/test/requests/${refused.id}`)).text, `payments/${payment}`)
  })

  it("show nothing of another environment, and a 404 for unknown ids", async () => {
    const { id } = await send("/v1/products", { name: "T" }, "product")
    await pageWith(`/requests/${id}`, "/v1/products")
    assert.strictEqual((await tab.get(`/dashboard/live/requests/${id}`)).status, 404)
    assert.notInclude((await tab.get("/dashboard/live/requests")).text, id)
    for (const path of ["req_nothing", "%00", "%FF"]) {
      assert.strictEqual((await tab.get(`/dashboard/test/requests/${path}`)).status, 404, path)
    }
    assert.strictEqual((await tab.get("/dashboard/test/requests?path=%00&object=%00'&status=4xx")).status, 200)
    for (const [status, view] of [
      ["9xx", ""],
      ["4", "errors"]
    ] as const) {
      const wrong = await tab.get(`/dashboard/test/requests?status=${status}&view=${view}`)
      assert.strictEqual(wrong.status, 400)
      assert.include(wrong.text, "Enter a status such as 402, or 4xx.")
      assert.notInclude(wrong.text, "<td")
      const file = await tab.get(`/dashboard/test/requests.csv?status=${status}`)
      assert.include(file.url, `/dashboard/test/requests?status=${status}`)
    }
  })

  it("go on from page to page", async () => {
    for (let i = 0; i < 30; i++) await server.get(`/v1/customers?limit=${i + 1}`)
    let last = ""
    /** All pages from one on, following links in one direction. */
    const walk = async (rel = "next", from = "/dashboard/test/requests?method=GET") => {
      const pages: Array<ReadonlyArray<string>> = []
      for (let url: string | undefined = from; url !== undefined;) {
        const page: Page = await tab.get(url)
        pages.push([...page.text.matchAll(/requests\/(req_\w+)"/g)].map(([, id]) => id!))
        last = page.url
        const link = new RegExp(`rel="${rel}" href="([^"]+)"`).exec(page.text)?.[1]?.replaceAll("&amp;", "&")
        url = link === undefined ? undefined : new URL(link, page.url).href
      }
      return (rel === "next" ? pages : pages.toReversed()).flat()
    }
    // Log rows are written after the responses, in batches.
    let all = await walk()
    for (let tries = 0; all.length < 30 && tries < 100; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      all = await walk()
    }
    assert.strictEqual(new Set(all).size, 30)
    assert.deepStrictEqual(all, all.toSorted().toReversed())
    assert.deepStrictEqual(await walk("prev", last), all)
  })

  it("say that the log is off", async () => {
    const off = await start()
    const page = await (await signedIn(off)).get("/dashboard/test/requests")
    assert.include(page.text, "TILL_REQUEST_LOG_DAYS")
    await off.close()
  })
})

describe("the log of requests", () => {
  const DAY_MILLIS = 86_400_000
  const requestAt = (account: string, millis: number, sequence = 0): LoggedRequest => ({
    id: idOf("req", nextSequence(0, millis) + sequence),
    account,
    at: millis,
    method: "GET",
    path: "/v1/customers",
    status: 200,
    millis: 1.5,
    apiKey: "key_1",
    apiVersion: "2026-03-09",
    idempotencyKey: null,
    originalRequest: null,
    error: null,
    objects: [],
    sent: null
  })
  const count = PgClient.PgClient.use(
    (sql) => sql<{ account: string; count: number }>`SELECT account, count(*)::int AS count FROM request_logs
      GROUP BY account ORDER BY account`
  )

  it.live("keeps the newest requests within the limits of days, count and bytes", () =>
    Effect.gen(function* () {
      const log = yield* RequestLog
      const sql = yield* PgClient.PgClient
      const now = Date.now()
      for (let day = 0; day < 20; day++) log.write("a", () => requestAt("a", now - day * DAY_MILLIS + 1000))
      for (let i = 0; i < 20; i++) log.write("b", () => requestAt("b", now, i))
      yield* Effect.eventually(
        Effect.filterOrFail(
          count,
          (rows) => rows.length === 2,
          () => "not yet"
        )
      )
      for (let i = 0; i < 20; i++) {
        log.write("c", () => ({ ...requestAt("c", now, i), path: "/", sent: JSON.stringify("\u00e9".repeat(1000)) }))
      }
      yield* Effect.eventually(
        Effect.filterOrFail(
          count,
          (rows) => rows.length === 3,
          () => "not yet"
        )
      )
      // 300 for a row, 1 for the path, and 2002 in UTF-8 for the body.
      const bounds = { days: 15, keptMax: 17, bytesMax: 5 * 2303 }
      for (const account of ["a", "b", "c"]) yield* RequestLogPostgres.trim(sql, account, bounds, identity)
      const kept = yield* count
      assert.deepStrictEqual(kept, [
        { account: "a", count: 16 },
        { account: "b", count: 17 },
        { account: "c", count: 5 }
      ])
      const { hasMore, requests } = yield* log.list("b", { filter: {}, limit: 17 })
      assert.isFalse(hasMore)
      assert.deepStrictEqual(requests[0], requestAtWithId(requests[0]!, requestAt("b", now, 19)))
    }).pipe(Effect.provide(layerFreshLog({ batchMillis: 10 }).pipe(Layer.provideMerge(Placement.layerSole))))
  )
  /** The end of an id is random. */
  const requestAtWithId = ({ id }: LoggedRequest, request: LoggedRequest): LoggedRequest => {
    assert.strictEqual(id.slice(0, 13), request.id.slice(0, 13))
    return { ...request, id }
  }

  it.live("is trimmed while it is written", () =>
    Effect.gen(function* () {
      const log = yield* RequestLog
      let newest = ""
      for (let round = 0; round < 3; round++) {
        for (let i = 0; i < 30; i++) log.write("a", () => requestAt("a", Date.now(), i))
        const isTrimmed = Effect.filterOrFail(
          Effect.all([count, log.list("a", { filter: {}, limit: 1 })]),
          ([[kept], { requests }]) => kept?.count === 7 && requests[0]!.id > newest,
          () => "not yet"
        )
        const [, { requests }] = yield* Effect.eventually(isTrimmed)
        newest = requests[0]!.id
      }
      assert.strictEqual(log.leftOut(), 0)
    }).pipe(
      Effect.provide(
        layerFreshLog({ batchMillis: 10, keptMax: 7, trimMillis: 30 }).pipe(Layer.provideMerge(Placement.layerSole))
      )
    )
  )

  it.live("drops requests without room, and writes waiting ones when it ends", () =>
    Effect.gen(function* () {
      const leftOut = yield* Effect.scoped(
        Effect.gen(function* () {
          const placed = RequestLogPostgres.layer(15, { batchMillis: 60_000, batchMax: 3 })
          const log = yield* RequestLog.pipe(Effect.provide(yield* Layer.build(placed)))
          for (let i = 0; i < 5; i++) log.write("a", () => requestAt("a", 1000, i))
          return log.leftOut()
        })
      )
      assert.strictEqual(leftOut, 2)
      assert.deepStrictEqual(yield* count, [{ account: "a", count: 3 }])
    }).pipe(
      Effect.provide(
        Layer.mergeAll(Migrations.layer, Placement.layerSole, Pruning.layer).pipe(
          Layer.provideMerge(layerFreshDatabase),
          Layer.orDie
        )
      )
    )
  )

  it.live("is deleted after it was turned off", () =>
    Effect.gen(function* () {
      const written = Effect.filterOrFail(
        count,
        (rows) => rows.length === 2,
        () => "not yet"
      )
      const log = yield* RequestLog
      for (const account of ["a", "b"]) {
        for (let i = 0; i < 20; i++) log.write(account, () => requestAt(account, Date.now(), i))
      }
      yield* Effect.eventually(written)
      yield* Layer.build(Layer.provide(RequestLogPostgres.layerOff(20), Pruning.layer))
      const left = yield* Effect.eventually(
        Effect.filterOrFail(
          count,
          (rows) => rows.length === 0,
          () => "not yet"
        )
      )
      assert.deepStrictEqual(left, [])
    }).pipe(Effect.provide(layerFreshLog({ batchMillis: 10 }).pipe(Layer.provideMerge(Placement.layerSole))))
  )
})
