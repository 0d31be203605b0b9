/**
 * Semantics keys.first, keys.list, keys.roll, keys.revoke over HTTP: keys are listed masked, rolled with a grace, and
 * revoked.
 */
import { Agent, get } from "node:http"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { assertError, assertOk } from "./Assertions.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { basic } from "../support/HttpExchange.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const listKeys = async (key: string) => (await server.request("GET", "/v1/api_keys", { key })).body.data

const idOf = async (keys: Keys, secret: string, by = keys.secretTest): Promise<string> =>
  (await listKeys(by)).find(({ last4 }: { last4: string }) => last4 === secret.slice(-4)).id

const works = async (key: string) => (await server.request("GET", "/v1/api_keys", { key })).status === 200

describe("API keys", () => {
  it("keys.list, keys.roll: are listed masked, newest first, only for the own merchant and environment", async () => {
    const [one, other] = [await server.merchant(), await server.merchant()]
    const reply = await server.request("GET", "/v1/api_keys", { key: one.secretLive })
    assertOk(reply)
    for (const secret of [one.secretLive, one.publishableLive]) assert.notInclude(reply.text, secret.slice(-20))
    const masks = reply.body.data.map(({ last4, livemode, merchant_id, prefix, status }: Record<string, unknown>) => ({
      last4,
      livemode,
      merchant_id,
      prefix,
      status
    }))
    const common = { livemode: true, merchant_id: one.merchantId, status: "active" }
    assert.deepStrictEqual(masks, [
      { ...common, prefix: "pk_live_", last4: one.publishableLive.slice(-4) },
      { ...common, prefix: "sk_live_", last4: one.secretLive.slice(-4) }
    ])
    const page = await server.request("GET", `/v1/api_keys?limit=1&starting_after=${reply.body.data[0].id}`, {
      key: one.secretLive
    })
    assert.deepStrictEqual(page.body.data, [reply.body.data[1]])
    const [stranger] = await listKeys(other.secretTest)
    const path = `/v1/api_keys?starting_after=${stranger.id}`
    assertError(await server.request("GET", path), 404, "resource_missing", "starting_after")
  })

  it("keys.roll, keys.object: a rolled key is valid beside the new one, and the new one is shown once", async () => {
    const keys = await server.merchant()
    const id = await idOf(keys, keys.secretTest)
    const roll = () =>
      server.request("POST", `/v1/api_keys/${id}/roll`, { key: keys.secretTest, idempotencyKey: "roll-once" })
    const before = Math.floor(Date.now() / 1000)
    const rolled = await roll()
    assertOk(rolled)
    const { secret, ...shown } = rolled.body
    assert.match(secret, /^sk_test_[0-9A-Za-z]{32}$/)
    const { created, id: newId, ...rest } = shown
    assert.match(newId, /^key_[0-9A-Za-z]{24}$/)
    assert.isAtLeast(created, before)
    assert.deepStrictEqual(rest, {
      object: "api_key",
      type: "secret",
      livemode: false,
      prefix: "sk_test_",
      last4: secret.slice(-4),
      expires_at: null,
      status: "active",
      merchant_id: keys.merchantId
    })
    assert.isTrue(await works(secret))
    assert.isTrue(await works(keys.secretTest))
    const old = (await listKeys(secret)).find((key: { id: string }) => key.id === id)
    assert.strictEqual(old.status, "rolling")
    assert.isAtLeast(old.expires_at, before + 86_400)
    assert.isAtMost(old.expires_at, Math.floor(Date.now() / 1000) + 86_400)

    const replay = await roll()
    assertOk(replay)
    assert.strictEqual(replay.headers.get("idempotent-replayed"), "true")
    assert.deepStrictEqual(replay.body, shown)
    assert.lengthOf(await listKeys(secret), 3)
  })

  // Semantics keys.roll.
  it("without grace the old key ends immediately (semantics keys.expired), and its end never moves back", async () => {
    const keys = await server.merchant()
    const id = await idOf(keys, keys.publishableTest)
    const secretId = await idOf(keys, keys.secretTest)
    const roll = (rolled: string, key: string, expires_in: number) =>
      server.request("POST", `/v1/api_keys/${rolled}/roll`, { key, body: { expires_in } })
    assert.match((await roll(id, keys.secretTest, 0)).body.secret, /^pk_test_/)
    const { secret } = (await roll(secretId, keys.secretTest, 0)).body
    assertError(await server.request("GET", "/v1/api_keys", { key: keys.secretTest }), 401, "api_key_expired")
    const ended = (await listKeys(secret)).find((key: { id: string }) => key.id === secretId)
    assert.strictEqual(ended.status, "expired")
    assertOk(await roll(secretId, secret, 86_400))
    assertError(await server.request("GET", "/v1/api_keys", { key: keys.secretTest }), 401, "api_key_expired")
  })

  // Semantics keys.roll.
  it("a roll is refused for keys of other merchants or environments, with a publishable key, and out of bounds", async () => {
    const [keys, other] = [await server.merchant(), await server.merchant()]
    const id = await idOf(keys, keys.secretTest)
    const roll = (key: string, body: object = {}) => server.request("POST", `/v1/api_keys/${id}/roll`, { key, body })
    assertError(await roll(other.secretTest), 404, "resource_missing", "id")
    assertError(await roll(keys.secretLive), 404, "resource_missing", "id")
    assertError(await roll(keys.publishableTest), 403, "secret_key_required")
    for (const expires_in of [-1, 86_401, 1.5, "60"]) {
      assertError(await roll(keys.secretTest, { expires_in }), 400, "parameter_invalid", "expires_in")
    }
    assertError(await roll(keys.secretTest, { expiry: 1 }), 400, "parameter_unknown", "expiry")
    assert.isTrue(await works(keys.secretTest))
  })

  it("keys.revoke: a revoked key of any status ends immediately, and stays in lists", async () => {
    const keys = await server.merchant()
    const revoke = (id: string, key = keys.secretTest) => server.request("DELETE", `/v1/api_keys/${id}`, { key })
    const rollingId = await idOf(keys, keys.secretTest)
    const by = (await server.request("POST", `/v1/api_keys/${rollingId}/roll`, { key: keys.secretTest })).body
    const publishableId = await idOf(keys, keys.publishableTest)
    const tokenize = () =>
      server.request("POST", "/v1/payment_methods", {
        key: keys.publishableTest,
        body: { type: "card", card: { number: "4242424242424242", exp_month: 12, exp_year: 2040 } }
      })
    assertOk(await tokenize())
    const before = (await listKeys(by.secret)).find(({ id }: { id: string }) => id === publishableId)
    const revoked = await revoke(publishableId, by.secret)
    assertOk(revoked)
    assert.deepStrictEqual(revoked.body, { ...before, status: "revoked" })
    assertError(await tokenize(), 401, "authentication_failed")

    assert.isTrue(await works(keys.secretTest))
    const rolling = await revoke(rollingId, by.secret)
    assertOk(rolling)
    assert.include(rolling.body, { id: rollingId, status: "revoked" })
    assert.isNotNull(rolling.body.expires_at)
    assertError(await server.request("GET", "/v1/api_keys", { key: keys.secretTest }), 401, "authentication_failed")

    for (const id of [rollingId, publishableId]) {
      assertError(await revoke(id, by.secret), 404, "resource_missing", "id")
      const roll = await server.request("POST", `/v1/api_keys/${id}/roll`, { key: by.secret })
      assertError(roll, 404, "resource_missing", "id")
    }
    const states = (await listKeys(by.secret)).map(({ id, status }: Record<string, string>) => [id, status])
    assert.deepStrictEqual(states, [
      [by.id, "active"],
      [publishableId, "revoked"],
      [rollingId, "revoked"]
    ])
  })

  it("keys.revoke: an expired key can be revoked, too, and then has that status", async () => {
    const keys = await server.merchant()
    const id = await idOf(keys, keys.secretTest)
    const options = { key: keys.secretTest, body: { expires_in: 0 } }
    const { secret } = (await server.request("POST", `/v1/api_keys/${id}/roll`, options)).body
    assertError(await server.request("GET", "/v1/api_keys", { key: keys.secretTest }), 401, "api_key_expired")
    assert.strictEqual((await server.request("DELETE", `/v1/api_keys/${id}`, { key: secret })).body.status, "revoked")
    assertError(await server.request("GET", "/v1/api_keys", { key: keys.secretTest }), 401, "authentication_failed")
  })

  it("keys.revoke: a key cannot revoke itself or keys of others, and a publishable key revokes none", async () => {
    const [keys, other] = [await server.merchant(), await server.merchant()]
    const id = await idOf(keys, keys.secretTest)
    const revoke = (key: string, of = id, query = "") => server.request("DELETE", `/v1/api_keys/${of}${query}`, { key })
    const itself = await revoke(keys.secretTest)
    assertError(itself, 400, "resource_in_use", "id")
    assert.strictEqual(itself.body.error.message, `The API key '${id}' makes this request; use another key.`)
    assertError(await revoke(other.secretTest), 404, "resource_missing", "id")
    assertError(await revoke(keys.secretLive), 404, "resource_missing", "id")
    assertError(await revoke(keys.publishableTest), 403, "secret_key_required")
    assertError(await revoke(keys.secretTest, "key_x"), 404, "resource_missing", "id")
    assertError(await revoke(keys.secretTest, id, "?now=1"), 400, "parameter_unknown", "now")
    assertOk(await server.request("GET", "/v1/customers", { key: keys.secretTest }))
  })

  it("keys.revoke: a connection that was open before is refused, too", async () => {
    const keys = await server.merchant()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const sockets = new Set<unknown>()
    const read = () =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { authorization: basic(keys.publishableTest) }
        const url = `http://127.0.0.1:${server.port}/v1/payment_intents/pi_x?client_secret=x`
        get(url, { agent, headers }, (response) => {
          sockets.add(response.socket)
          response.resume().on("end", () => resolve(response.statusCode))
        }).on("error", reject)
      })
    assert.strictEqual(await read(), 404)
    const id = await idOf(keys, keys.publishableTest)
    assertOk(await server.request("DELETE", `/v1/api_keys/${id}`, { key: keys.secretTest }))
    assert.strictEqual(await read(), 401)
    assert.strictEqual(sockets.size, 1)
    agent.destroy()
  })

  it("idempotency.fingerprint: two merchants may use the same idempotency key", async () => {
    const [one, other] = [await server.merchant(), await server.merchant()]
    const secrets = await Promise.all(
      [one, other].map(async (keys) => {
        const path = `/v1/api_keys/${await idOf(keys, keys.secretTest)}/roll`
        return (await server.request("POST", path, { key: keys.secretTest, idempotencyKey: "shared" })).body.secret
      })
    )
    assert.isTrue(await works(secrets[0]))
    assert.isTrue(await works(secrets[1]))
    assert.notStrictEqual(secrets[0], secrets[1])
  })

  it("idempotency.reuse: a key that another request has used is refused, whichever of the two came first", async () => {
    const keys = await server.merchant()
    const path = `/v1/api_keys/${await idOf(keys, keys.publishableTest)}/roll`
    const post = (to: string, idempotencyKey: string, body: object = {}) =>
      server.request("POST", to, { key: keys.secretTest, idempotencyKey, body })
    assertOk(await post("/v1/customers", "customer-first"))
    assertError(await post(path, "customer-first"), 422, "idempotency_key_reuse")
    assertError(await post("/v1/api_keys/key_x/roll", "roll-first"), 404, "resource_missing", "id")
    assertOk(await post(path, "roll-first"))
    assertError(await post("/v1/customers", "roll-first"), 422, "idempotency_key_reuse")
    assertError(await post(path, "roll-first", { expires_in: 1 }), 422, "idempotency_key_reuse")
    assert.lengthOf(await listKeys(keys.secretTest), 3)
  })
})
