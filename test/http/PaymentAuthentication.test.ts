/**
 * Semantics payment_intents.authentication.terms, through a real socket: the server confirms again after an
 * authentication that the payer has passed.
 */
import { assert, describe, it } from "@effect/vitest"
import { assertOk } from "./Assertions.ts"
import { intent, openShop, post } from "../support/fixtures/CheckoutSessions.ts"

openShop()

const CHALLENGING = "pm_card_3ds_required"

/** A PaymentIntent of 500 US cents that its payer has authenticated, and the server has yet to confirm again. */
const authenticated = async (method: object = { payment_method: CHALLENGING }) => {
  const body = { amount: 500, currency: "usd", confirmation_method: "manual", confirm: true, ...method }
  const created = await post("payment_intents", body)
  assertOk(created)
  const { id } = created.body
  const passed = await post(`test_helpers/payment_intents/${id}/authenticate`, { outcome: "success" })
  assert.strictEqual(passed.body.status, "requires_confirmation")
  return id as string
}

const update = async (id: string, body: object) => assertOk(await post(`payment_intents/${id}`, body))
const confirm = async (id: string, body: object = {}) => {
  const confirmed = await post(`payment_intents/${id}/confirm`, body)
  assertOk(confirmed)
  return confirmed.body
}

describe("payment_intents.authentication.terms: a passed authentication", () => {
  it.each([
    [],
    [{ amount: 400 }],
    [{ amount: 400 }, { amount: 500 }],
    [{ currency: "USD" }],
    [{ payment_method: CHALLENGING }],
    [{ description: "D", metadata: { a: "b" } }],
    [{ capture_method: "manual" }, { capture_method: "automatic" }]
  ])("holds for the same card, up to the amount: %j %j", async (...updates) => {
    const id = await authenticated()
    for (const body of updates) await update(id, body)
    assert.deepInclude(await confirm(id), { status: "succeeded", payment_method: CHALLENGING })
  })

  it.each([
    [{ amount: 501 }],
    [{ amount: 400 }, { amount: 501 }],
    [{ amount: 501 }, { amount: 500 }],
    [{ amount: 501 }, { amount: 1 }],
    [{ currency: "eur" }],
    [{ currency: "eur", amount: 1 }],
    [{ currency: "eur" }, { currency: "usd" }],
    [{ payment_method: "pm_card_visa" }, { payment_method: CHALLENGING }],
    [{ payment_method: null }, { payment_method: CHALLENGING }],
    [{ amount: 501, payment_method: CHALLENGING }]
  ])("is cleared permanently by other terms: %j %j", async (...updates) => {
    const id = await authenticated()
    for (const body of updates) await update(id, body)
    const challenged = await confirm(id)
    assert.deepInclude(challenged, { status: "requires_action", amount_received: 0 })
    assert.deepStrictEqual(challenged.charges.data, [])
    // After the payer has agreed to the new terms, those are charged.
    assertOk(await post(`test_helpers/payment_intents/${id}/authenticate`, { outcome: "success" }))
    const { amount, currency } = await intent(id)
    const { charges, status } = await confirm(id)
    assert.strictEqual(status, "succeeded")
    assert.deepInclude(charges.data[0], { amount, currency })
  })

  it("does not apply to the same card, sent again", async () => {
    const payment_method_data = { type: "card", card: { number: "4000000000003220", exp_month: 12, exp_year: 2040 } }
    const id = await authenticated({ payment_method_data })
    const { payment_method } = await intent(id)
    const challenged = await confirm(id, { payment_method_data })
    assert.strictEqual(challenged.status, "requires_action")
    assert.notStrictEqual(challenged.payment_method, payment_method)
    assert.strictEqual((await confirm(await authenticated({ payment_method_data }))).status, "succeeded")
  })

  it("is used up by an attempt", async () => {
    const id = await authenticated()
    const declined = await post(`payment_intents/${id}/confirm`, { payment_method: "pm_card_declined" })
    assert.strictEqual(declined.status, 402)
    assert.strictEqual((await confirm(id, { payment_method: CHALLENGING })).status, "requires_action")
  })
})
