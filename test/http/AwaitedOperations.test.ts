/**
 * Requests that wait for a processor behind a network, over HTTP (semantics operations.begin, operations.limits,
 * idempotency.in_use, payment_methods.token).
 */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import * as http from "node:http"
import type { RemoteProcessor, TokenDescription } from "../../src/payments/processing/RemoteProcessor.ts"
import { PROCESSOR, VirtualProcessor } from "../models/Operations.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { basic } from "../support/HttpExchange.ts"
import { type MemoryTill, start as startTill } from "../support/MemoryTill.ts"

const CARD: TokenDescription = {
  kind: "card",
  card: {
    brand: "visa",
    last4: "4242",
    exp_month: 12,
    exp_year: 2034,
    funding: "credit",
    country: "US",
    fingerprint: null
  }
}

let till: MemoryTill
afterEach(() => till.close())

/** A Till whose processor answers nothing until `answer` is called. */
const start = async () => {
  const gate = Deferred.makeUnsafe<void>()
  const calls = { describe: 0, perform: 0 }
  const { processors, remote } = new VirtualProcessor()
  const processor: RemoteProcessor = {
    ...remote,
    describe: () => Effect.sync(() => (calls.describe++, CARD)),
    perform: (request) =>
      Effect.suspend(() => {
        calls.perform++
        return Effect.andThen(Deferred.await(gate), remote.perform(request))
      })
  }
  const byId = (id: string) => (id === PROCESSOR ? processor : null)
  till = await startTill({ processors: { ...processors, of: () => processor, byId } })
  return { calls, answer: () => Deferred.doneUnsafe(gate, Effect.void) }
}

const post = (path: string, body: object, idempotencyKey?: string) =>
  till.request("POST", `/v1/${path}`, { body, ...(idempotencyKey !== undefined && { idempotencyKey }) })

const payment = (more: object) => ({ amount: 2000, currency: "usd", confirm: true, ...more })

/** Sends a request whose client can go away: the function ends the connection. */
const postAndLeave = (path: string, body: object, idempotencyKey: string): (() => Promise<void>) => {
  const request = http.request(`${till.url}/v1/${path}`, {
    method: "POST",
    agent: false,
    headers: {
      authorization: basic(till.keys.secretTest),
      "content-type": "application/json",
      "idempotency-key": idempotencyKey
    }
  })
  const closed = new Promise<void>((resolve) => request.on("error", () => {}).once("close", resolve))
  request.end(JSON.stringify(body))
  return () => {
    request.destroy()
    return closed
  }
}

