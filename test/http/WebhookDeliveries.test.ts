/**
 * Semantics webhooks.recipients, webhooks.disabled, webhooks.resend, webhooks.deliveries: deliveries and resent events,
 * row by row, through a real socket. No attempts are sent: the tests report simulated results to the engine as a
 * dispatcher would.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Event } from "../../src/domain/Event.ts"
import { WebhookDelivery } from "../../src/domain/WebhookDelivery.ts"
import type { AttemptOutcome } from "../../src/engine/Deliveries.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { render } from "../../src/payments/shared/Events.ts"
import { assertError, assertOk } from "./Assertions.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const ENDPOINTS = "/v1/webhook_endpoints"
const UNKNOWN = "000000000000000000000000"

/** A new merchant, with its actions. */
const makeShop = async () => {
  const keys: Keys = await server.merchant()
  const account = `${keys.merchantId}:test`
  const key = keys.secretTest
  const get = (path: string) => server.request("GET", path, { key })
  const send = (path: string, body: object = {}, idempotencyKey?: string) =>
    server.request("POST", path, { key, body, ...(idempotencyKey !== undefined && { idempotencyKey }) })
  const post = async (path: string, body: object = {}) => {
    const reply = await send(path, body)
    assertOk(reply)
    return reply.body
  }
  const list = async (path: string) => {
    const reply = await get(path)
    assertOk(reply)
    return reply.body.data
  }
  const url = "https://merchant.example.test/hooks"
  return {
    account,
    key,
    get,
    send,
    post,
    list,
    endpoint: async (enabled_events: ReadonlyArray<string>): Promise<string> =>
      (await post(ENDPOINTS, { url, enabled_events })).id,
    deliveries: (endpoint: string): Promise<ReadonlyArray<typeof WebhookDelivery.Type>> =>
      list(`${ENDPOINTS}/${endpoint}/deliveries?limit=100`),
    newestEvent: async (): Promise<typeof Event.Type> => (await list("/v1/events?limit=1"))[0],
    report: (outcome: AttemptOutcome) =>
      Effect.runPromise(
        server.accounts.run(
          account,
          Effect.map(Transaction, (transaction) => transaction.attempted(outcome))
        )
      )
  }
}

