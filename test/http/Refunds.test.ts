/** Semantics refunds.*, and the charges of semantics charges.*, row by row, through a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Charge } from "../../src/domain/Charge.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { eventually, type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const post = (path: string, body?: unknown) => server.request("POST", path, { body })
const get = (path: string) => server.request("GET", path)
const refund = (body: unknown) => post("/v1/refunds", body)

const pay = async (parameters: object = {}) => {
  const body = { amount: 1000, currency: "usd", payment_method: "pm_card_visa", confirm: true, ...parameters }
  const paid = await post("/v1/payment_intents", body)
  return paid.body.error?.payment_intent ?? paid.body
}

const chargeOf = async (id: string) => (await get(`/v1/charges?payment_intent=${id}`)).body.data[0]
/** Event types of these objects, oldest first; payments of other tests settle in between. */
const eventTypes = async (...ids: ReadonlyArray<string>): Promise<ReadonlyArray<string>> =>
  (await get("/v1/events?limit=100")).body.data
    .filter(({ data }: { data: { object: { id: string } } }) => ids.includes(data.object.id))
    .map(({ type }: { type: string }) => type)
    .toReversed()

describe("refunds", () => {
  it("refunds.create: the remaining amount unless another is given", async () => {
    const { id, latest_charge } = await pay({ metadata: { order: "7" } })
    const partial = await refund({ payment_intent: id, amount: 300, metadata: { a: "b", c: "" } })
    assertOk(partial)
    const { created, id: refundId, ...rest } = partial.body
    assert.match(refundId, /^ref_[0-9A-Za-z]{24}$/)
    assert.isTrue(Number.isInteger(created))
    assert.deepStrictEqual(rest, {
      object: "refund",
      amount: 300,
      currency: "usd",
      payment_intent: id,
      status: "succeeded",
      livemode: false,
      charge: latest_charge,
      metadata: { a: "b" }
    })
    for (const [body, amount] of [
      [{ payment_intent: id, amount: 200 }, 200],
      [{ payment_intent: id, amount: null, reason: null, metadata: null }, 500]
    ] as const) {
      const reply = await refund(body)
      assertOk(reply)
      assert.strictEqual(reply.body.amount, amount)
    }
  })

  it("refunds.reason: reasons are a closed list, and omitted if none is given", async () => {
    const { id } = await pay()
    for (const reason of ["duplicate", "fraudulent", "requested_by_customer"]) {
      assert.strictEqual((await refund({ payment_intent: id, amount: 1, reason })).body.reason, reason)
    }
    assert.notProperty((await refund({ payment_intent: id, amount: 1, reason: "" })).body, "reason")
    assertError(await refund({ payment_intent: id, reason: "because" }), 400, "parameter_invalid", "reason")
  })

  it("refunds.create: parameters", async () => {
    const { id } = await pay()
    assertError(await refund({}), 400, "parameter_missing", "payment_intent")
    assertError(await refund({ payment_intent: null }), 400, "parameter_missing", "payment_intent")
    assertError(await refund({ payment_intent: "ch_1" }), 400, "parameter_invalid", "payment_intent")
    assertError(await refund({ payment_intent: "pi_x" }), 404, "resource_missing", "payment_intent")
    for (const amount of [0, -1, 1.5, "1", true]) {
      assertError(await refund({ payment_intent: id, amount }), 400, "parameter_invalid", "amount")
    }
    assertError(await refund({ payment_intent: id, charge: "ch_1" }), 400, "parameter_unknown", "charge")
    assertError(await refund({ payment_intent: id, metadata: { a: 1 } }), 400, "parameter_invalid", "metadata[a]")
    const live = await server.request("POST", "/v1/refunds", {
      key: server.keys.secretLive,
      body: { payment_intent: id }
    })
    assertError(live, 404, "resource_missing", "payment_intent")
  })

  it("refunds.update: retrieve, and update of the metadata alone", async () => {
    const { id: payment_intent } = await pay()
    const { body, text } = await refund({ payment_intent, metadata: { a: "1", b: "2" } })
    assert.strictEqual((await get(`/v1/refunds/${body.id}`)).text, text)
    const updated = await post(`/v1/refunds/${body.id}`, { metadata: { a: "", c: "3" } })
    assertOk(updated)
    assert.deepStrictEqual(updated.body, { ...body, metadata: { b: "2", c: "3" } })
    const { data } = (await get("/v1/events?type=refund.updated&limit=1")).body.data[0]
    assert.deepStrictEqual(data.previous_attributes, { metadata: { a: "1", c: null } })
    // Semantics events.none: no change, no event.
    for (const nothing of [undefined, {}, { metadata: {} }, { metadata: { b: "2" } }]) {
      assertOk(await post(`/v1/refunds/${body.id}`, nothing))
    }
    assert.deepStrictEqual(await eventTypes(body.id), ["refund.created", "refund.updated"])
    assert.deepStrictEqual((await post(`/v1/refunds/${body.id}`, { metadata: null })).body.metadata, {})
    assertError(await post(`/v1/refunds/${body.id}`, { amount: 1 }), 400, "parameter_unknown", "amount")
    for (const id of ["ref_x", payment_intent]) {
      assertError(await get(`/v1/refunds/${id}`), 404, "resource_missing", "id")
      assertError(await post(`/v1/refunds/${id}`), 404, "resource_missing", "id")
    }
  })

  it("refunds.create: never more than the rest, and the refusal is stored", async () => {
    const { id: payment_intent } = await pay()
    const options = { body: { payment_intent, amount: 1001 }, idempotencyKey: "F5" }
    const tooLarge = await server.request("POST", "/v1/refunds", options)
    assertError(tooLarge, 400, "amount_too_large", "amount")
    assert.strictEqual(tooLarge.body.error.message, "The refund amount exceeds the amount available to refund.")
    const replay = await server.request("POST", "/v1/refunds", options)
    assert.strictEqual(replay.text, tooLarge.text)
    assert.strictEqual(replay.headers.get("idempotent-replayed"), "true")
    assertError(await refund({ payment_intent, amount: 999_999_999_999_999 }), 400, "amount_too_large", "amount")
    assertOk(await refund({ payment_intent }))
    for (const body of [{ payment_intent }, { payment_intent, amount: 5000 }]) {
      const nothing = await refund(body)
      assertError(nothing, 400, "charge_already_refunded", "payment_intent")
      assert.strictEqual(nothing.body.error.message, "The charge has already been fully refunded.")
    }
  })

  it("refunds.create, payment_intents.capture: captured amounts can be refunded, authorized ones cannot", async () => {
    const { id: payment_intent } = await pay({ capture_method: "manual" })
    await post(`/v1/payment_intents/${payment_intent}/capture`, { amount_to_capture: 400 })
    assertError(await refund({ payment_intent, amount: 401 }), 400, "amount_too_large", "amount")
    assert.strictEqual((await refund({ payment_intent })).body.amount, 400)
    assert.isTrue((await chargeOf(payment_intent)).refunded)
  })

  it("refunds.create: only a PaymentIntent that succeeded", async () => {
    const ways: ReadonlyArray<() => Promise<{ readonly id: string; readonly status: string }>> = [
      () => pay({ payment_method: null, confirm: false }),
      () => pay({ confirm: false }),
      () => pay({ payment_method: "pm_card_3ds_required" }),
      () => pay({ payment_method: "pm_card_processing_success" }),
      () => pay({ payment_method: "pm_card_declined" }),
      async () => (await post(`/v1/payment_intents/${(await pay({ confirm: false })).id}/cancel`)).body
    ]
    for (const way of ways) {
      const { id, status } = await way()
      const reply = await refund({ payment_intent: id })
      assertError(reply, 400, "payment_intent_unexpected_state", "payment_intent")
      assert.include(reply.body.error.message, `This PaymentIntent's status is \`${status}\`; `)
      assert.include(reply.body.error.message, "requires one of: succeeded.")
    }
    const held = await refund({ payment_intent: (await pay({ capture_method: "manual" })).id })
    assertError(held, 400, "payment_intent_unexpected_state", "payment_intent")
    assert.include(held.body.error.message, "This PaymentIntent's status is `requires_capture`; cancel it instead")
  })

  // Semantics refunds.effects, payment_intents.outcomes.
  it("effects on the charge, and none on the PaymentIntent's own status and amount", async () => {
    const paid = await pay()
    const { id } = (await refund({ payment_intent: paid.id, amount: 400 })).body
    assert.deepStrictEqual(await eventTypes(paid.latest_charge, id), [
      "charge.succeeded",
      "refund.created",
      "charge.refunded"
    ])
    const partial = await chargeOf(paid.id)
    assert.deepInclude(partial, { amount_refunded: 400, refunded: false, amount_captured: 1000, captured: true })
    await refund({ payment_intent: paid.id })
    const full = await chargeOf(paid.id)
    assert.deepInclude(full, { amount_refunded: 1000, refunded: true, paid: true, status: "succeeded" })
    const { body } = await get(`/v1/payment_intents/${paid.id}`)
    assert.deepStrictEqual(body, { ...paid, charges: { ...paid.charges, data: [full] } })
    // Semantics refunds.states: charge.refunded contains the charge as of then, for partial refunds too.
    const { data } = (await get("/v1/events?type=charge.refunded&limit=2")).body
    assert.deepStrictEqual(
      data.map((event: { data: unknown }) => event.data),
      [{ object: full }, { object: partial }]
    )
  })

  // Semantics refunds.status, refunds.effects.
  it("pending refunds reserve their amount and succeed, others fail and give it back", async () => {
    const pending = await pay({ payment_method: "pm_card_pendingRefund" })
    const failing = await pay({
      payment_method: null,
      payment_method_data: { type: "card", card: { number: "4000000000005126", exp_month: 1, exp_year: 2040 } }
    })
    const first = (await refund({ payment_intent: pending.id, amount: 600 })).body
    assert.strictEqual(first.status, "pending")
    assert.deepStrictEqual((await eventTypes(first.id, first.charge)).slice(0, 2), [
      "charge.succeeded",
      "refund.created"
    ])
    assert.deepInclude(await chargeOf(pending.id), { amount_refunded: 600, refunded: false })
    assertError(await refund({ payment_intent: pending.id, amount: 401 }), 400, "amount_too_large", "amount")
    const second = (await refund({ payment_intent: failing.id })).body
    assert.strictEqual(second.status, "succeeded")
    const [refunded] = (await get("/v1/events?type=charge.refunded&limit=100")).body.data.filter(
      ({ data }: { data: { object: { id: string } } }) => data.object.id === second.charge
    )
    assert.deepInclude(refunded.data.object, { amount_refunded: 1000, refunded: true })

    assertOk(await server.request("POST", "/v1/test_helpers/clock/advance", { body: { seconds: 2 } }))
    assert.strictEqual((await get(`/v1/refunds/${first.id}`)).body.status, "succeeded")
    const failed = (await get(`/v1/refunds/${second.id}`)).body
    assert.deepStrictEqual(failed, { ...second, status: "failed", failure_reason: "expired_or_canceled_card" })
    assert.deepInclude(await chargeOf(pending.id), { amount_refunded: 600, refunded: false })
    const charge = await chargeOf(failing.id)
    assert.deepInclude(charge, { amount_refunded: 0, refunded: false })
    assert.deepStrictEqual((await get(`/v1/payment_intents/${failing.id}`)).body.charges.data, [charge])
    assert.deepStrictEqual((await eventTypes(first.id, first.charge)).slice(2), ["refund.updated", "charge.refunded"])
    assert.deepStrictEqual((await eventTypes(second.id, second.charge)).slice(3), ["refund.updated", "refund.failed"])
  })

  it.effect.prop(
    "never exceed the captured amount, with any number of concurrent requests",
    {
      captured: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60 })),
      card: Schema.Literals(["pm_card_visa", "pm_card_pendingRefund"]),
      amounts: Schema.Array(Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })))).check(
        Schema.isMinLength(2),
        Schema.isMaxLength(20)
      )
    },
    ({ amounts, captured, card }) =>
      eventually(async () => {
        const held = await pay({ amount: 60, payment_method: card, capture_method: "manual" })
        // The capture races with the refunds too: refunds before it are refused.
        const capture = post(`/v1/payment_intents/${held.id}/capture`, { amount_to_capture: captured })
        const asked = await Promise.all(amounts.map((amount) => refund({ payment_intent: held.id, amount })))
        assertOk(await capture)
        const accepted = asked.filter(({ status }) => status === 200)
        const total = accepted.reduce((sum, { body }) => sum + body.amount, 0)
        assert.isAtMost(total, captured)
        for (const [i, { body, status }] of asked.entries()) {
          if (status === 200) continue
          const { code } = body.error
          assert.include(["amount_too_large", "charge_already_refunded", "payment_intent_unexpected_state"], code)
          // A refund that was too large then would still be too large.
          if (code === "amount_too_large") assert.isAbove(amounts[i]!, captured - total)
          if (code === "charge_already_refunded") assert.strictEqual(total, captured)
        }
        const charge = await chargeOf(held.id)
        assert.deepInclude(charge, { amount_refunded: total, refunded: total === captured })
        assert.deepStrictEqual((await get(`/v1/payment_intents/${held.id}`)).body.charges.data, [charge])
        const { data } = (await get(`/v1/refunds?payment_intent=${held.id}&limit=100`)).body
        assert.sameMembers(
          data.map(({ id }: { id: string }) => id),
          accepted.map(({ body }) => body.id)
        )
      }),
    { arbitrary: { runs: 30, size: 20 } }
  )

  it("list: newest first, by PaymentIntent", async () => {
    const { id: payment_intent } = await pay()
    const ids: Array<string> = []
    for (const amount of [1, 2, 3]) ids.unshift((await refund({ payment_intent, amount })).body.id)
    await refund({ payment_intent: (await pay()).id })
    const page = await get(`/v1/refunds?payment_intent=${payment_intent}&limit=2`)
    assertOk(page)
    const idsOf = ({ body }: typeof page) => body.data.map(({ id }: { id: string }) => id)
    assert.deepStrictEqual(idsOf(page), ids.slice(0, 2))
    assert.deepInclude(page.body, { has_more: true, next_cursor: ids[1], url: "/v1/refunds" })
    assert.deepStrictEqual(idsOf(await get(`/v1/refunds?payment_intent=${payment_intent}&starting_after=${ids[1]}`)), [
      ids[2]
    ])
    assert.deepStrictEqual((await get("/v1/refunds?payment_intent=pi_none")).body.data, [])
    assertError(await get("/v1/refunds?payment_intent=ch_1"), 400, "parameter_invalid", "payment_intent")
    assertError(await get("/v1/refunds?charge=ch_1"), 400, "parameter_unknown", "charge")
    assertError(await get(`/v1/refunds?starting_after=${payment_intent}`), 404, "resource_missing", "starting_after")
  })
})

