/** The secrets of webhook endpoints, and their rolls (semantics webhooks.secret, time.wall), through a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { CreatedWebhookEndpoint, type WebhookEndpoint } from "../../src/domain/WebhookEndpoint.ts"
import type { Document } from "../../src/engine/log/Document.ts"
import type { WebhookEndpointHidden } from "../../src/payments/shared/Documents.ts"
import { secretsOf } from "../../src/payments/webhooks/WebhookEndpoints.ts"
import { MemoryAccount } from "../support/MemoryAccount.ts"
import { assertError, assertOk } from "./Assertions.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const PATH = "/v1/webhook_endpoints"
const HOUR = 3_600_000

const create = async (keys: Keys) => {
  const body = { url: "https://merchant.example.test/hooks", enabled_events: ["*"], description: "D" }
  return (await server.request("POST", PATH, { key: keys.secretTest, body })).body
}
const roll = (keys: Keys, id: string, body: unknown, idempotencyKey?: string) =>
  server.request("POST", `${PATH}/${id}/roll_secret`, {
    key: keys.secretTest,
    body,
    ...(idempotencyKey !== undefined && { idempotencyKey })
  })

/**
 * Returns the secrets that sign at a time of the wall clock. The server's sealing key is that of the account in memory.
 */
const signing = async (keys: Keys, id: string, nowMillis: number): Promise<ReadonlyArray<string>> => {
  const account = `${keys.merchantId}:test`
  const document = await Effect.runPromise(server.accounts.read(account, id))
  const { config } = new MemoryAccount()
  const endpoint = document as Document<WebhookEndpoint, WebhookEndpointHidden>
  return secretsOf(config, account, endpoint, nowMillis).map(Redacted.value)
}

