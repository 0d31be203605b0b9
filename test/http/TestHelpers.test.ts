/**
 * Semantics test_helpers.clock, test_helpers.data, time.clock: the clock of a test environment, and the end of its
 * data, through a real socket.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { CLOCK_AHEAD_SECONDS_MAX, DeletedTestData, TestClock } from "../../src/domain/TestHelpers.ts"
import { assertError, assertOk } from "./Assertions.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const DAY = 86_400
const CLOCK = "/v1/test_helpers/clock/advance"
const DATA = "/v1/test_helpers/data"

const post = async (keys: Keys, path: string, body: object) => {
  const reply = await server.request("POST", path, { key: keys.secretTest, body })
  assertOk(reply)
  return reply.body
}
const get = (keys: Keys, path: string) => server.request("GET", path, { key: keys.secretTest })
const advance = (keys: Keys, seconds: number) => post(keys, CLOCK, { seconds })
const seconds = () => Math.floor(Date.now() / 1000)

const pay = (keys: Keys, parameters: object) =>
  post(keys, "/v1/payment_intents", { amount: 2000, currency: "usd", confirm: true, ...parameters })

const openSession = async (keys: Keys) => {
  const { id: product } = await post(keys, "/v1/products", { name: "Tea" })
  return post(keys, "/v1/checkout_sessions", {
    mode: "payment",
    success_url: "https://merchant.example.test/done",
    line_items: [{ price_data: { product, currency: "usd", unit_amount: 500 }, quantity: 1 }]
  })
}

describe("the clock of a test environment", () => {
  it("test_helpers.clock: moves ahead of the wall clock for later events, and in this environment alone", async () => {
    const [keys, other] = [await server.merchant(), await server.merchant()]
    const before = seconds()
    const clock = await advance(keys, 30 * DAY)
    Schema.decodeUnknownSync(TestClock)(clock, { onExcessProperty: "error" })
    assert.isAtLeast(clock.now, before + 30 * DAY)
    assert.isAtMost(clock.now, seconds() + 30 * DAY)
    const again = await advance(keys, 1)
    assert.isAtLeast(again.now, clock.now + 1)
    const customer = await post(keys, "/v1/customers", { name: "A" })
    assert.isAtLeast(customer.created, again.now)
    assert.isAtMost(customer.created, seconds() + 30 * DAY + 1)
    const [event] = (await get(keys, "/v1/events")).body.data
    assert.strictEqual(event.created, customer.created)
    assert.isAtMost((await post(other, "/v1/customers", {})).created, seconds())
    const live = { key: keys.secretLive, body: {} }
    assert.isAtMost((await server.request("POST", "/v1/customers", live)).body.created, seconds())
  })

  // Semantics time.wall.
  it("a repetition of the request moves it no further, and idempotency keys expire by the wall clock", async () => {
    const keys = await server.merchant()
    const options = { key: keys.secretTest, body: { seconds: 30 * DAY }, idempotencyKey: "once" }
    const first = await server.request("POST", CLOCK, options)
    const second = await server.request("POST", CLOCK, options)
    assert.strictEqual(second.text, first.text)
    assert.strictEqual(second.headers.get("idempotent-replayed"), "true")
    assert.isBelow((await advance(keys, 1)).now, first.body.now + DAY)
  })

  it("time.wall: the grace of a rolled API key does not end by it", async () => {
    const keys = await server.merchant()
    const { data } = (await get(keys, "/v1/api_keys")).body
    const { id } = data.find(({ type }: { readonly type: string }) => type === "secret")
    await post(keys, `/v1/api_keys/${id}/roll`, { expires_in: 3600 })
    await advance(keys, 30 * DAY)
    assertOk(await get(keys, "/v1/customers"))
  })

  it("test_helpers.clock: accepts whole seconds, one or more, up to two years in total", async () => {
    const keys = await server.merchant()
    const refused = async (body: object, code = "parameter_invalid") =>
      assertError(await server.request("POST", CLOCK, { key: keys.secretTest, body }), 400, code, "seconds")
    for (const value of [0, -1, 1.5, "60", CLOCK_AHEAD_SECONDS_MAX + 1]) await refused({ seconds: value })
    await refused({}, "parameter_missing")
    await refused({ seconds: null }, "parameter_missing")
    await advance(keys, CLOCK_AHEAD_SECONDS_MAX - 60)
    await refused({ seconds: 61 })
    await advance(keys, 60)
    await refused({ seconds: 1 })
    const customer = await post(keys, "/v1/customers", {})
    assert.strictEqual((await get(keys, `/v1/customers/${customer.id}`)).body.created, customer.created)
  })

  it("checkout.expire: a Checkout Session expires by it, immediately for every read, and with an event", async () => {
    const keys = await server.merchant()
    const session = await openSession(keys)
    const path = `/v1/checkout_sessions/${session.id}`
    await advance(keys, session.expires_at - session.created - 60)
    assert.strictEqual((await get(keys, path)).body.status, "open")
    const listed = async () => (await get(keys, "/v1/checkout_sessions")).body.data[0].status
    assert.strictEqual(await listed(), "open")
    await advance(keys, 60)
    assert.strictEqual(await listed(), "expired")
    assert.strictEqual((await get(keys, path)).body.status, "expired")
    const { data } = (await get(keys, "/v1/events?type=checkout.session.expired")).body
    assert.strictEqual(data.length, 1)
    assert.strictEqual(data[0].data.object.id, session.id)
    assert.isAtLeast(data[0].created, session.expires_at)
  })

  // Semantics test_helpers.clock.
  it("timers that become due by it, and those that they set, have fired before the answer", async () => {
    const keys = await server.merchant()
    const [settled, failed, pending, failing] = [
      await pay(keys, { payment_method: "pm_card_processing_success" }),
      await pay(keys, { payment_method: "pm_card_processing_failure" }),
      await pay(keys, { payment_method: "pm_card_pendingRefund" }),
      await pay(keys, { payment_method: "pm_card_refundFail" })
    ]
    const refunds = [
      await post(keys, "/v1/refunds", { payment_intent: pending.id }),
      await post(keys, "/v1/refunds", { payment_intent: failing.id })
    ]
    await advance(keys, 2)
    const statusOf = async (path: string) => (await get(keys, path)).body.status
    assert.strictEqual(await statusOf(`/v1/payment_intents/${settled.id}`), "succeeded")
    assert.strictEqual(await statusOf(`/v1/payment_intents/${failed.id}`), "requires_payment_method")
    assert.strictEqual(await statusOf(`/v1/refunds/${refunds[0].id}`), "succeeded")
    assert.strictEqual(await statusOf(`/v1/refunds/${refunds[1].id}`), "failed")
  })

  it("payment_intents.holds: a hold that is not captured expires by it, and not before", async () => {
    const keys = await server.merchant()
    const held = await pay(keys, { payment_method: "pm_card_visa", capture_method: "manual" })
    assert.strictEqual(held.status, "requires_capture")
    const path = `/v1/payment_intents/${held.id}`
    await advance(keys, 7 * DAY - 60)
    assert.strictEqual((await get(keys, path)).body.status, "requires_capture")
    await advance(keys, 60)
    const { body } = await get(keys, path)
    assert.strictEqual(body.status, "canceled")
    assert.isAtLeast(body.canceled_at, held.created + 7 * DAY)
    const types = (await get(keys, "/v1/events?limit=2")).body.data.map(({ type }: { type: string }) => type)
    assert.sameMembers(types, ["payment_intent.canceled", "charge.expired"])
  })
})

describe("the end of a test environment's data", () => {
  const LISTS = [
    "customers",
    "products",
    "prices",
    "checkout_sessions",
    "payment_intents",
    "refunds",
    "charges",
    "webhook_endpoints",
    "events"
  ]

  it("test_helpers.data: everything is gone, the clock is reset, and the environment works as a new one", async () => {
    const keys = await server.merchant()
    const { id: customer } = await post(keys, "/v1/customers", { name: "A" })
    const { id: endpoint } = await post(keys, "/v1/webhook_endpoints", {
      url: "https://merchant.example.test/hooks",
      enabled_events: ["*"]
    })
    const { id: product } = await post(keys, "/v1/products", { name: "Tea" })
    await post(keys, "/v1/prices", { product, currency: "usd", unit_amount: 500 })
    const session = await openSession(keys)
    const paid = await pay(keys, { payment_method: "pm_card_visa", customer })
    await post(keys, "/v1/refunds", { payment_intent: paid.id })
    await pay(keys, { payment_method: "pm_card_visa", capture_method: "manual" })
    await advance(keys, 60)
    for (const list of LISTS) assert.isNotEmpty((await get(keys, `/v1/${list}`)).body.data, list)
    const live = { key: keys.secretLive, body: { name: "B" } }
    const { id: liveCustomer } = (await server.request("POST", "/v1/customers", live)).body

    const deleted = await server.request("DELETE", DATA, { key: keys.secretTest })
    assertOk(deleted)
    assert.deepStrictEqual(deleted.body, { object: "test_helpers.data", deleted: true })
    Schema.decodeUnknownSync(DeletedTestData)(deleted.body, { onExcessProperty: "error" })
    for (const list of LISTS) assert.deepStrictEqual((await get(keys, `/v1/${list}`)).body.data, [], list)
    for (const path of [
      `customers/${customer}`,
      `webhook_endpoints/${endpoint}`,
      `checkout_sessions/${session.id}`,
      `payment_intents/${paid.id}`
    ]) {
      assertError(await get(keys, `/v1/${path}`), 404, "resource_missing", "id")
    }
    assertOk(await server.request("GET", `/v1/customers/${liveCustomer}`, { key: keys.secretLive }))

    const fresh = await post(keys, "/v1/customers", { name: "C" })
    assert.isAtMost(fresh.created, seconds())
    // No timer fires later: neither the session's end nor the hold's, and no endpoint gets a webhook.
    await advance(keys, 30 * DAY)
    const later = await post(keys, "/v1/customers", { name: "D" })
    const events = (await get(keys, "/v1/events")).body.data
    assert.deepStrictEqual(
      events.map((event: { readonly data: { readonly object: { readonly id: string } } }) => event.data.object.id),
      [later.id, fresh.id]
    )
    for (const event of events) assert.strictEqual(event.pending_webhooks, 0)
    const { data } = (await get(keys, "/v1/customers")).body
    assert.deepStrictEqual(
      data.map(({ id }: { readonly id: string }) => id),
      [later.id, fresh.id]
    )
  })

  it("test_helpers.data: idempotency keys are forgotten, too", async () => {
    const { secretTest: key } = await server.merchant()
    const options = { key, idempotencyKey: "again", body: { name: "A" } }
    const first = await server.request("POST", "/v1/customers", options)
    assertOk(await server.request("DELETE", DATA, { key }))
    const second = await server.request("POST", "/v1/customers", { ...options, body: { name: "B" } })
    assertOk(second)
    assert.notStrictEqual(second.body.id, first.body.id)
  })

  it("test_helpers.data: can be repeated, also in an empty environment", async () => {
    const { secretTest: key } = await server.merchant()
    assertOk(await server.request("DELETE", DATA, { key }))
    assertOk(await server.request("DELETE", DATA, { key }))
  })
})

describe("test helpers", () => {
  it("test_helpers.test_mode: are for test keys only", async () => {
    const { publishableTest, secretLive } = server.keys
    const body = { seconds: 60 }
    for (const [method, path, options] of [
      ["POST", CLOCK, { body }],
      ["DELETE", DATA, {}]
    ] as const) {
      const live = await server.request(method, path, { ...options, key: secretLive })
      assertError(live, 400, "test_mode_only")
      assert.strictEqual(live.body.error.message, "This operation is only available in test mode.")
      const publishable = await server.request(method, path, { ...options, key: publishableTest })
      assertError(publishable, 403, "secret_key_required")
    }
  })
})
