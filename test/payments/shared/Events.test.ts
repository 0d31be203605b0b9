/** The form of an event (semantics events.object). */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Event, eventTypeFilterOf } from "../../../src/domain/Event.ts"
import { render } from "../../../src/payments/shared/Events.ts"

const context = { account: "mer_1:live", pendingWebhooks: 2 }
const stored = {
  id: "evt_1",
  type: "customer.updated",
  at: 1_700_000_000_999,
  object: '{"id":"cus_1","a":1.0}',
  format: 1,
  // The merchant's default version, which can differ from the request's (semantics versions.default).
  apiVersion: "2027-01-01",
  version: 1,
  deliveries: 0
}

describe("Events", () => {
  it("contain the object as exactly the text that was frozen", () => {
    const request = { id: "req_1", idempotencyKey: 'k"1', fingerprint: "f", apiVersion: "2026-03-09" }
    const text = render({ ...stored, request, previous: { metadata: { a: null } } }, context)
    assert.include(text, stored.object)
    const event = JSON.parse(text)
    Schema.decodeUnknownSync(Event)(event, { onExcessProperty: "error" })
    assert.deepStrictEqual(event, {
      id: "evt_1",
      object: "event",
      type: "customer.updated",
      created: 1_700_000_000,
      livemode: true,
      api_version: "2027-01-01",
      merchant_id: "mer_1",
      data: { object: { id: "cus_1", a: 1 }, previous_attributes: { metadata: { a: null } } },
      pending_webhooks: 2,
      request: { id: "req_1", idempotency_key: 'k"1' }
    })
  })

  it("of a timer have no request", () => {
    const event = JSON.parse(render({ ...stored, request: null, previous: null }, context))
    assert.deepStrictEqual(event.request, { id: null, idempotency_key: null })
    assert.notProperty(event.data, "previous_attributes")
  })

  it("can be selected by a known type or prefix", () => {
    assert.deepStrictEqual(eventTypeFilterOf("charge.failed"), { exact: "charge.failed" })
    assert.deepStrictEqual(eventTypeFilterOf("payment_intent.*"), { prefix: "payment_intent." })
    assert.deepStrictEqual(eventTypeFilterOf("charge.dispute.*"), { prefix: "charge.dispute." })
    for (const filter of ["payment_intent", "payment_intent.", "pay*", "*", ".*", "", "x.*", "charge.failed.*"]) {
      assert.isUndefined(eventTypeFilterOf(filter), filter)
    }
  })
})
