/** Semantics idempotency.*, row by row, through a real socket. The engine's tests have the rows that need crashes. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit } from "effect"
import type * as Faults from "../engine/storage/Faults.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, type RequestOptions, start } from "../support/MemoryTill.ts"

/** While set, commits wait for it. */
let gate: Deferred.Deferred<void> | undefined
const faults: Faults.Faults = (point) =>
  point === "append.before" && gate !== undefined ? Deferred.await(gate) : Effect.void

let server: MemoryTill
beforeAll(async () => void (server = await start({ faults })))
afterAll(() => server.close())

let keys = 0
const newKey = () => `idempotency-${++keys}`
const create = (idempotencyKey: string | null, body: unknown = { name: "A" }, options: RequestOptions = {}) =>
  server.request("POST", "/v1/customers", { idempotencyKey, body, ...options })
const countCustomers = async () => (await server.request("GET", "/v1/customers?limit=100")).body.data.length

describe("idempotency", () => {
  it("idempotency.required: the key is required, once, with 1 to 255 characters", async () => {
    assertError(await create(null), 400, "parameter_missing", "Idempotency-Key")
    assertError(await create(""), 400, "parameter_invalid", "Idempotency-Key")
    assertError(await create("k".repeat(256)), 400, "parameter_invalid", "Idempotency-Key")
    assertOk(await create("k".repeat(255)))
    const asSent = (key: string) => Buffer.from(key).toString("latin1")
    assertOk(await create(asSent("😀".repeat(255))))
    assertError(await create(asSent("😀".repeat(256))), 400, "parameter_invalid", "Idempotency-Key")
  })

  it("idempotency.required: GET and DELETE ignore it", async () => {
    const key = newKey()
    const { body } = await create(key)
    const headers = { "idempotency-key": key }
    const deleted = await server.request("DELETE", `/v1/customers/${body.id}`, { headers })
    assertOk(deleted)
    assert.isTrue(deleted.body.deleted)
    assertError(await server.request("DELETE", `/v1/customers/${body.id}`, { headers }), 404, "resource_missing", "id")
  })

  // Semantics idempotency.fingerprint, idempotency.replay.
  it("the same request gets the first response, byte for byte, and has no effect", async () => {
    const key = newKey()
    const first = await create(key, '{"name":"A","email":"a@b.co"}')
    const before = await countCustomers()
    const second = await create(key, '{ "email": "a@b.co", "name": "A" }', {
      headers: { "x-api-version": "2026-03-09" }
    })
    assertOk(second)
    assert.strictEqual(second.text, first.text)
    assert.strictEqual(second.headers.get("idempotent-replayed"), "true")
    assert.strictEqual(second.headers.get("original-request"), first.headers.get("x-request-id"))
    assert.notStrictEqual(second.headers.get("x-request-id"), first.headers.get("x-request-id"))
    assert.isNull(first.headers.get("idempotent-replayed"))
    assert.strictEqual(await countCustomers(), before)
    assertOk(await server.request("DELETE", `/v1/customers/${first.body.id}`))
    assert.strictEqual((await create(key, '{"name":"A","email":"a@b.co"}')).text, first.text)
  })

  it("idempotency.scope: keys of another environment are other keys", async () => {
    const key = newKey()
    const test = await create(key)
    const live = await create(key, { name: "A" }, { key: server.keys.secretLive })
    assertOk(live)
    assert.notStrictEqual(live.body.id, test.body.id)
  })

  // Semantics idempotency.scope.
  it("keys of browsers differ from a server's equal keys, and both get them back as sent", async () => {
    const { body: intent } = await server.request("POST", "/v1/payment_intents", {
      body: { amount: 1, currency: "usd" }
    })
    const confirm = (idempotencyKey: string, key: string) =>
      server.request("POST", `/v1/payment_intents/${intent.id}/confirm`, {
        idempotencyKey,
        key,
        body: { client_secret: intent.client_secret, payment_method: "pm_card_visa" }
      })
    const key = newKey()
    // A browser guesses a server's key, and uses it first.
    const claimed = await confirm(key, server.keys.publishableTest)
    assertOk(claimed)
    assert.strictEqual(claimed.headers.get("idempotency-key"), key)
    const { data } = (await server.request("GET", "/v1/events?limit=2")).body
    for (const event of data) assert.strictEqual(event.request.idempotency_key, key)
    const created = await create(key)
    assertOk(created)
    assert.isFalse(created.headers.has("idempotent-replayed"))
    const repeated = await confirm(key, server.keys.publishableTest)
    assert.strictEqual(repeated.text, claimed.text)
    assert.strictEqual(repeated.headers.get("idempotent-replayed"), "true")
    assertError(await confirm(key, server.keys.secretTest), 422, "idempotency_key_reuse")
  })

  it("idempotency.reuse: another request with the same key", async () => {
    const key = newKey()
    const { body } = await create(key)
    const reuse = async (path: string, other: unknown) => {
      const reply = await server.request("POST", path, { idempotencyKey: key, body: other })
      assertError(reply, 422, "idempotency_key_reuse")
    }
    await reuse("/v1/customers", { name: "B" })
    await reuse(`/v1/customers/${body.id}`, { name: "A" })
    await reuse("/v1/payment_intents", { amount: 1, currency: "usd" })
    await reuse("/v1/customers", { nmae: "A" })
  })

  it("idempotency.reuse: another card is another request, although no card number is kept", async () => {
    const key = newKey()
    const confirm = (number: string, cvc: string) =>
      server.request("POST", "/v1/payment_intents", {
        idempotencyKey: key,
        body: {
          amount: 1,
          currency: "usd",
          confirm: true,
          payment_method_data: { type: "card", card: { number, cvc, exp_month: 12, exp_year: 2040 } }
        }
      })
    const first = await confirm("4242424242424242", "123")
    assertOk(first)
    assert.strictEqual((await confirm("4242424242424242", "123")).text, first.text)
    assertError(await confirm("5555555555554444", "123"), 422, "idempotency_key_reuse")
    // Nothing of a security code is stored that could be compared.
    assert.strictEqual((await confirm("4242424242424242", "124")).text, first.text)
  })

  it("idempotency.in_use: a twin waits for the first and gets its response; another request is refused", async () => {
    const key = newKey()
    const before = await countCustomers()
    const closed = (gate = Deferred.makeUnsafe<void>())
    const twins = Array.from({ length: 20 }, () => create(key))
    const other = create(key, { name: "B" })
    await new Promise((resolve) => setTimeout(resolve, 50))
    gate = undefined
    Deferred.doneUnsafe(closed, Exit.void)
    const replies = await Promise.all(twins)
    for (const reply of replies) {
      assertOk(reply)
      assert.strictEqual(reply.text, replies[0]!.text)
    }
    assert.strictEqual(replies.filter(({ headers }) => headers.get("idempotent-replayed") === null).length, 1)
    assertError(await other, 422, "idempotency_key_reuse")
    assert.strictEqual(await countCustomers(), before + 1)
  })

  it("idempotency.stored: declines and refusals by state are stored", async () => {
    const body = { amount: 1, currency: "usd", payment_method: "pm_card_declined", confirm: true }
    const key = newKey()
    const declined = await server.request("POST", "/v1/payment_intents", { idempotencyKey: key, body })
    assertError(declined, 402, "card_declined")
    const replayed = await server.request("POST", "/v1/payment_intents", { idempotencyKey: key, body })
    assert.strictEqual(replayed.text, declined.text)
    assert.strictEqual(replayed.status, 402)
    assert.strictEqual(replayed.headers.get("idempotent-replayed"), "true")

    const { id } = declined.body.error.payment_intent
    const captureKey = newKey()
    const capture = () => server.request("POST", `/v1/payment_intents/${id}/capture`, { idempotencyKey: captureKey })
    assertError(await capture(), 400, "payment_intent_unexpected_state", "id")
    const again = await capture()
    assertError(again, 400, "payment_intent_unexpected_state", "id")
    assert.strictEqual(again.headers.get("idempotent-replayed"), "true")

    const tooLarge = { amount: 1_000_000_000_000, currency: "usd" }
    const largeKey = newKey()
    const large = () => server.request("POST", "/v1/payment_intents", { idempotencyKey: largeKey, body: tooLarge })
    assertError(await large(), 400, "amount_too_large", "amount")
    assert.strictEqual((await large()).headers.get("idempotent-replayed"), "true")
  })

  it("idempotency.released: refusals before anything happened release the key", async () => {
    const key = newKey()
    assertError(await create(key, { name: 1 }), 400, "parameter_invalid", "name")
    assertError(await create(key, "{"), 400, "invalid_json")
    assertError(await create(key, { nmae: "A" }), 400, "parameter_unknown", "nmae")
    assertError(await create(key, "a", { headers: { "content-type": "text/plain" } }), 415, "unsupported_media_type")
    assertError(await create(key, {}, { key: null }), 401, "authentication_failed")
    const missing = { amount: 1, currency: "usd", customer: "cus_x" }
    assertError(
      await server.request("POST", "/v1/payment_intents", { idempotencyKey: key, body: missing }),
      404,
      "resource_missing",
      "customer"
    )
    const both = { amount: 1, currency: "usd", confirm: true, payment_method: "pm_card_visa" }
    const card = { number: "4242424242424242", exp_month: 1, exp_year: 2040 }
    assertError(
      await server.request("POST", "/v1/payment_intents", {
        idempotencyKey: key,
        body: { ...both, payment_method_data: { type: "card", card } }
      }),
      400,
      "parameters_exclusive",
      "payment_method_data"
    )
    const unavailable = { amount: 1, currency: "usd", confirm: true, payment_method: "pm_card_processor_error" }
    assertError(
      await server.request("POST", "/v1/payment_intents", { idempotencyKey: key, body: unavailable }),
      500,
      "processor_unavailable"
    )
    const reply = await create(key)
    assertOk(reply)
    assert.isNull(reply.headers.get("idempotent-replayed"))
  })
})