describe("deliveries", () => {
  // Semantics webhooks.recipients, webhooks.deliveries.
  it("an event is delivered to subscribed endpoints, attempt by attempt", async () => {
    const shop = await makeShop()
    const all = await shop.endpoint(["*"])
    const some = await shop.endpoint(["customer.created", "customer.updated"])
    const none = await shop.endpoint(["charge.failed"])
    await shop.post("/v1/customers")
    const event = await shop.newestEvent()
    assert.strictEqual(event.pending_webhooks, 2)
    assert.deepStrictEqual(await shop.deliveries(none), [])
    for (const endpoint of [all, some]) {
      const [delivery, ...others] = await shop.deliveries(endpoint)
      assert.lengthOf(others, 0)
      Schema.decodeUnknownSync(WebhookDelivery)(delivery, { onExcessProperty: "error" })
      const { id, ...rest } = delivery!
      assert.match(id, /^whd_[0-9A-Za-z]{24}$/)
      assert.deepStrictEqual(rest, {
        object: "webhook_delivery",
        event: event.id,
        webhook_endpoint: endpoint,
        status: "pending",
        attempt_count: 0,
        next_attempt_at: event.created,
        last_response_status: null,
        last_error: null,
        created: event.created,
        livemode: false,
        attempts: []
      })
    }

    const [{ id }] = (await shop.deliveries(all)) as [typeof WebhookDelivery.Type]
    const attempt = { id, destination: all, durationMillis: 250 }
    const firstAt = event.created * 1000
    await shop.report({
      ...attempt,
      attempt: 1,
      startedAt: firstAt,
      status: null,
      error: "The connection was refused.",
      next: { retryAfterMillis: 60_000 }
    })
    assert.strictEqual((await shop.newestEvent()).pending_webhooks, 2)
    const [failed] = await shop.deliveries(all)
    assert.deepInclude(failed, {
      status: "pending",
      attempt_count: 1,
      next_attempt_at: event.created + 60,
      last_response_status: null,
      last_error: "The connection was refused."
    })
    const secondAt = firstAt + 60_900
    await shop.report({ ...attempt, attempt: 2, startedAt: secondAt, status: 204, error: null, next: "delivered" })
    const [delivered] = await shop.deliveries(all)
    Schema.decodeUnknownSync(WebhookDelivery)(delivered, { onExcessProperty: "error" })
    assert.deepStrictEqual(delivered, {
      ...failed!,
      status: "delivered",
      attempt_count: 2,
      next_attempt_at: null,
      last_response_status: 204,
      last_error: null,
      attempts: [
        {
          attempt: 1,
          started_at: event.created,
          duration_ms: 250,
          response_status: null,
          error: "The connection was refused.",
          response_body: null
        },
        {
          attempt: 2,
          started_at: event.created + 60,
          duration_ms: 250,
          response_status: 204,
          error: null,
          response_body: null
        }
      ]
    })
    assert.strictEqual((await shop.newestEvent()).pending_webhooks, 1)
    assert.strictEqual((await shop.get(`/v1/events/${event.id}`)).body.pending_webhooks, 1)
  })

  it("webhooks.body: the body is the event as of its time, with any number of pending deliveries", async () => {
    const shop = await makeShop()
    const [first, second] = [await shop.endpoint(["*"]), await shop.endpoint(["*"])]
    await shop.post("/v1/customers", { name: "A" })
    const before = (await shop.get(`/v1/events/${(await shop.newestEvent()).id}`)).text
    await server.request("DELETE", `${ENDPOINTS}/${first}`, { key: shop.key })
    await shop.post(`${ENDPOINTS}/${second}`, { status: "disabled" })
    const { id, pending_webhooks } = await shop.newestEvent()
    assert.strictEqual(pending_webhooks, 0)
    const event = (await Effect.runPromise(server.accounts.event(shop.account, id)))!
    const { account } = shop
    assert.strictEqual(render(event, { account, pendingWebhooks: event.deliveries }), before)
  })

  it("lists.*: are listed in pages, newest first", async () => {
    const shop = await makeShop()
    const [endpoint, other] = [await shop.endpoint(["customer.created"]), await shop.endpoint(["*"])]
    const path = `${ENDPOINTS}/${endpoint}/deliveries`
    assert.deepStrictEqual((await shop.get(path)).body, {
      object: "list",
      data: [],
      has_more: false,
      url: path,
      next_cursor: null
    })
    const events: Array<string> = []
    for (let i = 0; i < 5; i++) {
      await shop.post("/v1/customers")
      events.unshift((await shop.newestEvent()).id)
    }
    const all = await shop.deliveries(endpoint)
    assert.deepStrictEqual(
      all.map(({ event }) => event),
      events
    )
    const first = (await shop.get(`${path}?limit=2`)).body
    assert.deepStrictEqual(first.data, all.slice(0, 2))
    assert.deepInclude(first, { has_more: true, url: path, next_cursor: all[1]!.id })
    const rest = (await shop.get(`${path}?starting_after=${all[1]!.id}`)).body
    assert.deepStrictEqual([rest.data, rest.has_more, rest.next_cursor], [all.slice(2), false, null])
    const newer = (await shop.get(`${path}?limit=2&ending_before=${all[3]!.id}`)).body
    assert.deepStrictEqual([newer.data, newer.has_more], [all.slice(1, 3), true])

    const [stranger] = await shop.deliveries(other)
    for (const id of [stranger!.id, `whd_${UNKNOWN}`, events[0]!]) {
      const refused = await shop.get(`${path}?starting_after=${id}`)
      assertError(refused, 404, "resource_missing", "starting_after")
      assert.strictEqual(refused.body.error.message, `No WebhookDelivery found with ID '${id}'.`)
    }
    const both = await shop.get(`${path}?starting_after=${all[0]!.id}&ending_before=${all[1]!.id}`)
    assertError(both, 400, "parameters_exclusive", "ending_before")
    assertError(await shop.get(`${path}?limit=0`), 400, "parameter_invalid", "limit")
    assertError(await shop.get(`${path}?status=pending`), 400, "parameter_unknown", "status")
  })

  it("requests.paths: belong to one endpoint", async () => {
    const [shop, stranger] = [await makeShop(), await makeShop()]
    const endpoint = await shop.endpoint(["*"])
    const path = `${ENDPOINTS}/${endpoint}/deliveries`
    assertError(await stranger.get(path), 404, "resource_missing", "id")
    assertError(await shop.get(`${ENDPOINTS}/we_${UNKNOWN}/deliveries`), 404, "resource_missing", "id")
    assertOk(await shop.get(path))
    assertOk(await server.request("DELETE", `${ENDPOINTS}/${endpoint}`, { key: shop.key }))
    assertError(await shop.get(path), 404, "resource_missing", "id")
  })

  it("webhooks.disabled: those of a disabled endpoint are canceled for good", async () => {
    const shop = await makeShop()
    const endpoint = await shop.endpoint(["*"])
    await shop.post("/v1/customers")
    await shop.post(`${ENDPOINTS}/${endpoint}`, { status: "disabled" })
    await shop.post("/v1/customers")
    await shop.post(`${ENDPOINTS}/${endpoint}`, { status: "enabled" })
    const [canceled, ...others] = await shop.deliveries(endpoint)
    assert.lengthOf(others, 0)
    assert.deepInclude(canceled, { status: "canceled", next_attempt_at: null })
    for (const event of await shop.list("/v1/events")) assert.strictEqual(event.pending_webhooks, 0)
    await shop.post("/v1/customers")
    assert.lengthOf(await shop.deliveries(endpoint), 2)
  })

  // Semantics webhooks.recipients.
  it("an update of enabled_events applies to later events, other updates have no effect", async () => {
    const shop = await makeShop()
    const endpoint = await shop.endpoint(["customer.created"])
    const types = async () => {
      const deliveries = await shop.deliveries(endpoint)
      const events = await Promise.all(deliveries.map(({ event }) => shop.get(`/v1/events/${event}`)))
      assert.isTrue(deliveries.every(({ status }) => status === "pending"))
      return events.map(({ body }) => body.type).toReversed()
    }
    await shop.post(`${ENDPOINTS}/${endpoint}`, { url: "https://merchant.example.test/other", description: "D" })
    await shop.post("/v1/customers")
    await shop.post(`${ENDPOINTS}/${endpoint}`, { enabled_events: ["product.created"] })
    await shop.post("/v1/customers")
    await shop.post("/v1/products", { name: "Tea" })
    assert.deepStrictEqual(await types(), ["customer.created", "product.created"])
    await shop.post(`${ENDPOINTS}/${endpoint}`, { status: "enabled", enabled_events: ["*"] })
    await shop.post("/v1/customers")
    assert.deepStrictEqual(await types(), ["customer.created", "product.created", "customer.created"])
  })

  it("webhooks.disabled: the events of a disabled endpoint can be changed, and apply once it is enabled", async () => {
    const shop = await makeShop()
    const endpoint = await shop.endpoint(["product.created"])
    await shop.post(`${ENDPOINTS}/${endpoint}`, { status: "disabled" })
    await shop.post(`${ENDPOINTS}/${endpoint}`, { enabled_events: ["customer.created"] })
    await shop.post("/v1/customers")
    assert.deepStrictEqual(await shop.deliveries(endpoint), [])
    await shop.post(`${ENDPOINTS}/${endpoint}`, { status: "enabled" })
    await shop.post("/v1/customers")
    await shop.post("/v1/products", { name: "Tea" })
    assert.lengthOf(await shop.deliveries(endpoint), 1)
  })
})

