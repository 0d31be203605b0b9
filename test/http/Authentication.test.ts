/** Semantics keys.*, versions.*, row by row, through a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import { API_KEY_LOOKUP, type ApiKeyLookup, lookupIdOf } from "../../src/payments/merchants/ApiKeys.ts"
import * as Merchants from "../../src/payments/merchants/Merchants.ts"
import { MERCHANT } from "../../src/payments/merchants/Merchants.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import * as Authentication from "../../src/http/Authentication.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { assertEnvelope, assertError, assertOk } from "./Assertions.ts"
import { clockOf } from "../support/SettableClock.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { basic } from "../support/HttpExchange.ts"
import { type MemoryTill, type Reply, start, VERSION } from "../support/MemoryTill.ts"

/** Milliseconds by which the service's clock is ahead. */
let ahead = 0
let server: MemoryTill
beforeAll(async () => void (server = await start({ clock: clockOf(() => Date.now() + ahead) })))
afterAll(() => server.close())

const withAuthorization = (authorization: string) =>
  server.request("GET", "/v1/customers", { key: null, headers: { authorization } })
const encoded = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`

/** Changes the stored documents of a key. */
const changeKey = (key: string, change: Partial<ApiKeyLookup>) =>
  Effect.runPromise(
    server.accounts.run(
      INSTALLATION,
      Effect.gen(function* () {
        const transaction = yield* Transaction
        const { value } = (yield* transaction.get(API_KEY_LOOKUP, lookupIdOf(key)))!
        transaction.put(API_KEY_LOOKUP, { ...value, ...change })
      })
    )
  )

describe("authentication", () => {
  it("keys.missing: no key", async () => {
    const reply = await server.request("GET", "/v1/customers", { key: null })
    assertError(reply, 401, "authentication_failed")
    assert.strictEqual(reply.body.error.type, "authentication_error")
    assert.match(reply.body.error.message, /^You did not provide an API key\./)
    assert.strictEqual(reply.headers.get("www-authenticate"), 'Basic realm="payments"')
  })

  it("keys.invalid: anything that is no key, without repeating it", async () => {
    const { secretTest } = server.keys
    const wrong = [
      basic("sk_test_wrongwrongwrongwrongwrongwrong12"),
      basic(`${secretTest}x`),
      basic(secretTest.slice(0, -1)),
      basic(secretTest.toUpperCase()),
      basic(""),
      basic(lookupIdOf(secretTest)),
      basic("sk_test_".padEnd(10_000, "x")),
      encoded(` ${secretTest}:`),
      secretTest,
      "Basic",
      "Basic !!!",
      `Digest ${Buffer.from(secretTest).toString("base64")}`
    ]
    for (const authorization of wrong) {
      const reply = await withAuthorization(authorization)
      assertError(reply, 401, "authentication_failed")
      assert.strictEqual(reply.body.error.message, "Invalid API key provided.")
      assert.notInclude(reply.text, secretTest)
    }
  })

  it("keys.password: a key with ten thousand passwords evicts no other key from the cache of headers", async () => {
    const { accountBefore, authenticate } = await Effect.runPromise(
      Effect.provideService(Authentication.make, Accounts, server.accounts)
    )
    const other = await server.merchant()
    const run = (authorization: string) =>
      Effect.runPromise(authenticate(authorization, Authentication.credentialOf(authorization)))
    const known = (authorization: string) => accountBefore(Authentication.credentialOf(authorization))
    await run(basic(other.secretTest))
    const passwords = Array.from({ length: 10_001 }, (_, i) => encoded(`${server.keys.secretTest}:${i}`))
    for (const authorization of passwords) await run(authorization)
    assert.strictEqual(known(basic(other.secretTest)), `${other.merchantId}:test`)
    assert.deepStrictEqual(
      passwords.filter((authorization) => known(authorization) !== undefined),
      passwords.slice(-1)
    )
  })

  it("keys.bearer: a bearer token, key or not, is refused with the scheme to use", async () => {
    for (const token of [` ${server.keys.secretTest}`, " sk_test_wrong", " ", ""]) {
      for (const scheme of ["Bearer", "bearer", "BEARER"]) {
        const reply = await withAuthorization(`${scheme}${token}`)
        assertError(reply, 401, "authentication_failed")
        assert.strictEqual(
          reply.body.error.message,
          "Send the API key by HTTP Basic, as the user name with an empty password."
        )
        assert.strictEqual(reply.headers.get("www-authenticate"), 'Basic realm="payments"')
      }
    }
  })

  it("keys.invalid, keys.expired: revoked and expired keys end immediately", async () => {
    const keys = await server.merchant()
    const read = () => server.request("GET", "/v1/customers", { key: keys.secretTest })
    assertOk(await read())
    const now = Math.floor(Date.now() / 1000)
    await changeKey(keys.secretTest, { status: "rolling", expires_at: now + 3600 })
    assertOk(await read())
    ahead = 3_601_000
    assertError(await read(), 401, "api_key_expired")
    ahead = 0
    assertOk(await read())
    await changeKey(keys.secretTest, { status: "rolling", expires_at: now - 1 })
    const expired = await read()
    assertError(expired, 401, "api_key_expired")
    assert.strictEqual(expired.body.error.message, "This API key has expired.")
    await changeKey(keys.secretTest, { status: "revoked", expires_at: null })
    assertError(await read(), 401, "authentication_failed")
  })

  it("keys.password: a password is ignored, and the colon may be missing", async () => {
    const { secretTest } = server.keys
    for (const text of [`${secretTest}:password`, `${secretTest}::`, secretTest, `${secretTest}:${"x".repeat(4000)}`]) {
      assertOk(await withAuthorization(encoded(text)))
    }
    assertOk(await withAuthorization(encoded(`${secretTest}:`).replace("Basic", "bASIC")))
  })

  it("keys.first: the storage contains no key", async () => {
    const keys = await server.merchant()
    const entry = await Effect.runPromise(server.accounts.read(INSTALLATION, lookupIdOf(keys.secretTest)))
    assert.isTrue(entry !== undefined && !entry.deleted)
    assert.notInclude(JSON.stringify(entry), keys.secretTest.slice(8))
  })

  it("keys.environments: merchants and environments do not see one another", async () => {
    const other = await server.merchant()
    const { body } = await server.request("POST", "/v1/customers", { body: { name: "A" } })
    for (const key of [server.keys.secretLive, other.secretTest, other.secretLive]) {
      assertError(await server.request("GET", `/v1/customers/${body.id}`, { key }), 404, "resource_missing", "id")
      assertError(
        await server.request("POST", `/v1/customers/${body.id}`, { key, body: { name: "B" } }),
        404,
        "resource_missing",
        "id"
      )
      assertError(await server.request("DELETE", `/v1/customers/${body.id}`, { key }), 404, "resource_missing", "id")
      assert.deepStrictEqual((await server.request("GET", "/v1/customers", { key })).body.data, [])
    }
    const live = await server.request("POST", "/v1/customers", { key: server.keys.secretLive })
    assert.isTrue(live.body.livemode)
    assert.isFalse(body.livemode)
    assert.strictEqual(live.body.merchant_id, body.merchant_id)
  })

  it("keys.live_processor: live mode without a processor", async () => {
    const key = server.keys.secretLive
    const card = { number: "4242424242424242", exp_month: 12, exp_year: 2040 }
    const body = { amount: 1, currency: "usd", confirm: true, payment_method_data: { type: "card", card } }
    assertError(await server.request("POST", "/v1/payment_intents", { key, body }), 400, "processor_not_configured")
    assertError(
      await server.request("POST", "/v1/payment_intents", {
        key,
        body: { amount: 1, currency: "usd", payment_method: "pm_card_visa" }
      }),
      404,
      "resource_missing",
      "payment_method"
    )
  })
})

describe("publishable keys", () => {
  const SEEN = [
    "amount",
    "canceled_at",
    "cancellation_reason",
    "capture_method",
    "client_secret",
    "confirmation_method",
    "created",
    "currency",
    "id",
    "livemode",
    "next_action",
    "object",
    "payment_method",
    "status"
  ]
  const fields = ({ body }: Reply) => Object.keys(body).toSorted()
  const create = async (parameters: object = {}) =>
    (await server.request("POST", "/v1/payment_intents", { body: { amount: 1, currency: "usd", ...parameters } })).body
  const asPayer = (keys: Keys = server.keys) => ({ key: keys.publishableTest })

  it("keys.publishable, keys.client_secret: open nothing without the client secret", async () => {
    const { id } = await create()
    const closed = [
      ["GET", "/v1/customers"],
      ["POST", "/v1/customers"],
      ["GET", "/v1/payment_intents"],
      ["POST", "/v1/payment_intents"],
      ["GET", `/v1/payment_intents/${id}`],
      ["POST", `/v1/payment_intents/${id}`],
      ["POST", `/v1/payment_intents/${id}/confirm`],
      ["POST", `/v1/payment_intents/${id}/cancel`],
      ["POST", `/v1/payment_intents/${id}/capture`],
      ["GET", "/v1/events"],
      ["DELETE", "/v1/customers/cus_x"]
    ] as const
    for (const [method, path] of closed) {
      const reply = await server.request(method, path, asPayer())
      assertError(reply, 403, "secret_key_required")
      assert.strictEqual(reply.body.error.type, "authentication_error")
    }
    for (const body of [
      { client_secret: null, payment_method: "pm_card_visa" },
      { payment_method: 1, unknown: 2 }
    ]) {
      const typo = await server.request("POST", `/v1/payment_intents/${id}/confirm`, { ...asPayer(), body })
      assertError(typo, 403, "secret_key_required")
    }
  })

  // Semantics keys.publishable, keys.client_secret, keys.publishable.payment_intents.
  it("see the projection with the right client secret, and nothing with a wrong one", async () => {
    const { client_secret, id } = await create()
    const path = `/v1/payment_intents/${id}`
    const seen = await server.request("GET", `${path}?client_secret=${client_secret}`, asPayer())
    assertOk(seen)
    assert.deepStrictEqual(fields(seen), SEEN)
    const wrong = await server.request("GET", `${path}?client_secret=${client_secret}x`, asPayer())
    assertError(wrong, 404, "resource_missing", "id")
    const other = await server.merchant()
    const foreign = await server.request("GET", `${path}?client_secret=${client_secret}`, asPayer(other))
    assertError(foreign, 404, "resource_missing", "id")
  })

  it("keys.client_secret: a client secret that comes with a secret key is checked, too", async () => {
    const { client_secret, id } = await create()
    assertOk(await server.request("GET", `/v1/payment_intents/${id}?client_secret=${client_secret}`))
    assertError(await server.request("GET", `/v1/payment_intents/${id}?client_secret=x`), 404, "resource_missing", "id")
    const body = { client_secret: "x", payment_method: "pm_card_visa" }
    assertError(
      await server.request("POST", `/v1/payment_intents/${id}/confirm`, { body }),
      404,
      "resource_missing",
      "id"
    )
  })

  it("keys.publishable, payment_intents.manual_confirmation: confirm, unless the server does", async () => {
    const confirm = ({ client_secret, id }: { client_secret: string; id: string }, payment_method: string) =>
      server.request("POST", `/v1/payment_intents/${id}/confirm`, {
        ...asPayer(),
        body: { client_secret, payment_method }
      })
    const confirmed = await confirm(await create(), "pm_card_visa")
    assertOk(confirmed)
    assert.deepStrictEqual(fields(confirmed), SEEN)
    assert.strictEqual(confirmed.body.status, "succeeded")
    const manual = await create({ confirmation_method: "manual" })
    assertError(await confirm(manual, "pm_card_visa"), 403, "secret_key_required")
  })

  // Semantics keys.publishable.payment_intents, idempotency.scope.
  it("see the projection in errors and replays, and replay no request of a secret key", async () => {
    const { client_secret, id } = await create()
    const confirm = (key: string) =>
      server.request("POST", `/v1/payment_intents/${id}/confirm`, {
        key,
        idempotencyKey: `confirm-${id}`,
        body: { client_secret, payment_method: "pm_card_declined" }
      })
    const whole = await confirm(server.keys.secretTest)
    assertError(whole, 402, "card_declined")
    assert.property(whole.body.error.payment_intent, "charges")
    const projected = await confirm(server.keys.publishableTest)
    assert.isFalse(projected.headers.has("idempotent-replayed"))
    const replayed = await confirm(server.keys.publishableTest)
    assert.strictEqual(replayed.headers.get("idempotent-replayed"), "true")
    for (const reply of [projected, replayed]) {
      assertError(reply, 402, "card_declined")
      assert.deepStrictEqual(
        Object.keys(reply.body.error.payment_intent).toSorted(),
        [...SEEN, "last_payment_error"].toSorted()
      )
    }
    assert.strictEqual((await confirm(server.keys.secretTest)).text, whole.text)
  })
})

describe("versions", () => {
  const withVersion = (version: string) =>
    server.request("GET", "/v1/customers", { headers: { "x-api-version": version } })

  it("versions.unknown: an unknown version", async () => {
    for (const version of ["2026-03-10", "v1", "2026-03-09, 2026-03-09", "2026", ""]) {
      const reply = await withVersion(version)
      assertError(reply, 400, "invalid_api_version", "X-API-Version")
      assert.strictEqual(reply.body.error.message, `Unknown API version '${version}'.`)
      assert.strictEqual(reply.headers.get("x-api-version"), VERSION)
    }
  })

  it("versions.supported: the supported version, spaces around it or not", async () => {
    assertOk(await withVersion(VERSION))
    assertOk(await withVersion(`  ${VERSION} `))
  })

  it("versions.default: the account's default", async () => {
    const created = await Effect.runPromise(
      server.accounts.run(INSTALLATION, Merchants.createWithKeys("A merchant of the past"))
    )
    const key = Redacted.value(created.generated.secretTest!)
    const read = () => server.request("GET", "/v1/customers", { key })
    assert.strictEqual((await read()).headers.get("x-api-version"), VERSION)
    // Stands for a second version, as only one exists.
    const past = "2025-01-01" as typeof VERSION
    await Effect.runPromise(
      server.accounts.run(
        INSTALLATION,
        Effect.gen(function* () {
          const transaction = yield* Transaction
          const { value } = (yield* transaction.get(MERCHANT, created.merchant.id))!
          transaction.put(MERCHANT, { ...value, api_version: past as never })
        })
      )
    )
    assert.strictEqual((await read()).headers.get("x-api-version"), past)
    const override = await server.request("POST", "/v1/customers", { key, headers: { "x-api-version": VERSION } })
    assert.strictEqual(override.headers.get("x-api-version"), VERSION)
    const { data } = (await server.request("GET", "/v1/events", { key })).body
    assert.strictEqual(data[0].api_version, past)
  })
})

describe("test helpers", () => {
  it("test_helpers.test_mode: exist in test mode only, for secret keys only", async () => {
    const path = "/v1/test_helpers/payment_intents/pi_x/authenticate"
    const body = { outcome: "success" }
    // Semantics requests.order: the key's permissions are checked before the body.
    for (const sent of [body, { outcome: "x" }, "{"]) {
      const live = await server.request("POST", path, { key: server.keys.secretLive, body: sent })
      assertError(live, 400, "test_mode_only")
      assert.strictEqual(live.body.error.message, "This operation is only available in test mode.")
      assertEnvelope(live)
    }
    assertError(
      await server.request("POST", path, { key: server.keys.publishableTest, body }),
      403,
      "secret_key_required"
    )
    assertError(await server.request("POST", path, { body }), 404, "resource_missing", "id")
    assertError(await server.request("POST", path, { body: { outcome: "x" } }), 400, "parameter_invalid", "outcome")
    assertError(await server.request("POST", path, {}), 400, "parameter_missing", "outcome")
  })
})
