/**
 * Semantics requests.order, step 9 before step 10: a repeated request gets its answer even if today's schemas refuse
 * its body. An older Till may have accepted such a body, so the answers here are put into the journal as an older Till
 * would have.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { runOnce } from "../../src/engine/Accounts.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import { fingerprint } from "../../src/http/RequestFingerprint.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, start, VERSION } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const BODY = '{"id":"obj_1","object":"of an older Till"}'

let keys = 0
const newKey = () => `replay-${++keys}`
const accountOf = () => `${server.keys.merchantId}:test`
const fingerprintOf = (path: string, body: unknown) =>
  fingerprint("POST", path, body, Redacted.value(paymentsConfig().fingerprintKey))

/** Stores the answer to a request in an account, under a key. */
const leave = (account: string, idempotencyKey: string, path: string, body: unknown) =>
  Effect.runPromise(
    runOnce(
      server.accounts,
      account,
      { id: "req_older", idempotencyKey, fingerprint: fingerprintOf(path, body), apiVersion: VERSION },
      () => Effect.succeed({ kept: { status: 200, body: BODY }, replayOf: null })
    )
  )

const post = (path: string, idempotencyKey: string, body: unknown) =>
  server.request("POST", path, { idempotencyKey, body })

const card = { number: "4242424242424242", exp_month: 12, exp_year: 2040 }

/** Requests that today's schemas refuse. */
const refused: ReadonlyArray<readonly [path: string, body: unknown, code: string, param: string | null]> = [
  ["/v1/customers", { nmae: "A" }, "parameter_unknown", "nmae"],
  ["/v1/customers", { name: 1 }, "parameter_invalid", "name"],
  ["/v1/customers", { name: "\0" }, "parameter_invalid", "name"],
  ["/v1/customers", [], "parameter_invalid", null],
  ["/v1/payment_intents", { amount: 1 }, "parameter_missing", "currency"],
  ["/v1/payment_methods", { type: "card", card: { ...card, exp_month: 13 } }, "parameter_invalid", "card[exp_month]"],
  ["/v1/payment_intents/pi_1/cancel", { reason: 1 }, "parameter_unknown", "reason"],
  ["/v1/checkout_sessions/cs_1/expire", { now: true }, "parameter_unknown", "now"]
]

describe("a request that today's schema refuses", () => {
  it.each(refused)("%s %j gets its stored answer", async (path, body, code, param) => {
    assertError(await post(path, newKey(), body), 400, code, param)
    const key = newKey()
    await leave(accountOf(), key, path, body)
    const reply = await post(path, key, body)
    assertOk(reply)
    assert.strictEqual(reply.text, BODY)
    assert.strictEqual(reply.headers.get("idempotent-replayed"), "true")
    assert.strictEqual(reply.headers.get("original-request"), "req_older")
  })

  // Semantics idempotency.reuse.
  it.each(refused)("%s %j is refused if its key is another request's", async (path, body) => {
    const key = newKey()
    assertOk(await post("/v1/customers", key, { name: "A" }))
    assertError(await post(path, key, body), 422, "idempotency_key_reuse")
  })

  it("gets its stored answer with any query, which is no part of its identity", async () => {
    const key = newKey()
    const first = await post("/v1/customers", key, { name: "A" })
    assertOk(first)
    assertError(await post("/v1/customers?x=1", newKey(), { name: "A" }), 400, "parameter_unknown", "x")
    assert.strictEqual((await post("/v1/customers?x=1", key, { name: "A" })).text, first.text)
    assertError(await post("/v1/customers?x=1", key, { name: "B" }), 422, "idempotency_key_reuse")
  })

  it("gets its stored answer in the installation's account, too", async () => {
    const path = "/v1/api_keys/key_1/roll"
    const body = { expires_in: "soon" }
    assertError(await post(path, newKey(), body), 400, "parameter_invalid", "expires_in")
    const key = newKey()
    await leave(INSTALLATION, `${accountOf()}/${key}`, path, body)
    const reply = await post(path, key, body)
    assert.strictEqual(reply.text, BODY)
    assert.strictEqual(reply.headers.get("idempotent-replayed"), "true")
    assertError(await post(path, key, { expires_in: "later" }), 422, "idempotency_key_reuse")
  })

  it("leaves its key free if no answer was stored (semantics idempotency.released)", async () => {
    const key = newKey()
    assertError(await post("/v1/customers", key, { nmae: "A" }), 400, "parameter_unknown", "nmae")
    const corrected = await post("/v1/customers", key, { name: "A" })
    assertOk(corrected)
    assert.isFalse(corrected.headers.has("idempotent-replayed"))
  })
})

describe("a body that is no JSON", () => {
  it("is refused before its key is looked up (step 8 before 9)", async () => {
    const key = newKey()
    assertOk(await post("/v1/customers", key, { name: "A" }))
    assertError(await post("/v1/customers", key, "{"), 400, "invalid_json")
  })
})