const until = async (condition: () => boolean | Promise<boolean>) => {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe("operations.begin: a client that goes away while its request waits", () => {
  const body = payment({ payment_method_data: { type: "card", token: "tok_approve" } })
  const operations = async () => (await till.request("GET", "/v1/operations")).body.data

  it("stops nothing: the outcome is stored, and the same key gets it", async () => {
    const { answer, calls } = await start()
    const leave = postAndLeave("payment_intents", body, "key")
    await until(() => calls.perform === 1)
    await leave()
    // The service notices the end of the connection.
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.deepInclude((await operations())[0], { kind: "authorize", status: "open" })
    answer()
    await until(async () => (await operations())[0].status === "final")
    const paid = await post("payment_intents", body, "key")
    assertOk(paid)
    assert.strictEqual(paid.body.status, "succeeded")
    assert.strictEqual(paid.headers.get("idempotent-replayed"), "true")
    assert.strictEqual(calls.perform, 1)
    assert.lengthOf((await till.request("GET", "/v1/payment_intents")).body.data, 1)
  })

  it("may ask again with the same key, and waits for the outcome of the one operation", async () => {
    const { answer, calls } = await start()
    const leave = postAndLeave("payment_intents", body, "key")
    await until(() => calls.perform === 1)
    await leave()
    const again = post("payment_intents", body, "key")
    assertError(await post("payment_intents", { ...body, amount: 1 }, "key"), 422, "idempotency_key_reuse")
    answer()
    assert.strictEqual((await again).body.status, "succeeded")
    assert.strictEqual(calls.perform, 1)
    assert.lengthOf(await operations(), 1)
  })

  it("gets the payment without an outcome after 20 seconds, and its outcome later", async () => {
    const { answer, calls } = await start()
    const leave = postAndLeave("payment_intents", body, "key")
    await until(() => calls.perform === 1)
    await leave()
    await post("test_helpers/clock/advance", { seconds: 21 })
    const unresolved = await post("payment_intents", body, "key")
    assertOk(unresolved)
    assert.strictEqual(unresolved.body.status, "processing")
    answer()
    await until(async () => (await operations())[0].status === "final")
    assert.strictEqual((await post("payment_intents", body, "key")).text, unresolved.text)
    const { body: paid } = await till.request("GET", `/v1/payment_intents/${unresolved.body.id}`)
    assert.strictEqual(paid.status, "succeeded")
    assert.strictEqual(calls.perform, 1)
  })
})

describe("requests that wait for a processor", () => {
  it("take no place from commands and reads, also as repetitions, and all get the first answer", async () => {
    const { answer, calls } = await start()
    const { body: method } = await post("payment_methods", { type: "card", token: "tok_approve" })
    const keys = Array.from({ length: 300 }, (_, i) => `key-${i}`)
    const send = () => keys.map((key) => post("payment_intents", payment({ payment_method: method.id }), key))
    const first = send()
    while (calls.perform < keys.length) await new Promise((resolve) => setTimeout(resolve, 5))
    const second = send()
    // Longer than reads may wait before they count as too many.
    await new Promise((resolve) => setTimeout(resolve, 800))
    for (let i = 0; i < 50; i++) {
      assertOk(await till.request("GET", "/v1/payment_intents?limit=1"))
      assertOk(await post("customers", {}))
    }
    assert.strictEqual(calls.perform, keys.length)
    answer()
    const answers = await Promise.all(first)
    const repeated = await Promise.all(second)
    for (const [i, one] of answers.entries()) {
      assertOk(one)
      assert.strictEqual(one.body.status, "succeeded")
      assert.isNull(one.headers.get("idempotent-replayed"))
      assert.strictEqual(repeated[i]!.text, one.text)
      assert.strictEqual(repeated[i]!.headers.get("original-request"), one.headers.get("x-request-id"))
    }
  })

  it("are told of another request's key, and of card data, before the processor is asked", async () => {
    const { answer, calls } = await start()
    answer()
    const data = { type: "card", token: "tok_approve" }
    const paid = await post("payment_intents", payment({ payment_method_data: data }), "key")
    assertOk(paid)
    assert.strictEqual((await post("payment_intents", payment({ payment_method_data: data }), "key")).text, paid.text)
    assertError(
      await post("payment_intents", payment({ payment_method_data: data, amount: 1 }), "key"),
      422,
      "idempotency_key_reuse"
    )
    assert.strictEqual(calls.describe, 1)
    const card = { number: "4242424242424242", exp_month: 12, exp_year: 2040 }
    const raw = await post("payment_intents", payment({ payment_method_data: { type: "card", card } }))
    assertError(raw, 400, "card_data_refused", "payment_method_data[card]")
    assertError(await post("payment_methods", { type: "card", card }), 400, "card_data_refused", "card")
    assert.strictEqual(calls.describe, 1)
    assert.notInclude(await till.journal(), "4242424242424242")
  })
})

describe("a processor that was out of order", () => {
  it.each([
    ["unresolved", 21],
    ["to be decided", 90_000]
  ])("is asked about operations that are %s as soon as it answers again", async (_, seconds) => {
    const surroundings = { fault: () => "none" as const, delay: () => 0, lateness: () => 0, detached: () => {} }
    const { processors, remote } = new VirtualProcessor(surroundings)
    const listeners: Array<(id: string) => void> = []
    let looks = 0
    let isBack = false
    const silence = { kind: "unknown", why: "No answer." } as const
    const processor: RemoteProcessor = {
      ...remote,
      describe: () => Effect.succeed(CARD),
      perform: (request) => Effect.andThen(remote.perform(request), Effect.never),
      look: (request) => Effect.suspend(() => (isBack ? (looks++, remote.look(request)) : Effect.succeed(silence)))
    }
    const byId = (id: string) => (id === PROCESSOR ? processor : null)
    const onBack = (listener: (id: string) => void) => void listeners.push(listener)
    till = await startTill({ processors: { ...processors, of: () => processor, byId, onBack } })
    const data = { type: "card", token: "tok_approve" }
    const paying = [1, 2, 3].map((i) => post("payment_intents", payment({ payment_method_data: data, amount: i })))
    const idsOf = async (status: string) => (await till.request("GET", `/v1/operations?status=${status}`)).body.data
    while ((await idsOf("open")).length < paying.length) await new Promise((resolve) => setTimeout(resolve, 5))
    await post("test_helpers/clock/advance", { seconds })
    for (const paid of await Promise.all(paying)) assert.strictEqual(paid.body.status, "processing")
    isBack = true
    for (const listener of listeners) listener("prc_other")
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.strictEqual(looks, 0)
    assert.lengthOf(await idsOf(seconds > 86_400 ? "decide" : "unresolved"), paying.length)
    for (const listener of listeners) listener(PROCESSOR)
    while ((await idsOf("final")).length < paying.length) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.strictEqual(looks, paying.length)
    const { data: payments } = (await till.request("GET", "/v1/payment_intents")).body
    for (const { status } of payments) assert.strictEqual(status, "succeeded")
  })
})
