/** Rate limits on the wire (semantics limits.rate, requests.order), on a clock that the tests move. */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { networksOf } from "../../src/domain/Networks.ts"
import { ACCOUNT_LIMIT, ADDRESS_LIMIT, API_KEYS_LIMIT } from "../../src/http/RateLimits.ts"
import { assertError, assertOk } from "./Assertions.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { clockOf } from "../support/SettableClock.ts"
import { type MemoryTill, type Reply, start } from "../support/MemoryTill.ts"

const MINUTE = 60_000
/** 30 seconds after the start of a minute. */
let now = Math.floor(Date.now() / MINUTE) * MINUTE + 30_000

let server: MemoryTill
let keys: Keys
beforeAll(async () => void (server = await start({ http: { rateLimit: true }, clock: clockOf(() => now) })))
beforeEach(async () => {
  now = Math.floor(now / MINUTE) * MINUTE + MINUTE + 30_000
  keys = await server.merchant()
})
afterAll(() => server.close())

const get = (path: string, key: string | null = keys.secretTest, headers: Record<string, string> = {}) =>
  server.request("GET", path, { key, headers })

const assertStanding = ({ headers }: Reply, limit: number, remaining: number): void => {
  assert.strictEqual(headers.get("x-ratelimit-limit"), String(limit))
  assert.strictEqual(headers.get("x-ratelimit-remaining"), String(remaining))
}

const assertLimited = (reply: Reply, limit: number, retryAfterSeconds: number): void => {
  assertError(reply, 429, "rate_limit_exceeded")
  assert.strictEqual(reply.body.error.type, "rate_limit_error")
  assert.strictEqual(
    reply.body.error.message,
    "Too many requests. Please retry after the period specified in the Retry-After header."
  )
  assert.strictEqual(reply.headers.get("retry-after"), String(retryAfterSeconds))
  assertStanding(reply, limit, 0)
}

/** Sends requests in batches until the merchant's limit is used up. */
const exhaust = async (key: string): Promise<void> => {
  let left = ACCOUNT_LIMIT
  const sender = async () => {
    while (left-- > 0) assertOk(await get("/v1/customers?limit=1", key))
  }
  await Promise.all(Array.from({ length: 20 }, sender))
}

