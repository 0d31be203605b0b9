/** PaymentIntents and their charges, through a real socket. */
import { assert, describe, it } from "@effect/vitest"
import { get, openShop, post } from "../support/fixtures/CheckoutSessions.ts"
import { assertError, assertOk } from "./Assertions.ts"

openShop()

const create = (body: object = {}) => post("payment_intents", { amount: 2000, currency: "usd", ...body })

describe("payment intents", () => {
  it("payment_intents.cancel: are canceled for one of four reasons, or for none", async () => {
    for (const reason of ["abandoned", "duplicate", "fraudulent", "requested_by_customer", null]) {
      const { id } = (await create()).body
      const canceled = await post(`payment_intents/${id}/cancel`, { cancellation_reason: reason })
      assertOk(canceled)
      assert.deepInclude(canceled.body, { status: "canceled", cancellation_reason: reason })
    }
    const { id } = (await create()).body
    for (const cancellation_reason of ["automatic", "failed_invoice", ""]) {
      const refused = await post(`payment_intents/${id}/cancel`, { cancellation_reason })
      assertError(refused, 400, "parameter_invalid", "cancellation_reason")
    }
    assert.strictEqual((await get(`payment_intents/${id}`)).body.status, "requires_payment_method")
  })

  it("payment_intents.payment_method_type: is the payment method's, and supplies none", async () => {
    const { id } = (await create()).body
    const confirm = (body: object) => post(`payment_intents/${id}/confirm`, body)
    for (const payment_method_type of ["sepa_debit", "Card", ""]) {
      const refused = await confirm({ payment_method: "pm_card_visa", payment_method_type })
      assertError(refused, 400, "parameter_invalid", "payment_method_type")
    }
    const none = await confirm({ payment_method_type: "card" })
    assert.strictEqual(none.status, 400)
    assert.include(none.body.error.message, "has no payment method")
    const paid = await confirm({ payment_method: "pm_card_visa", payment_method_type: "card" })
    assert.strictEqual(paid.body.status, "succeeded")
  })
})

describe("charges", () => {
  it("charges.object: have these fields, whether the attempt succeeded or failed", async () => {
    const order = { confirm: true, description: "Two books", metadata: { order: "7" } }
    const paid = (await create({ ...order, payment_method: "pm_card_visa" })).body
    const { billing_details, created, id, ...rest } = (await get(`charges/${paid.latest_charge}`)).body
    assert.match(id, /^ch_[0-9A-Za-z]{24}$/)
    assert.isTrue(Number.isInteger(created))
    assert.deepStrictEqual(billing_details, { email: null, name: null, phone: null, address: null })
    const card = { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034, funding: "credit", country: "US" }
    const charge = {
      object: "charge",
      amount: 2000,
      currency: "usd",
      status: "succeeded",
      livemode: false,
      amount_captured: 2000,
      amount_refunded: 0,
      payment_intent: paid.id,
      payment_method: "pm_card_visa",
      failure_code: null,
      failure_message: null,
      metadata: { order: "7" },
      captured: true,
      paid: true,
      refunded: false,
      released_at: null,
      customer: null,
      description: "Two books",
      merchant_id: paid.merchant_id,
      decline_code: null,
      payment_method_details: { type: "card", card }
    }
    assert.deepStrictEqual(rest, charge)
    const declined = await create({ ...order, payment_method: "pm_card_declined" })
    const failed = (await get(`charges/${declined.body.error.charge}`)).body
    assert.sameMembers(Object.keys(failed), [...Object.keys(charge), "billing_details", "created", "id"])
    assert.deepInclude(failed, {
      status: "failed",
      paid: false,
      captured: false,
      amount_captured: 0,
      failure_code: "generic_decline",
      failure_message: "Your card was declined.",
      decline_code: "generic_decline"
    })
  })
})
