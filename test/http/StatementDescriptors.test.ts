/** Semantics payment_intents.object, through a real socket: the statement descriptor of PaymentIntents. */
import { assert, describe, it } from "@effect/vitest"
import { assertError, assertOk } from "./Assertions.ts"
import { create as createSession, get, intent, openShop, post, server } from "../support/fixtures/CheckoutSessions.ts"

openShop()

const create = async (body: object = {}) => {
  const created = await post("payment_intents", { amount: 500, currency: "usd", ...body })
  assertOk(created)
  return created.body
}
const update = (id: string, body: object) => post(`payment_intents/${id}`, body)

describe("payment_intents.object: a PaymentIntent's statement descriptor", () => {
  it("is taken at its creation, with at most 22 characters", async () => {
    for (const statement_descriptor of ["SHOP", "😀".repeat(22)]) {
      const created = await create({ statement_descriptor })
      assert.deepInclude(created, { statement_descriptor, application_fee_amount: null })
      assert.deepStrictEqual(await intent(created.id), created)
      const [event] = (await get("events?limit=1")).body.data
      assert.deepStrictEqual(event.data.object, created)
    }
    for (const statement_descriptor of [null, "", undefined]) {
      assert.isNull((await create({ statement_descriptor })).statement_descriptor)
    }
    const { id } = await create()
    for (const statement_descriptor of ["x".repeat(23), "😀".repeat(23), 1, ["SHOP"]]) {
      const body = { amount: 500, currency: "usd", statement_descriptor }
      assertError(await post("payment_intents", body), 400, "parameter_invalid", "statement_descriptor")
      assertError(await update(id, { statement_descriptor }), 400, "parameter_invalid", "statement_descriptor")
    }
  })

  it("changes until it is charged, and is unset by null and the empty string; a pending action stays", async () => {
    const methods = [{}, { payment_method: "pm_card_visa" }, { payment_method: "pm_card_3ds_required", confirm: true }]
    const statuses = ["requires_payment_method", "requires_confirmation", "requires_action"]
    for (const [i, method] of methods.entries()) {
      const before = await create({ ...method, statement_descriptor: "SHOP" })
      assert.strictEqual(before.status, statuses[i])
      for (const [sent, shown] of [
        ["OTHER", "OTHER"],
        ["", null],
        ["THIRD", "THIRD"],
        [null, null]
      ] as const) {
        const updated = await update(before.id, { statement_descriptor: sent })
        assertOk(updated)
        assert.deepStrictEqual(updated.body, { ...before, statement_descriptor: shown })
      }
    }
  })

  it("keeps its value for an existing charge", async () => {
    const visa = { payment_method: "pm_card_visa", confirm: true, statement_descriptor: "SHOP" }
    const settled = [
      await create(visa),
      await create({ ...visa, capture_method: "manual" }),
      await create({ ...visa, payment_method: "pm_card_processing_success" }),
      (await post(`payment_intents/${(await create({ statement_descriptor: "SHOP" })).id}/cancel`)).body
    ]
    const statuses = ["succeeded", "requires_capture", "processing", "canceled"]
    for (const [i, { id, status }] of settled.entries()) {
      assert.strictEqual(status, statuses[i])
      const refused = await update(id, { statement_descriptor: "OTHER", description: "D" })
      assertError(refused, 400, "payment_intent_unexpected_state", "id")
      assert.deepInclude(await intent(id), { statement_descriptor: "SHOP", description: null })
    }
  })

  it("is not a term of a Checkout Session, and application fees are for sessions only", async () => {
    const payment_intent_data = { application_fee_amount: 5 }
    const { payment_intent } = await createSession({ payment_intent_data })
    const updated = await update(payment_intent, { statement_descriptor: "SHOP" })
    assert.deepInclude(updated.body, { statement_descriptor: "SHOP", application_fee_amount: 5 })
    const body = { amount: 500, currency: "usd", application_fee_amount: 5 }
    assertError(await post("payment_intents", body), 400, "parameter_unknown", "application_fee_amount")
    const refused = await update(payment_intent, { application_fee_amount: 6 })
    assertError(refused, 400, "parameter_unknown", "application_fee_amount")
  })

  it("keys.publishable.payment_intents: is not for publishable keys", async () => {
    const { client_secret, id } = await create({ statement_descriptor: "SHOP" })
    const path = `payment_intents/${id}?client_secret=${client_secret}`
    const { body } = await get(path, { key: server.keys.publishableTest })
    assert.strictEqual(body.id, id)
    assert.notProperty(body, "statement_descriptor")
    assert.notProperty(body, "application_fee_amount")
  })
})
