/**
 * A merchant changes its processor: the retiring one finishes its own payments, and takes no new ones (semantics
 * processors.states, processors.resolution, operations.cards).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import type { Transaction } from "../../src/engine/actor/Transaction.ts"
import * as Configured from "../../src/payments/processing/ConfiguredProcessors.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import { simulator } from "../../src/payments/processing/Simulator.ts"
import * as Registry from "../../src/processors/Registry.ts"
import { assertError, assertOk } from "../http/Assertions.ts"
import { type Fault, SECRET, VirtualProcessor } from "../models/Operations.ts"
import { type MemoryTill, type Reply, start } from "../support/MemoryTill.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"

const config = paymentsConfig({})
const [OLD, NEW] = ["https://old.example/", "https://new.example/"]

let fault: Fault = "none"
const gateways = {
  [OLD]: new VirtualProcessor({ fault: (call) => (call === "perform" ? fault : "none") }),
  [NEW]: new VirtualProcessor()
}
const registry = Registry.make(
  config,
  { post: (request) => gateways[request.url]!.exchange.post(request) },
  Effect.runSync(Clock.Clock)
)

let till: MemoryTill
/** The ids of the retiring processor and of the new one. */
let [old, next] = ["", ""]

const post = (path: string, body: object = {}) => till.request("POST", `/v1/${path}`, { body })
const get = async (path: string) => (await till.request("GET", `/v1/${path}`)).body

/** Changes the merchant's processors as an operator does. */
const change = async <A, E>(command: Effect.Effect<A, E, Transaction | PaymentsConfig>): Promise<A> => {
  const provided = Effect.provideService(command, PaymentsConfig, config)
  const changed = await Effect.runPromise(Effect.orDie(till.accounts.run(INSTALLATION, provided)))
  const query = { kind: Configured.PROCESSOR.name, prefix: Configured.PROCESSOR.prefix, limit: 10 }
  const { documents } = await Effect.runPromise(till.accounts.list(INSTALLATION, query))
  registry.replace(documents as unknown as ReadonlyArray<Configured.ProcessorDocument>)
  return changed
}

const add = async (url: string): Promise<string> => {
  const profile = { name: "Acme", currencies: null, fields_url: null }
  const { merchantId: merchant } = till.keys
  const terms = { merchant, livemode: false, kind: "http", url, secret: SECRET, profile } as const
  return (await change(Configured.add(terms))).value.id
}

const pay = (token: string, more: object = {}): Promise<Reply> =>
  post("payment_intents", {
    amount: 2000,
    currency: "usd",
    confirm: true,
    payment_method_data: { type: "card", token },
    ...more
  })

const made = async (token: string, more: object = {}): Promise<string> => {
  const paid = await pay(token, more)
  assertOk(paid)
  return paid.body.id
}
const declined = async (): Promise<string> => {
  const { id } = (await post("payment_intents", { amount: 2000, currency: "usd" })).body
  const confirmed = await post(`payment_intents/${id}/confirm`, {
    payment_method_data: { type: "card", token: "tok_decline" }
  })
  assert.deepStrictEqual([confirmed.status, confirmed.body.error.code], [402, "card_declined"])
  return id
}

/** The operations of a payment, newest first, as kind, status and processor. */
const operationsOf = async (payment: string): Promise<ReadonlyArray<readonly [string, string, string]>> =>
  (await get(`operations?payment_intent=${payment}`)).data.map(
    ({ kind, processor, status }: { kind: string; processor: string; status: string }) => [kind, status, processor]
  )

const until = async (condition: () => Promise<boolean>) => {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10))
}

const MANUAL = { capture_method: "manual" }

/** Payments that the retiring processor has begun. */
interface Begun {
  readonly captured: string
  readonly canceled: string
  readonly expired: string
  readonly paid: string
  readonly declined: readonly [string, string]
  readonly challenged: string
  /** A saved card of that processor. */
  readonly card: string
  /** A payment whose request waits: the processor has given no answer yet. */
  readonly open: Promise<Reply>
}
let begun: Begun

beforeAll(async () => {
  const { byId, mayBegin, of } = registry
  till = await start({
    processors: { byId, mayBegin, of: (account) => of(account) ?? simulator, atOnce: () => simulator }
  })
  old = await add(OLD)
  const card = (await post("payment_methods", { type: "card", token: "tok_approve" })).body.id
  const rest = {
    captured: await made("tok_approve", MANUAL),
    canceled: await made("tok_approve", MANUAL),
    expired: await made("tok_approve", MANUAL),
    paid: await made("tok_approve"),
    declined: [await declined(), await declined()] as const,
    challenged: await made("tok_challenge", { return_url: "https://shop.example/" })
  }
  fault = "request lost"
  begun = { ...rest, card, open: pay("tok_approve") }
  await until(async () => (await get("operations?status=open")).data.length === 1)
  await change(Configured.take(old, "retire"))
  next = await add(NEW)
  fault = "none"
})
afterAll(() => till.close())

