/**
 * Semantics webhooks.endpoints, webhooks.secret, webhooks.enabled_events, webhooks.url, webhooks.disabled: webhook
 * endpoints as objects, row by row, through a real socket.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { EVENT_TYPES } from "../../src/domain/Event.ts"
import { CreatedWebhookEndpoint, WebhookEndpoint } from "../../src/domain/WebhookEndpoint.ts"
import { parseAllowedHosts } from "../../src/domain/WebhookHosts.ts"
import { WEBHOOK_ENDPOINT } from "../../src/payments/shared/Documents.ts"
import * as WebhookEndpoints from "../../src/payments/webhooks/WebhookEndpoints.ts"
import { MemoryAccount } from "../support/MemoryAccount.ts"
import { ANY } from "../webhooks/Sending.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, type RequestOptions, start, VERSION } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const PATH = "/v1/webhook_endpoints"
const URL = "https://merchant.example.test/hooks"
const create = (body: object = {}, options: RequestOptions = {}) =>
  server.request("POST", PATH, { body: { url: URL, enabled_events: ["*"], ...body }, ...options })
const update = (id: string, body?: unknown, options: RequestOptions = {}) =>
  server.request("POST", `${PATH}/${id}`, { body, ...options })
const get = (id: string) => server.request("GET", `${PATH}/${id}`)
const live = () => ({ key: server.keys.secretLive })

describe("webhook endpoints", () => {
  it("webhooks.endpoints, webhooks.object: create, retrieve, list", async () => {
    const { secretTest: key, merchantId } = await server.merchant()
    const created = await create(
      { enabled_events: ["charge.refunded"], description: "D", metadata: { a: "b" } },
      { key }
    )
    assertOk(created)
    Schema.decodeUnknownSync(CreatedWebhookEndpoint)(created.body, { onExcessProperty: "error" })
    const { secret, ...endpoint } = created.body
    const { created: at, id, ...rest } = endpoint
    assert.match(id, /^we_[0-9A-Za-z]{24}$/)
    assert.isTrue(Number.isInteger(at))
    assert.match(secret, /^whsec_[0-9A-Za-z]{32}$/)
    assert.deepStrictEqual(rest, {
      object: "webhook_endpoint",
      url: URL,
      enabled_events: ["charge.refunded"],
      status: "enabled",
      description: "D",
      metadata: { a: "b" },
      livemode: false,
      merchant_id: merchantId,
      api_version: VERSION
    })
    const retrieved = await server.request("GET", `${PATH}/${id}`, { key })
    assertOk(retrieved)
    assert.deepStrictEqual(retrieved.body, endpoint)
    Schema.decodeUnknownSync(WebhookEndpoint)(retrieved.body, { onExcessProperty: "error" })
    const second = (await create({ description: "" }, { key })).body
    assert.isNull(second.description)
    assert.notStrictEqual(second.secret, secret)
    const list = await server.request("GET", `${PATH}?limit=1`, { key })
    assert.deepInclude(list.body, { object: "list", url: PATH, has_more: true, next_cursor: second.id })
    const next = await server.request("GET", `${PATH}?starting_after=${second.id}`, { key })
    assert.deepStrictEqual(next.body.data, [endpoint])
  })

  it("webhooks.endpoints, events.none: update, without any event", async () => {
    const { secret: _, ...endpoint } = (await create({ description: "D", metadata: { a: "b" } })).body
    const changes = {
      url: "http://localhost:3000/hooks?x=1",
      enabled_events: ["refund.created", "refund.failed"],
      description: "E",
      status: "disabled"
    }
    const updated = await update(endpoint.id, { ...changes, metadata: { a: "", c: "d" } })
    assertOk(updated)
    assert.deepStrictEqual(updated.body, { ...endpoint, ...changes, metadata: { c: "d" } })
    assert.strictEqual((await get(endpoint.id)).text, updated.text)
    assert.strictEqual((await update(endpoint.id, {})).text, updated.text)
    assert.isNull((await update(endpoint.id, { description: null })).body.description)
    assert.strictEqual((await update(endpoint.id, { status: "enabled" })).body.status, "enabled")
    for (const field of ["url", "enabled_events", "status"]) {
      assertError(await update(endpoint.id, { [field]: null }), 400, "parameter_invalid", field)
    }
    assertError(await update(endpoint.id, { status: "deleted" }), 400, "parameter_invalid", "status")
    assertError(await update(endpoint.id, { secret: "whsec_x" }), 400, "parameter_unknown", "secret")
    assert.deepStrictEqual((await server.request("GET", "/v1/events")).body.data, [])
  })

  it("webhooks.endpoints: deletion leaves a stub once, and then nothing", async () => {
    const { id } = (await create()).body
    const deleted = await server.request("DELETE", `${PATH}/${id}`)
    assertOk(deleted)
    assert.deepStrictEqual(deleted.body, { id, object: "webhook_endpoint", deleted: true, livemode: false })
    assertError(await get(id), 404, "resource_missing", "id")
    assertError(await update(id, {}), 404, "resource_missing", "id")
    const again = await server.request("DELETE", `${PATH}/${id}`)
    assertError(again, 404, "resource_missing", "id")
    assert.strictEqual(again.body.error.message, `No WebhookEndpoint found with ID '${id}'.`)
    assert.notInclude((await server.request("GET", `${PATH}?limit=100`)).text, id)
    assertOk(await server.request("GET", `${PATH}?starting_after=${id}`))
  })

  it("webhooks.secret: the secret is in the answer to the creation and its repetitions, and nowhere else", async () => {
    const { merchantId, secretTest: key } = await server.merchant()
    const options = { key, idempotencyKey: "secret" }
    const created = await create({}, options)
    const { id, secret } = created.body
    const repeated = await create({}, options)
    assert.strictEqual(repeated.text, created.text)
    assert.strictEqual(repeated.headers.get("idempotent-replayed"), "true")
    for (const reply of [
      await server.request("GET", `${PATH}/${id}`, { key }),
      await server.request("GET", PATH, { key }),
      await update(id, { description: "x" }, { key }),
      await server.request("DELETE", `${PATH}/${id}`, { key })
    ]) {
      assertOk(reply)
      assert.notInclude(reply.text, "whsec_")
      assert.notInclude(reply.text, "ecret")
    }
    // A repetition still contains it after the deletion (semantics idempotency.replay), although the journal never did.
    assert.strictEqual((await create({}, options)).text, created.text)
    const journal = await server.journal(`${merchantId}:test`)
    assert.include(journal, id)
    assert.notInclude(journal, secret)
    assert.notInclude(journal, "whsec_")
  })

  it("webhooks.secret: the secret is stored encrypted", async () => {
    const account = new MemoryAccount()
    const { secret, value: webhookEndpoint } = await Effect.runPromise(
      account.run(WebhookEndpoints.create({ url: URL, enabled_events: ["*"] }, VERSION))
    )
    const document = account.all(WEBHOOK_ENDPOINT)[0]!
    assert.strictEqual(document.id, webhookEndpoint.id)
    const opened = WebhookEndpoints.secretsOf(account.config, account.account, document, account.now)
    assert.deepStrictEqual(opened.map(Redacted.value), [Redacted.value(secret)])
    assert.notInclude(account.text, Redacted.value(secret))
    assert.notInclude(String(secret), Redacted.value(secret))
    await Effect.runPromise(account.run(WebhookEndpoints.update(webhookEndpoint.id, { status: "disabled" })))
    const updated = account.all(WEBHOOK_ENDPOINT)[0]!
    assert.deepStrictEqual(updated.hidden, document.hidden)
    assert.throws(() => WebhookEndpoints.secretsOf(account.config, "mer_other:test", document, account.now))
  })

  it("webhooks.enabled_events: enabled_events", async () => {
    for (const [sent, kept] of [
      [["*"], ["*"]],
      [["*", "*"], ["*"]],
      [EVENT_TYPES, EVENT_TYPES],
      [
        ["charge.failed", "refund.created", "charge.failed"],
        ["charge.failed", "refund.created"]
      ]
    ] as const) {
      const reply = await create({ enabled_events: sent })
      assertOk(reply)
      assert.deepStrictEqual(reply.body.enabled_events, [...kept])
      assert.deepStrictEqual((await update(reply.body.id, { enabled_events: sent })).body.enabled_events, [...kept])
    }
    const { id } = (await create()).body
    for (const [sent, param] of [
      [[], "enabled_events"],
      ["*", "enabled_events"],
      [{}, "enabled_events"],
      [["charge.failed", "*"], "enabled_events"],
      [["charge"], "enabled_events[0]"],
      [["charge.failed", "charge.*"], "enabled_events[1]"],
      [["charge.failed", 1], "enabled_events[1]"],
      [["charge.failed", null], "enabled_events[1]"],
      [["webhook_endpoint.created"], "enabled_events[0]"]
    ] as const) {
      assertError(await create({ enabled_events: sent }), 400, "parameter_invalid", param)
      assertError(await update(id, { enabled_events: sent }), 400, "parameter_invalid", param)
    }
    const missing = await server.request("POST", PATH, { body: { url: URL } })
    assertError(missing, 400, "parameter_missing", "enabled_events")
  })

  it("webhooks.url, parameters.urls: in test mode any http or https URL", async () => {
    for (const url of [
      "http://localhost:3000",
      "https://10.0.0.1/x",
      "http://[::1]/",
      "https://a.example.test/b?c#d"
    ]) {
      const reply = await create({ url })
      assertOk(reply)
      assert.strictEqual(reply.body.url, url)
    }
    for (const url of ["", "example.test", "/hooks", "ftp://example.test", "javascript:alert(1)", 1, "https://"]) {
      assertError(await create({ url }), 400, "parameter_invalid", "url")
    }
    for (const credentials of ["user", "user:password", ":password"]) {
      assertError(await create({ url: `https://${credentials}@example.test/` }), 400, "parameter_invalid", "url")
    }
    assertError(await create({ url: `https://example.test/${"x".repeat(5000)}` }), 400, "parameter_invalid", "url")
    assertError(await create({ url: null }), 400, "parameter_missing", "url")
  })

  it("webhooks.url: in live mode https to a name or to a public address, at creation and at update", async () => {
    const { body } = await create({ url: "https://8.8.8.8/hooks" }, live())
    assert.deepInclude(body, { livemode: true, url: "https://8.8.8.8/hooks" })
    // Names are resolved only at an attempt.
    assertOk(await update(body.id, { url: "https://localhost/hooks" }, live()))
    for (const host of [
      "127.0.0.1",
      "127.0.0.1.",
      "2130706433",
      "0x7f000001",
      "0177.0.0.1",
      "10.0.0.1",
      "172.16.0.1",
      "192.168.1.1",
      "169.254.169.254",
      "100.64.0.1",
      "100.100.100.200",
      "0.0.0.0",
      "[::1]",
      "[fe80::1]",
      "[fd00:ec2::254]",
      "[::ffff:127.0.0.1]",
      "[::ffff:a9fe:a9fe]",
      "[64:ff9b::10.0.0.1]"
    ]) {
      const url = `https://${host}:8443/hooks`
      assertError(await create({ url }, live()), 400, "parameter_invalid", "url")
      assertError(await update(body.id, { url }, live()), 400, "parameter_invalid", "url")
    }
    assertError(await create({ url: "http://merchant.example.test" }, live()), 400, "parameter_invalid", "url")
    assertError(await get(body.id), 404, "resource_missing", "id")
  })

  it("webhooks.url: private addresses if the installation allows them, still by https", async () => {
    const account = new MemoryAccount("mer_000000000000000000000000:live", {
      webhookHosts: { test: ANY, live: { httpsOnly: true, besidePublic: "any" } }
    })
    const endpoint = (url: string) => account.run(WebhookEndpoints.create({ url, enabled_events: ["*"] }, VERSION))
    await Effect.runPromise(endpoint("https://10.0.0.1/hooks"))
    const refused = await Effect.runPromise(Effect.flip(endpoint("http://10.0.0.1/hooks")))
    assert.deepInclude({ ...refused }, { param: "url" })
  })

  it("webhooks.test_hosts: test mode on a shared installation accepts public addresses and allowed ones", async () => {
    const test = { httpsOnly: false, besidePublic: parseAllowedHosts("10.0.0.0/8, hooks.internal")! }
    const account = new MemoryAccount("mer_000000000000000000000000:test", { webhookHosts: { test, live: ANY } })
    const endpoint = (url: string) => account.run(WebhookEndpoints.create({ url, enabled_events: ["*"] }, VERSION))
    for (const url of ["http://10.0.0.1/hooks", "http://8.8.8.8", "https://hooks.internal", "http://localhost:3000"]) {
      await Effect.runPromise(endpoint(url))
    }
    const { id } = account.all(WEBHOOK_ENDPOINT)[0]!
    for (const url of ["http://127.0.0.1:3000", "http://2130706433", "https://[::1]/", "http://192.168.0.1"]) {
      const update = account.run(WebhookEndpoints.update(id, { url }))
      for (const refused of [Effect.asVoid(endpoint(url)), Effect.asVoid(update)]) {
        const error = await Effect.runPromise(Effect.flip(refused))
        assert.deepInclude({ ...error }, { _tag: "ParameterInvalid", param: "url" })
      }
    }
  })
})