describe("rate limits", () => {
  it("limits.rate: every answer reports the merchant's limit, with any outcome of the request", async () => {
    const customer = await get("/v1/customers")
    assertOk(customer)
    assertStanding(customer, ACCOUNT_LIMIT, ACCOUNT_LIMIT - 1)
    assertStanding(await get("/v1/nothing"), ACCOUNT_LIMIT, ACCOUNT_LIMIT - 2)
    assertStanding(
      await get("/v1/customers", keys.secretTest, { "x-api-version": "1" }),
      ACCOUNT_LIMIT,
      ACCOUNT_LIMIT - 3
    )
    const created = await server.request("POST", "/v1/customers", { key: keys.secretTest, idempotencyKey: "once" })
    assertStanding(created, ACCOUNT_LIMIT, ACCOUNT_LIMIT - 4)
    assertStanding(await get("/v1/customers", keys.publishableTest), ACCOUNT_LIMIT, ACCOUNT_LIMIT - 1)
  })

  it("limits.rate: a merchant's environment has 1500 requests a minute, and another one its own", async () => {
    await exhaust(keys.secretTest)
    assertLimited(await get("/v1/customers"), ACCOUNT_LIMIT, 30)
    assertStanding(await get("/v1/customers", keys.secretLive), ACCOUNT_LIMIT, ACCOUNT_LIMIT - 1)
    // Semantics requests.order: step 3 comes before the limit, step 5 after it.
    const wrongVersion = await get("/v1/customers", keys.secretTest, { "x-api-version": "1" })
    assertError(wrongVersion, 400, "invalid_api_version", "X-API-Version")
    assertLimited(await get("/v1/nothing"), ACCOUNT_LIMIT, 30)
    now += 29_001
    assertLimited(await get("/v1/customers"), ACCOUNT_LIMIT, 1)
    now += 999
    assertOk(await get("/v1/customers"))
  })

  it("limits.rate: requests with publishable keys and with secret keys count apart", async () => {
    let left = ACCOUNT_LIMIT
    const sender = async () => {
      while (left-- > 0) assertError(await get("/v1/customers", keys.publishableTest), 403, "secret_key_required")
    }
    await Promise.all(Array.from({ length: 20 }, sender))
    assertLimited(await get("/v1/customers", keys.publishableTest), ACCOUNT_LIMIT, 30)
    assertStanding(await get("/v1/customers"), ACCOUNT_LIMIT, ACCOUNT_LIMIT - 1)
    assertStanding(await get("/v1/customers", keys.publishableLive), ACCOUNT_LIMIT, ACCOUNT_LIMIT - 1)
    for (let i = 1; i <= API_KEYS_LIMIT; i++) {
      assertStanding(await get("/v1/api_keys", keys.publishableTest), API_KEYS_LIMIT, API_KEYS_LIMIT - i)
    }
    assertLimited(await get("/v1/api_keys", keys.publishableTest), API_KEYS_LIMIT, 30)
    assertStanding(await get("/v1/api_keys"), API_KEYS_LIMIT, API_KEYS_LIMIT - 1)
    await exhaust(keys.secretLive)
    assertLimited(await get("/v1/customers", keys.secretLive), ACCOUNT_LIMIT, 30)
    assertStanding(await get("/v1/customers", keys.publishableLive), ACCOUNT_LIMIT, ACCOUNT_LIMIT - 2)
  })

  it("limits.rate, idempotency.released: a refused request leaves its idempotency key free", async () => {
    await exhaust(keys.secretTest)
    const create = (name: string) =>
      server.request("POST", "/v1/customers", { key: keys.secretTest, idempotencyKey: "refused", body: { name } })
    assertLimited(await create("A"), ACCOUNT_LIMIT, 30)
    now += MINUTE
    const created = await create("B")
    assertOk(created)
    assert.strictEqual(created.body.name, "B")
    assert.isFalse(created.headers.has("idempotent-replayed"))
  })

  it("limits.rate: API keys have 10 requests a minute of their own", async () => {
    for (let i = 1; i <= API_KEYS_LIMIT; i++) {
      assertStanding(
        await get(i % 2 === 0 ? "/v1/api_keys" : "/v1/api_keys/key_x?a=b"),
        API_KEYS_LIMIT,
        API_KEYS_LIMIT - i
      )
    }
    assertLimited(await get("/v1/api_keys"), API_KEYS_LIMIT, 30)
    assertStanding(await get("/v1/customers"), ACCOUNT_LIMIT, ACCOUNT_LIMIT - 1)
  })

  it("limits.rate: an address has 100 unauthenticated requests a minute; valid keys are still accepted", async () => {
    for (let i = 1; i <= ADDRESS_LIMIT; i++) {
      const refused = await get("/v1/customers", i % 2 === 0 ? null : "sk_test_wrong")
      assertError(refused, 401, "authentication_failed")
      assertStanding(refused, ADDRESS_LIMIT, ADDRESS_LIMIT - i)
    }
    const limited = await get("/v1/customers", null)
    assertLimited(limited, ADDRESS_LIMIT, 30)
    assert.isFalse(limited.headers.has("www-authenticate"))
    assertOk(await get("/v1/customers"))
    now += MINUTE
    assertError(await get("/v1/customers", null), 401, "authentication_failed")
  })

  it("pages of other origins may read their limit", async () => {
    const reply = await get("/v1/customers", keys.publishableTest, { origin: "https://shop.example" })
    const exposed = reply.headers.get("access-control-expose-headers")?.split(", ")
    assert.includeMembers(exposed ?? [], ["retry-after", "x-ratelimit-limit", "x-ratelimit-remaining"])
  })
})

describe("rate limits behind a trusted proxy", () => {
  it("limits.addresses: count against the address that the proxy names, and not against the proxy", async () => {
    const trustedProxies = networksOf("127.0.0.0/8, ::1")!
    const proxied = await start({ http: { rateLimit: true, trustedProxies }, clock: clockOf(() => now) })
    try {
      const ask = (forwardedFor: string) =>
        proxied.request("GET", "/v1/customers", { key: null, headers: { "x-forwarded-for": forwardedFor } })
      for (let i = 1; i <= ADDRESS_LIMIT; i++)
        assertStanding(await ask("203.0.113.1"), ADDRESS_LIMIT, ADDRESS_LIMIT - i)
      assertLimited(await ask("203.0.113.1"), ADDRESS_LIMIT, 30)
      assertLimited(await ask("198.51.100.9, 203.0.113.1"), ADDRESS_LIMIT, 30)
      assertStanding(await ask("203.0.113.1, 203.0.113.2"), ADDRESS_LIMIT, ADDRESS_LIMIT - 1)
    } finally {
      await proxied.close()
    }
  })
})

describe("without rate limits", () => {
  it("limits.rate: no answer reports any", async () => {
    const unlimited = await start()
    try {
      for (const key of [unlimited.keys.secretTest, null]) {
        const { headers } = await unlimited.request("GET", "/v1/api_keys", { key })
        assert.isFalse(headers.has("x-ratelimit-limit"))
        assert.isFalse(headers.has("x-ratelimit-remaining"))
      }
    } finally {
      await unlimited.close()
    }
  })
})