describe("a retiring processor", () => {
  it("processors.states: carries out what was begun: the request that waits gets its outcome", async () => {
    const { body, status } = await begun.open
    assert.deepStrictEqual([status, body.status], [200, "succeeded"])
    assert.deepStrictEqual(await operationsOf(body.id), [["authorize", "final", old]])
    assert.strictEqual(gateways[OLD]!.entry(body.id).captured, 2000)
  })

  it("processors.states: captures and releases what it holds, and refunds its payments", async () => {
    const captured = await post(`payment_intents/${begun.captured}/capture`, { amount_to_capture: 1500 })
    assert.deepInclude(captured.body, { status: "succeeded", amount_received: 1500 })
    assert.strictEqual((await post(`payment_intents/${begun.canceled}/cancel`)).body.status, "canceled")
    const refunded = await post("refunds", { payment_intent: begun.paid, amount: 500 })
    assert.strictEqual(refunded.body.status, "succeeded")
    for (const [payment, kind] of [
      [begun.captured, "capture"],
      [begun.canceled, "void"],
      [begun.paid, "refund"]
    ] as const) {
      assert.deepStrictEqual((await operationsOf(payment))[0], [kind, "final", old])
    }
    assert.deepInclude(gateways[OLD]!.entry(begun.captured), { status: "captured", captured: 1500 })
    assert.strictEqual(gateways[OLD]!.entry(begun.canceled).status, "canceled")
    assert.strictEqual(gateways[OLD]!.entry(begun.paid).refunded, 500)
  })

  it("processors.resolution: takes no new payment, which goes to the new processor", async () => {
    const paid = await pay("tok_approve")
    assertOk(paid)
    assert.deepStrictEqual(await operationsOf(paid.body.id), [["authorize", "final", next]])
    assert.strictEqual(gateways[NEW]!.entry(paid.body.id).captured, 2000)
    assert.strictEqual(gateways[OLD]!.entry(paid.body.id).status, "none")
  })

  it("operations.cards: keeps its cards, for another attempt of its own payments alone", async () => {
    const { card, declined } = begun
    const other = await post("payment_intents", { amount: 2000, currency: "usd", confirm: true, payment_method: card })
    assertError(other, 400, "parameter_invalid", "payment_method")
    const [first, second] = declined
    const paid = await post(`payment_intents/${first}/confirm`, { payment_method: card })
    assert.strictEqual(paid.body.status, "succeeded")
    assert.deepStrictEqual((await operationsOf(first))[0], ["authorize", "final", old])
    const token = { payment_method_data: { type: "card", token: "tok_approve" } }
    const refused = await post(`payment_intents/${second}/confirm`, token)
    assertError(refused, 400, "parameter_invalid", "payment_method")
    assert.lengthOf(await operationsOf(second), 1)
  })

  it("operations.looks: is asked about a payer's authentication, and gives holds up at their end", async () => {
    const { challenged, expired } = begun
    gateways[OLD]!.answer(challenged, true)
    await post("test_helpers/clock/advance", { seconds: 61 })
    await until(async () => (await get(`payment_intents/${challenged}`)).status === "succeeded")
    // A moment after the hold's end: the void has its 20 seconds.
    await post("test_helpers/clock/advance", { seconds: 7 * 86_400 - 55 })
    await until(async () => (await get(`payment_intents/${expired}`)).status === "canceled")
    assert.deepStrictEqual(await operationsOf(expired), [
      ["void", "final", old],
      ["authorize", "final", old]
    ])
    assert.strictEqual(gateways[OLD]!.entry(expired).status, "canceled")
  })

  it("processors.resolution: leaves new payments of test mode to the simulator, if there is no other", async () => {
    await change(Configured.take(next, "retire"))
    const paid = await pay("tok_visa")
    assertOk(paid)
    assert.strictEqual(paid.body.status, "succeeded")
    assert.deepStrictEqual(await operationsOf(paid.body.id), [])
    const refunded = await post("refunds", { payment_intent: begun.paid, amount: 500 })
    assert.strictEqual(refunded.body.status, "succeeded")
    assert.strictEqual(gateways[OLD]!.entry(begun.paid).refunded, 1000)
  })
})
