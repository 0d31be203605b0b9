/** Every existing event type can be triggered, through the API alone (semantics events.types). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Console, Effect, Redacted } from "effect"
import { overrideOf } from "../../src/cli/Overrides.ts"
import { NoEvent, triggerableOf, triggerEvent } from "../../src/cli/Trigger.ts"
import { Till } from "../../src/client/effect.ts"
import { EMITTED_EVENT_TYPES } from "../../src/client/index.ts"
import { RESERVED_EVENT_TYPES } from "../../src/domain/Event.ts"
import { TRIGGERABLE_EVENT_TYPES, type TriggerableEventType } from "../../src/domain/TriggerRecipes.ts"
import { start, type MemoryTill } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.close())

/** Lines on standard error, by the API key of the command. */
const said = new Map<string, ReadonlyArray<string>>()
const saidTo = (key: string) => said.get(key) ?? []
const listening = (key: string): Console.Console => ({
  ...console,
  error: (line: string) => void said.set(key, [...saidTo(key), line])
})

/** Triggers an event and returns it. Uses another merchant's key if the shared clock must not move. */
const trigger = async (
  type: TriggerableEventType,
  overrides: ReadonlyArray<string> = [],
  key = server.keys.secretTest
) => {
  const baseUrl = `http://127.0.0.1:${server.port}`
  const input = { overrides: overrides.map((text) => overrideOf(text)!), authorizationHoldSeconds: 604_800 }
  const client = Till.layerFetch({ apiKey: Redacted.make(key), baseUrl })
  const id = await Effect.runPromise(
    Effect.flatMap(Till, (till) => triggerEvent(type, { ...input, till })).pipe(
      Effect.provide(client),
      Effect.provideService(Console.Console, listening(key))
    )
  )
  const { body, status } = await server.request("GET", `/v1/events/${id}`, { key })
  assert.strictEqual(status, 200)
  return body
}

describe("till trigger", () => {
  it.concurrent.each(TRIGGERABLE_EVENT_TYPES)("causes %s", async (type) => {
    const { secretTest } = await server.merchant()
    // Twice, because the second event must not be confused with the first.
    const events = [await trigger(type, [], secretTest), await trigger(type, [], secretTest)]
    for (const event of events) {
      assert.strictEqual(event.type, type)
      assert.strictEqual(event.data.object.object, EMITTED_EVENT_TYPES[type])
      assert.isFalse(event.livemode)
    }
    assert.notStrictEqual(events[0].id, events[1].id)
    assert.notStrictEqual(events[0].data.object.id, events[1].data.object.id)
    if (type !== "charge.expired") assert.isEmpty(saidTo(secretTest))
  })

  it("prints that the clock was moved, and the request that resets it, which works", async () => {
    const { secretTest: key } = await server.merchant()
    const now = async () => {
      const body = { seconds: 1 }
      const clock = await server.request("POST", "/v1/test_helpers/clock/advance", { key, body })
      return clock.body.now - Math.floor(Date.now() / 1000)
    }
    await trigger("charge.expired", [], key)
    assert.deepStrictEqual(saidTo(key), [
      "The clock of the test environment was moved ahead by 7d 1s; only DELETE /v1/test_helpers/data sets it back, and " +
        "deletes all data there."
    ])
    assert.isAtLeast(await now(), 604_800)
    assert.strictEqual((await server.request("DELETE", "/v1/test_helpers/data", { key })).status, 200)
    assert.isBelow(await now(), 60)
  })

  it("sets fields of the object's request", async () => {
    const paid = await trigger("payment_intent.succeeded", ["amount=5000", "currency=eur", "metadata[order]=7"])
    const { amount_received, currency, metadata } = paid.data.object
    assert.deepStrictEqual([amount_received, currency, metadata], [5000, "eur", { order: "7" }])
    const session = await trigger("checkout.session.completed", [
      "line_items[0][quantity]=3",
      "client_reference_id=c 1"
    ])
    assert.deepInclude(session.data.object, { amount_total: 6000, client_reference_id: "c 1", payment_status: "paid" })
    const refund = await trigger("refund.failed", ["amount=1", "reason=duplicate"])
    assert.deepInclude(refund.data.object, { amount: 1, reason: "duplicate", status: "failed" })
    const customer = await trigger("customer.updated", ["name=null", "metadata[vip]=yes"])
    assert.deepStrictEqual(customer.data.previous_attributes, { name: "Jenny Rosen", metadata: { vip: null } })
    const updated = await trigger("refund.updated", ["metadata[order]=7"])
    assert.deepStrictEqual(updated.data.previous_attributes, { metadata: { order: null, triggered: null } })
    assert.deepInclude((await trigger("price.created", ["nickname=Retail"])).data.object, { nickname: "Retail" })
  })

  it("prints the event of its own request, while others cause such events, too", async () => {
    const { secretTest } = await server.merchant()
    const events = await Promise.all(Array.from({ length: 5 }, () => trigger("charge.captured", [], secretTest)))
    assert.strictEqual(new Set(events.map(({ id }) => id)).size, events.length)
  })

  it("fails with the API's own error if an override is refused", async () => {
    const error = await trigger("payment_intent.succeeded", ["amount=-1"]).catch((error: unknown) => error)
    assert.include(error, { _tag: "InvalidRequestError", param: "amount" })
  })

  it("refuses types that Till does not emit, or that the simulator does not cause", () => {
    for (const type of TRIGGERABLE_EVENT_TYPES) assert.strictEqual(Effect.runSync(triggerableOf(type)), type)
    for (const type of RESERVED_EVENT_TYPES) {
      const { message } = Effect.runSync(Effect.flip(triggerableOf(type)))
      assert.strictEqual(message, `${type} cannot be triggered: Till does not emit it`)
    }
    const { message } = Effect.runSync(Effect.flip(triggerableOf("operation.resolved")))
    assert.strictEqual(message, "operation.resolved cannot be triggered: only a processor behind a network causes it")
    for (const [type, hint] of [
      ["payment_intent.*", "see till trigger --help"],
      ["payment_intent.succ", "did you mean payment_intent.succeeded?"],
      ["", "see till trigger --help"]
    ] as const) {
      const { message } = Effect.runSync(Effect.flip(triggerableOf(type)))
      assert.strictEqual(message, `there is no event type "${type}"; ${hint}`)
    }
    assert.include(
      new NoEvent({ type: "charge.failed", subject: "pi_1" }).message,
      "charge.failed did not happen for pi_1"
    )
  })
})
