/**
 * Requests that concern two accounts or the whole installation, over several processes (semantics
 * limits.rate.processes, runners.merchants): keys of a merchant, administration commands, and limits.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { Unavailable } from "../../../src/engine/Accounts.ts"
import { administerAnywhere, carryOut } from "../../../src/http/forward/Calls.ts"
import { ACCOUNT_LIMIT } from "../../../src/http/RateLimits.ts"
import type { Keys } from "../../support/fixtures/Merchants.ts"
import { basic } from "../../support/HttpExchange.ts"
import { type MemoryFleet, start } from "../../support/MemoryFleet.ts"

/** The process of the installation's account, that of the merchant's, and one that has neither. */
const [OFFICE, OWNER, OTHER] = [0, 1, 2] as const

let runners: MemoryFleet
let keys: Keys
beforeAll(async () => {
  runners = await start(3, { http: { rateLimit: true } })
  keys = await runners.merchant()
  await runners.move("till", OFFICE)
  await runners.move(`${keys.merchantId}:test`, OWNER)
})
afterAll(() => runners.close())

const send = async (
  runner: number,
  method: string,
  path: string,
  { body, idempotencyKey, key = keys.secretTest }: { body?: object; idempotencyKey?: string; key?: string } = {}
) => {
  const response = await fetch(`http://127.0.0.1:${runners.all[runner]!.port}${path}`, {
    method,
    headers: {
      authorization: basic(key),
      ...(method === "POST" && { "content-type": "application/json" }),
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey })
    },
    ...(method === "POST" && { body: JSON.stringify(body ?? {}) })
  })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

const eventually = async (condition: () => Promise<boolean>) => {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
}

describe("keys of a merchant, at any process", () => {
  it("are rolled once by an idempotency key, which is then no other request's", async () => {
    const { body: list } = await send(OTHER, "GET", "/v1/api_keys")
    const { id } = list.data.find((key: { type: string; status: string }) => key.type === "publishable")
    const roll = { idempotencyKey: "roll-1", body: { expires_in: 60 } }
    const rolled = await send(OTHER, "POST", `/v1/api_keys/${id}/roll`, roll)
    assert.strictEqual(rolled.status, 200, JSON.stringify(rolled.body))
    const { secret, ...shown } = rolled.body
    assert.match(secret, /^pk_test_/)
    for (const runner of [OFFICE, OWNER, OTHER]) {
      const again = await send(runner, "POST", `/v1/api_keys/${id}/roll`, roll)
      assert.deepStrictEqual([again.status, again.body], [200, shown])
      assert.strictEqual(again.headers.get("idempotent-replayed"), "true")
      const other = await send(runner, "POST", "/v1/customers", { idempotencyKey: "roll-1" })
      assert.deepStrictEqual([other.status, other.body.error.code], [422, "idempotency_key_reuse"])
    }
    await send(OFFICE, "POST", "/v1/customers", { idempotencyKey: "customer-1" })
    const reused = await send(OTHER, "POST", `/v1/api_keys/${id}/roll`, { idempotencyKey: "customer-1" })
    assert.deepStrictEqual([reused.status, reused.body.error.code], [422, "idempotency_key_reuse"])
    const after = await send(OWNER, "GET", "/v1/api_keys")
    assert.strictEqual(after.body.data.length, list.data.length + 1)
  })

  it("work at every process immediately, and at none once they are revoked", async () => {
    const made = await runners.all[OTHER]!.run(
      administerAnywhere({ _tag: "CreateKey", merchant: keys.merchantId, type: "secret", livemode: false })
    )
    const { id, secret = "" } = made.keys[0]!
    for (const runner of [OTHER, OWNER, OFFICE]) {
      assert.strictEqual((await send(runner, "GET", "/v1/customers", { key: secret })).status, 200)
    }
    assert.strictEqual((await send(OTHER, "DELETE", `/v1/api_keys/${id}`)).status, 200)
    for (const runner of [OTHER, OWNER, OFFICE]) {
      await eventually(async () => (await send(runner, "GET", "/v1/customers", { key: secret })).status === 401)
    }
  })
})

describe("a command on the installation", () => {
  it("is run by the process that has its account, and by no other", async () => {
    const command = { _tag: "CreateMerchant", name: "Another" } as const
    const { run } = runners.all[OTHER]!
    // On a busy machine, a process may be unsure of its accounts for a moment.
    const atOffice = Effect.retry(carryOut(runners.all[OFFICE]!.url, command), {
      while: (failure) => failure instanceof Unavailable && failure.isElsewhere,
      schedule: Schedule.spaced("50 millis")
    })
    const { keys, merchants } = await run(atOffice)
    assert.strictEqual(merchants[0]!.name, "Another")
    const key = keys.find(({ livemode, type }) => type === "secret" && !livemode)?.secret ?? ""
    assert.strictEqual((await send(OTHER, "GET", "/v1/customers", { key })).status, 200)
    for (const url of [runners.all[OWNER]!.url, "http://127.0.0.1:1"]) {
      const failure = await run(Effect.flip(carryOut(url, command)))
      assert.isTrue(failure instanceof Unavailable && failure.isElsewhere, String(failure))
    }
    const unknown = { _tag: "SetVersion", merchant: "mer_none", version: "2026-03-09" } as const
    assert.include((await run(Effect.flip(administerAnywhere(unknown)))).message, "no merchant mer_none")
  })
})

describe("a limit", () => {
  it("counts the requests of an account at its process, wherever they were sent", async () => {
    let before = Number.NaN
    for (let i = 0; i < 12; i++) {
      const { headers } = await send(i % 3, "GET", "/v1/payment_intents")
      assert.strictEqual(headers.get("x-ratelimit-limit"), String(ACCOUNT_LIMIT))
      const remaining = Number(headers.get("x-ratelimit-remaining"))
      // A new minute begins at most once during the test.
      if (remaining !== ACCOUNT_LIMIT - 1 && i > 0) assert.strictEqual(remaining, before - 1)
      before = remaining
    }
  })

  it("counts unauthenticated requests at the process that received them, by address", async () => {
    const remaining = []
    for (let i = 0; i < 3; i++) {
      const { headers, status } = await send(OTHER, "GET", "/v1/customers", { key: "sk_test_wrong" })
      assert.strictEqual(status, 401)
      remaining.push(Number(headers.get("x-ratelimit-remaining")))
    }
    assert.isTrue(remaining[1]! < remaining[0]! || remaining[2]! < remaining[1]!)
  })
})