describe("charges", () => {
  it("charges.embedded: a PaymentIntent embeds its newest ten, and links to the others", async () => {
    const { id } = await pay({ payment_method: "pm_card_declined" })
    for (let i = 0; i < 10; i++) {
      await post(`/v1/payment_intents/${id}/confirm`, { payment_method: "pm_card_declined" })
    }
    const { charges } = (await get(`/v1/payment_intents/${id}`)).body
    const all = (await get(`/v1/charges?payment_intent=${id}&limit=100`)).body.data
    assert.lengthOf(all, 11)
    assert.deepStrictEqual(charges, {
      object: "list",
      data: all.slice(0, 10),
      has_more: true,
      url: `/v1/charges?payment_intent=${id}`,
      next_cursor: all[9].id
    })
    const rest = await get(`${charges.url}&starting_after=${charges.next_cursor}`)
    assert.deepStrictEqual(rest.body.data, all.slice(10))
  })

  it("charges.list: retrieve and list, and nothing else", async () => {
    const customer = (await post("/v1/customers")).body.id
    const paid = await pay({ customer })
    const reply = await get(`/v1/charges/${paid.latest_charge}`)
    assertOk(reply)
    assert.deepStrictEqual(reply.body, paid.charges.data[0])
    Schema.decodeUnknownSync(Charge)(reply.body, { onExcessProperty: "error" })
    await pay()
    assert.deepStrictEqual((await get(`/v1/charges?customer=${customer}`)).body.data, [reply.body])
    assert.deepStrictEqual((await get(`/v1/charges?customer=${customer}&payment_intent=${paid.id}`)).body.data, [
      reply.body
    ])
    assert.deepStrictEqual((await get(`/v1/charges?customer=${customer}&payment_intent=pi_none`)).body.data, [])
    assertError(await get("/v1/charges?customer=pi_1"), 400, "parameter_invalid", "customer")
    assertError(await get("/v1/charges?payment_intent=cus_1"), 400, "parameter_invalid", "payment_intent")
    assertError(await get(`/v1/charges/${paid.id}`), 404, "resource_missing", "id")
    const live = await server.request("GET", `/v1/charges/${reply.body.id}`, { key: server.keys.secretLive })
    assertError(live, 404, "resource_missing", "id")
    assert.strictEqual(live.body.error.message, `No Charge found with ID '${reply.body.id}'.`)
    assert.strictEqual((await post("/v1/charges")).status, 405)
    assert.strictEqual((await post(`/v1/charges/${reply.body.id}`)).status, 405)
  })
})
