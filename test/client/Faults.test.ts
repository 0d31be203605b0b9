/** A network that loses requests and responses: a call is still carried out once, and its response arrives. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { ConnectionError, InvalidRequestError, RateLimitError, TillClient } from "../../src/client/index.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"
import { type Fault, FaultyProxy } from "../support/FaultyProxy.ts"
import { Random, runSeed } from "../support/Random.ts"

let server: MemoryTill
let proxy: FaultyProxy
let till: TillClient
beforeAll(async () => {
  server = await start()
  proxy = await FaultyProxy.start(server.port)
  till = new TillClient({ apiKey: server.keys.secretTest, baseUrl: proxy.baseUrl })
})
afterAll(async () => {
  await proxy.close()
  await server.close()
})

const errorBody = (type: string, code: string) =>
  JSON.stringify({ error: { type, code, message: "No.", param: null, doc_url: "https://example.test" } })

const FAULTS: ReadonlyArray<Fault> = [
  "refuse",
  "lose",
  "cut",
  { status: 409, body: errorBody("invalid_request_error", "idempotency_key_in_use") },
  { status: 429, body: errorBody("rate_limit_error", "rate_limit_exceeded") },
  { status: 500, body: errorBody("api_error", "internal_error") },
  { status: 502, body: "<html>" },
  { status: 503, body: errorBody("api_error", "service_unavailable"), headers: { "retry-after": "0" } }
]

describe("a call over a bad network", () => {
  it.each(FAULTS.map((fault) => [typeof fault === "string" ? fault : fault.status, fault] as const))(
    "is repeated after %s, with the same key",
    async (_, fault) => {
      const key = `after ${JSON.stringify(fault)}`.slice(0, 100)
      proxy.break(key, fault)
      const customer = await till.customers.create({ description: key }, { idempotencyKey: key })
      const [first, second, ...others] = proxy.attemptsWith(key)
      assert.isEmpty(others)
      assert.strictEqual(second!.body, first!.body)
      const all = await till.customers.list({ limit: 100 })
      assert.deepStrictEqual(
        all.data.filter(({ description }) => description === key),
        [customer]
      )
    }
  )

  it("has one effect for any outcomes of its attempts", async () => {
    const random = new Random(runSeed)
    const keys = Array.from({ length: 40 }, (_, index) => `${runSeed}/${index}`)
    for (const key of keys) {
      proxy.break(key, ...Array.from({ length: random.integer(0, 3) }, () => random.pick(FAULTS)))
    }
    const made = await Promise.all(
      keys.map((description) =>
        till.payment_intents.create(
          { amount: 100, currency: "usd", payment_method: "pm_card_visa", confirm: true, description },
          { idempotencyKey: description }
        )
      )
    )
    const charged = []
    for await (const intent of till.payment_intents.list({ limit: 100 })) {
      assert.strictEqual(intent.charges.data.length, 1, `TILL_SEED=${runSeed}`)
      charged.push(intent.id)
    }
    assert.sameMembers(
      charged,
      made.map(({ id }) => id),
      `TILL_SEED=${runSeed}`
    )
  })

  it("fails with the error of the last attempt, and contains the key for a repetition", async () => {
    proxy.break("lost", "lose", "lose")
    const options = { idempotencyKey: "lost", retriesMax: 1 }
    const error = await till.customers.create({ name: "Lost" }, options).catch((error: unknown) => error)
    assert.instanceOf(error, ConnectionError)
    assert.strictEqual(error.idempotency_key, "lost")
    const customer = await till.customers.create({ name: "Lost" }, { idempotencyKey: error.idempotency_key! })
    const [newest] = (await till.customers.list({ limit: 1 })).data
    assert.deepStrictEqual(newest, customer)
  })

  it("waits for the time in Retry-After", async () => {
    const headers = { "retry-after": "1" }
    proxy.break("waits", { status: 429, body: errorBody("rate_limit_error", "rate_limit_exceeded"), headers })
    await till.customers.create({}, { idempotencyKey: "waits" })
    const [first, second] = proxy.attemptsWith("waits")
    // Timers can fire a millisecond early.
    assert.isAtLeast(second!.atMillis - first!.atMillis, 999)
  })

  it("is not repeated if that would not help, or would take too long", async () => {
    const refused = await till.customers.update("cus_none", {}, { idempotencyKey: "none" }).catch((error) => error)
    assert.instanceOf(refused, InvalidRequestError)
    assert.strictEqual(proxy.attemptsWith("none").length, 1)
    const headers = { "retry-after": "3600" }
    proxy.break("hour", { status: 429, body: errorBody("rate_limit_error", "rate_limit_exceeded"), headers })
    const limited = await till.customers.create({}, { idempotencyKey: "hour" }).catch((error: unknown) => error)
    assert.instanceOf(limited, RateLimitError)
    assert.strictEqual(limited.retry_after, 3600)
    assert.strictEqual(proxy.attemptsWith("hour").length, 1)
  })

  it("is also repeated if it reads or deletes", async () => {
    const { id } = await till.customers.create({ name: "Gone" })
    proxy.break("", "cut")
    assert.strictEqual((await till.customers.retrieve(id)).id, id)
    proxy.break("", "refuse")
    assert.isTrue((await till.customers.delete(id)).deleted)
  })
})