describe("resending", () => {
  it("webhooks.resend: goes to all current subscribers of the type, with attempts of its own", async () => {
    const shop = await makeShop()
    const [first, second] = [await shop.endpoint(["*"]), await shop.endpoint(["customer.created"])]
    await shop.post("/v1/customers", { metadata: { 2: "b", 1: "a" } })
    const event = await shop.newestEvent()
    for (const endpoint of [first, second]) {
      const [delivery] = await shop.deliveries(endpoint)
      const attempt = { attempt: 1, startedAt: Date.now(), durationMillis: 1, status: 200, error: null }
      await shop.report({ id: delivery!.id, destination: endpoint, next: "delivered", ...attempt })
    }
    await shop.post(`${ENDPOINTS}/${second}`, { enabled_events: ["product.created"] })
    const third = await shop.endpoint(["customer.created"])
    const resent = await shop.send(`/v1/events/${event.id}/resend`)
    assertOk(resent)
    Schema.decodeUnknownSync(Event)(resent.body, { onExcessProperty: "error" })
    assert.deepStrictEqual(resent.body, { ...event, pending_webhooks: 2 })
    assert.strictEqual((await shop.get(`/v1/events/${event.id}`)).text, resent.text)
    assert.lengthOf(await shop.list("/v1/events"), 1)
    const [again, before] = await shop.deliveries(first)
    assert.deepInclude(before, { status: "delivered", attempt_count: 1 })
    assert.deepInclude(again, { status: "pending", event: event.id, attempt_count: 0, attempts: [] })
    assert.lengthOf(await shop.deliveries(second), 1)
    assert.deepInclude((await shop.deliveries(third))[0], { status: "pending", event: event.id })
  })

  it("webhooks.resend: goes to one endpoint with any subscriptions, also during another delivery", async () => {
    const shop = await makeShop()
    const [all, other] = [await shop.endpoint(["*"]), await shop.endpoint(["charge.failed"])]
    await shop.post("/v1/customers")
    const { id } = await shop.newestEvent()
    const path = `/v1/events/${id}/resend`
    assert.strictEqual((await shop.post(path, { webhook_endpoint: other })).pending_webhooks, 2)
    assert.strictEqual((await shop.post(path, { webhook_endpoint: all })).pending_webhooks, 3)
    assert.strictEqual((await shop.post(path, { webhook_endpoint: null })).pending_webhooks, 4)
    assert.lengthOf(await shop.deliveries(other), 1)
    assert.lengthOf(await shop.deliveries(all), 3)
  })

  it("webhooks.resend: goes to no endpoint, if none is subscribed", async () => {
    const shop = await makeShop()
    await shop.post("/v1/customers")
    const event = await shop.newestEvent()
    assert.deepStrictEqual(await shop.post(`/v1/events/${event.id}/resend`), event)
  })

  it("idempotency.replay: happens once per idempotency key", async () => {
    const shop = await makeShop()
    const endpoint = await shop.endpoint(["*"])
    await shop.post("/v1/customers")
    const path = `/v1/events/${(await shop.newestEvent()).id}/resend`
    const first = await shop.send(path, {}, "resend")
    const second = await shop.send(path, {}, "resend")
    assertOk(first)
    assert.strictEqual(second.text, first.text)
    assert.strictEqual(second.headers.get("idempotent-replayed"), "true")
    assert.lengthOf(await shop.deliveries(endpoint), 2)
    const conflict = await shop.send(path, { webhook_endpoint: endpoint }, "resend")
    assertError(conflict, 422, "idempotency_key_reuse")
  })

  it("errors.table: refuses invalid requests", async () => {
    const [shop, stranger] = [await makeShop(), await makeShop()]
    const endpoint = await shop.endpoint(["*"])
    await shop.post("/v1/customers")
    const path = `/v1/events/${(await shop.newestEvent()).id}/resend`
    const param = "webhook_endpoint"
    const to = (id: unknown) => shop.send(path, { webhook_endpoint: id })
    for (const id of ["", "cus_1", 1, []]) assertError(await to(id), 400, "parameter_invalid", param)
    assertError(await to(`we_${UNKNOWN}`), 404, "resource_missing", param)
    assertError(await to(await stranger.endpoint(["*"])), 404, "resource_missing", param)
    await shop.post(`${ENDPOINTS}/${endpoint}`, { status: "disabled" })
    const disabled = await to(endpoint)
    assertError(disabled, 400, "parameter_invalid", param)
    const message = "The `webhook_endpoint` field must be the ID of an enabled webhook endpoint."
    assert.strictEqual(disabled.body.error.message, message)
    assertOk(await server.request("DELETE", `${ENDPOINTS}/${endpoint}`, { key: shop.key }))
    assertError(await to(endpoint), 404, "resource_missing", param)
    const missing = await shop.send(`/v1/events/evt_${UNKNOWN}/resend`)
    assertError(missing, 404, "resource_missing", "id")
    assert.strictEqual(missing.body.error.message, `No Event found with ID 'evt_${UNKNOWN}'.`)
    assertError(await stranger.send(path), 404, "resource_missing", "id")
    // The schema is checked before the object (semantics requests.order).
    const both = await shop.send(`/v1/events/evt_${UNKNOWN}/resend`, { to: endpoint })
    assertError(both, 400, "parameter_unknown", "to")
    assert.lengthOf(await shop.list(`${ENDPOINTS}`), 0)
  })
})