describe("rolling a secret", () => {
  it("returns the endpoint and the new secret, which signs alone unless the old one gets a grace", async () => {
    const keys = await server.merchant()
    const { secret: old, ...endpoint } = await create(keys)
    for (const body of [{}, { expires_in: 0 }, { expires_in: null }, undefined]) {
      const reply = await roll(keys, endpoint.id, body)
      assertOk(reply)
      Schema.decodeUnknownSync(CreatedWebhookEndpoint)(reply.body, { onExcessProperty: "error" })
      const { secret, ...rest } = reply.body
      assert.deepStrictEqual(rest, endpoint)
      assert.notStrictEqual(secret, old)
      assert.deepStrictEqual(await signing(keys, endpoint.id, 0), [secret])
    }
    const retrieved = await server.request("GET", `${PATH}/${endpoint.id}`, { key: keys.secretTest })
    assert.deepStrictEqual(retrieved.body, endpoint)
    assert.deepStrictEqual((await server.request("GET", "/v1/events", { key: keys.secretTest })).body.data, [])
  })

  it("time.wall: the old secret signs for its grace by the wall clock, at any time of the test clock", async () => {
    const keys = await server.merchant()
    const { id, secret: old } = await create(keys)
    const clock = { key: keys.secretTest, body: { seconds: 30 * 86_400 } }
    assertOk(await server.request("POST", "/v1/test_helpers/clock/advance", clock))
    const before = Date.now()
    const { secret } = (await roll(keys, id, { expires_in: 3600 })).body
    const after = Date.now()
    assertOk(await server.request("POST", "/v1/test_helpers/clock/advance", clock))
    assert.deepStrictEqual(await signing(keys, id, before + HOUR - 1), [secret, old])
    assert.deepStrictEqual(await signing(keys, id, after + HOUR), [secret])
    // Other changes do not affect the secrets.
    const body = { status: "disabled", description: "E" }
    assertOk(await server.request("POST", `${PATH}/${id}`, { key: keys.secretTest, body }))
    assert.deepStrictEqual(await signing(keys, id, before + HOUR - 1), [secret, old])
  })

  it("webhooks.secret: rolling again within a grace ends the older secret", async () => {
    const keys = await server.merchant()
    const { id, secret: first } = await create(keys)
    const { secret: second } = (await roll(keys, id, { expires_in: 86_400 })).body
    assert.deepStrictEqual(await signing(keys, id, Date.now()), [second, first])
    const { secret: third } = (await roll(keys, id, { expires_in: 3600 })).body
    assert.deepStrictEqual(await signing(keys, id, Date.now()), [third, second])
    const { secret: fourth } = (await roll(keys, id, {})).body
    assert.deepStrictEqual(await signing(keys, id, Date.now()), [fourth])
    assert.strictEqual(new Set([first, second, third, fourth]).size, 4)
  })

  it("webhooks.secret: the longest grace is a day", async () => {
    const keys = await server.merchant()
    const { id, secret: old } = await create(keys)
    const before = Date.now()
    const { secret } = (await roll(keys, id, { expires_in: 86_400 })).body
    const after = Date.now()
    assert.deepStrictEqual(await signing(keys, id, before + 24 * HOUR - 1), [secret, old])
    assert.deepStrictEqual(await signing(keys, id, after + 24 * HOUR), [secret])
  })

  it("webhooks.secret: works for a disabled endpoint, which stays disabled", async () => {
    const keys = await server.merchant()
    const { id, secret: old } = await create(keys)
    const update = (status: string) =>
      server.request("POST", `${PATH}/${id}`, { key: keys.secretTest, body: { status } })
    assertOk(await update("disabled"))
    const rolled = await roll(keys, id, { expires_in: 3600 })
    assertOk(rolled)
    assert.strictEqual(rolled.body.status, "disabled")
    assertOk(await update("enabled"))
    assert.deepStrictEqual(await signing(keys, id, Date.now()), [rolled.body.secret, old])
  })

  it("webhooks.secret: a replay after a later roll shows its own secret, and rolls nothing", async () => {
    const keys = await server.merchant()
    const { id } = await create(keys)
    const first = await roll(keys, id, { expires_in: 60 }, "first")
    const second = await roll(keys, id, { expires_in: 60 }, "second")
    const repeated = await roll(keys, id, { expires_in: 60 }, "first")
    assert.strictEqual(repeated.text, first.text)
    assert.deepStrictEqual(await signing(keys, id, Date.now()), [second.body.secret, first.body.secret])
    assertError(await roll(keys, id, { expires_in: 61 }, "first"), 422, "idempotency_key_reuse")
  })

  // Semantics webhooks.secret, idempotency.replay.
  it("the secret is in the answer and its repetitions, and nowhere else", async () => {
    const keys = await server.merchant()
    const { id } = await create(keys)
    const rolled = await roll(keys, id, { expires_in: 60 }, "roll")
    const repeated = await roll(keys, id, { expires_in: 60 }, "roll")
    assert.strictEqual(repeated.text, rolled.text)
    assert.strictEqual(repeated.headers.get("idempotent-replayed"), "true")
    assert.strictEqual((await signing(keys, id, Date.now()))[0], rolled.body.secret)
    const journal = await server.journal(`${keys.merchantId}:test`)
    assert.include(journal, id)
    assert.notInclude(journal, "whsec_")
    assert.notInclude(journal, rolled.body.secret.slice("whsec_".length))
  })

  it("errors.table: refuses invalid requests", async () => {
    const [keys, stranger] = [await server.merchant(), await server.merchant()]
    const { id, secret } = await create(keys)
    for (const expires_in of [-1, 86_401, 1.5, "60"]) {
      assertError(await roll(keys, id, { expires_in }), 400, "parameter_invalid", "expires_in")
    }
    assertError(await roll(keys, id, { grace: 1 }), 400, "parameter_unknown", "grace")
    assertError(await roll(stranger, id, {}), 404, "resource_missing", "id")
    const of = (key: string | null) => server.request("POST", `${PATH}/${id}/roll_secret`, { key, body: {} })
    assertError(await of(keys.publishableTest), 403, "secret_key_required")
    assertError(await of(keys.secretLive), 404, "resource_missing", "id")
    assertError(await of(null), 401, "authentication_failed")
    assertError(await roll(keys, "we_000000000000000000000000", {}), 404, "resource_missing", "id")
    assert.deepStrictEqual(await signing(keys, id, 0), [secret])
    assertOk(await roll(keys, id, { expires_in: 86_400 }))
    assertOk(await server.request("DELETE", `${PATH}/${id}`, { key: keys.secretTest }))
    assertError(await roll(keys, id, {}), 404, "resource_missing", "id")
  })
})
