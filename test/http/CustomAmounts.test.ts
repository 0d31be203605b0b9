/**
 * Semantics checkout.custom_amount, checkout.custom_amount.confirm, through a real socket: the payer chooses the
 * amount.
 */
import { assert, describe, it } from "@effect/vitest"
import { AMOUNT_MAX } from "../../src/domain/Money.ts"
import { assertError, assertOk } from "./Assertions.ts"
import {
  catalog,
  confirm,
  create,
  eventsSince,
  get,
  intent,
  line,
  newestEvent,
  openShop,
  post,
  price,
  server,
  session
} from "../support/fixtures/CheckoutSessions.ts"

openShop()

const PAID = ["charge.succeeded", "payment_intent.succeeded", "checkout.session.completed"]

const custom = async (terms: object = {}): Promise<string> =>
  (await price({ custom_unit_amount: { enabled: true, ...terms } })).id

/** A session with one line whose amount the payer chooses. */
const sell = async (terms: object = {}, body: object = {}) =>
  create({ line_items: [{ price: await custom(terms) }], ...body })

const lines = async (
  id: string
): Promise<ReadonlyArray<{ readonly amount_subtotal: number; readonly amount_total: number }>> =>
  (await get(`checkout_sessions/${id}/line_items`)).body.data

const param = "custom_unit_amount"

describe("a session whose payer chooses the amount", () => {
  it.each([
    [{ preset: 700, minimum: 300 }, 700],
    [{ minimum: 300 }, 300],
    [{ preset: 0 }, 0],
    [{ minimum: 0 }, 0],
    [{}, 0]
  ])("begins with the preset, else the minimum, else no amount: %j", async (terms, amount) => {
    const since = await newestEvent()
    const { amount_subtotal, amount_total, id, payment_intent, payment_status, status } = await sell(terms)
    assert.deepStrictEqual(
      { amount_subtotal, amount_total, payment_status, status },
      { amount_subtotal: amount, amount_total: amount, payment_status: "unpaid", status: "open" }
    )
    assert.deepStrictEqual(
      (await lines(id)).map(({ amount_total }) => amount_total),
      [amount]
    )
    if (amount === 0) {
      assert.isNull(payment_intent)
      assert.deepStrictEqual(await eventsSince(since), ["price.created"])
    } else {
      assert.strictEqual((await intent(payment_intent)).amount, amount)
    }
  })

  it("applies the amount at confirmation to all objects, and creates the payment then", async () => {
    const data = {
      description: "A gift",
      statement_descriptor: "GIFT",
      application_fee_amount: 50,
      metadata: { campaign: "7" }
    }
    const { id } = await sell({}, { payment_intent_data: data, metadata: { order: "1" } })
    const since = await newestEvent()
    const { body } = await confirm(id, { custom_unit_amount: 1234 })
    assert.deepInclude(body, {
      status: "complete",
      payment_status: "paid",
      amount_subtotal: 1234,
      amount_total: 1234,
      metadata: { order: "1" }
    })
    assert.deepStrictEqual(await session(id), body)
    assert.deepInclude((await lines(id))[0], { amount_subtotal: 1234, amount_total: 1234 })
    const paid = await intent(body.payment_intent)
    assert.deepInclude(paid, { status: "succeeded", amount: 1234, amount_received: 1234, ...data })
    assert.strictEqual(paid.charges.data[0].amount, 1234)
    assert.deepStrictEqual(await eventsSince(since), ["payment_intent.created", ...PAID])
    const { body: refund } = await post("refunds", { payment_intent: paid.id, amount: 1000 })
    assert.deepInclude(refund, { status: "succeeded", amount: 1000 })
    assertError(await post("refunds", { payment_intent: paid.id, amount: 235 }), 400, "amount_too_large", "amount")
  })

  it("keeps the capture method for then, and creates the customer", async () => {
    const body = { payment_intent_data: { capture_method: "manual" }, customer_creation: "always" }
    const { id } = await sell({}, body)
    const since = await newestEvent()
    const { body: held } = await confirm(id, { custom_unit_amount: 900 })
    assert.deepInclude(held, { status: "complete", payment_status: "unpaid", amount_total: 900 })
    assert.deepInclude(await intent(held.payment_intent), {
      status: "requires_capture",
      amount_capturable: 900,
      customer: held.customer
    })
    const reserved = ["charge.succeeded", "payment_intent.amount_capturable_updated", "checkout.session.completed"]
    assert.deepStrictEqual(await eventsSince(since), ["payment_intent.created", "customer.created", ...reserved])
  })

  it("changes an existing payment, and adds the other lines", async () => {
    const price = await custom({ minimum: 300, preset: 700 })
    const line_items = [{ price: catalog.price, quantity: 2 }, { price }]
    const { amount_total, id, payment_intent } = await create({ line_items })
    assert.strictEqual(amount_total, 3998 + 700)
    const { body } = await confirm(id, { custom_unit_amount: 300 })
    assert.deepInclude(body, { amount_total: 3998 + 300, amount_subtotal: 3998 + 300, payment_intent })
    assert.deepInclude(await intent(payment_intent), { amount: 4298, amount_received: 4298 })
    assert.deepStrictEqual(
      (await lines(id)).map(({ amount_total }) => amount_total),
      [3998, 300]
    )
  })

  it("waits for the amount, for any total of the other lines, and is never completed without it", async () => {
    for (const line_items of [[{ price: await custom() }], [{ price: await custom() }, { price: catalog.price }]]) {
      const { id, payment_intent } = await create({ line_items })
      assert.isNull(payment_intent)
      for (const body of [{}, { custom_unit_amount: null }, { payment_method: null }]) {
        assertError(await confirm(id, body), 400, "parameter_missing", param)
      }
      assertError(await confirm(id, { custom_unit_amount: 0 }), 400, "parameter_invalid", param)
      assertError(
        await confirm(id, { custom_unit_amount: 5, payment_method: null }),
        400,
        "payment_intent_unexpected_state",
        "payment_method"
      )
      assert.deepInclude(await session(id), { status: "open", payment_status: "unpaid", payment_intent: null })
      const { body } = await post(`checkout_sessions/${id}/expire`)
      assert.deepInclude(body, { status: "expired", payment_status: "unpaid", payment_intent: null })
    }
  })

  it.each([
    [{ minimum: 300, maximum: 900 }, 299, "parameter_invalid", "an integer from 300 to 900"],
    [{ minimum: 300, maximum: 900 }, 901, "parameter_invalid", "an integer from 300 to 900"],
    [{ minimum: 300, maximum: 900 }, AMOUNT_MAX + 1, "parameter_invalid", "an integer from 300 to 900"],
    [{ minimum: 300 }, 299, "parameter_invalid", "an integer of at least 300"],
    [{}, AMOUNT_MAX + 1, "amount_too_large", `at most ${AMOUNT_MAX}`]
  ])("refuses an amount out of bounds: %j, %d", async (terms, custom_unit_amount, code, rule) => {
    const { id } = await sell(terms)
    const refused = await confirm(id, { custom_unit_amount })
    assertError(refused, 400, code, param)
    assert.include(refused.body.error.message, rule)
    assertOk(await confirm(id, { custom_unit_amount: 300 }))
  })

  it("counts the other lines towards the cap", async () => {
    const line_items = [{ price: await custom() }, { price: catalog.price }]
    const { id } = await create({ line_items })
    const refused = await confirm(id, { custom_unit_amount: AMOUNT_MAX - 1998 })
    assertError(refused, 400, "amount_too_large", param)
    assert.include(refused.body.error.message, String(AMOUNT_MAX - 1999))
    const { body } = await confirm(id, { custom_unit_amount: AMOUNT_MAX - 1999 })
    assert.strictEqual(body.amount_total, AMOUNT_MAX)
    const { id: full } = await price({ unit_amount: AMOUNT_MAX })
    const filled = await post("checkout_sessions", {
      mode: "payment",
      line_items: [{ price: full }, { price: await custom() }],
      success_url: "https://shop.example"
    })
    assertError(filled, 400, "amount_too_large", "line_items")
  })

  it("refuses an amount if there is none to choose", async () => {
    const { id } = await create()
    assertError(await confirm(id, { custom_unit_amount: 3998 }), 400, "parameter_invalid", param)
    assertOk(await confirm(id, { custom_unit_amount: null }))
  })

  it("keeps the last chosen amount, and accepts another", async () => {
    const { id } = await sell()
    const declined = await confirm(id, { custom_unit_amount: 500, payment_method: "pm_card_declined" })
    assert.strictEqual(declined.status, 402)
    const { payment_intent } = await session(id)
    assert.deepInclude(await session(id), { status: "open", amount_total: 500 })
    assert.deepInclude(declined.body.error.payment_intent, { id: payment_intent, amount: 500 })

    const challenged = await confirm(id, { payment_method: "pm_card_3ds_required" })
    assert.deepInclude(challenged.body, { status: "open", amount_total: 500, payment_intent })
    // An authentication for another amount is requested again.
    const again = await confirm(id, { custom_unit_amount: 800, payment_method: null })
    assert.deepInclude(again.body, { status: "open", amount_total: 800, payment_intent })
    assert.deepInclude(await intent(payment_intent), { status: "requires_action", amount: 800 })
    assertOk(await post(`test_helpers/payment_intents/${payment_intent}/authenticate`, { outcome: "success" }))
    assert.deepInclude(await session(id), { status: "complete", amount_total: 800 })
    const amounts = (await intent(payment_intent)).charges.data.map(({ amount }: { amount: number }) => amount)
    assert.deepStrictEqual(amounts, [800, 500])
  })

  it("forgets the amount of a failed attempt", async () => {
    const { id } = await sell()
    const failed = await confirm(id, { custom_unit_amount: 500, payment_method: "pm_card_processor_error" })
    assert.strictEqual(failed.body.error.code, "processor_unavailable")
    assert.deepInclude(await session(id), { amount_total: 0, payment_intent: null })
    assertError(await confirm(id), 400, "parameter_missing", param)
  })

  it("checkout.payment_intent_data: requires an amount of at least the fee", async () => {
    const field = "payment_intent_data[application_fee_amount]"
    const fee = (application_fee_amount: number) => ({ payment_intent_data: { application_fee_amount } })
    const { id } = await sell({ minimum: 300, preset: 700 }, fee(500))
    const refused = await confirm(id, { custom_unit_amount: 499 })
    assertError(refused, 400, "parameter_invalid", param)
    assert.include(refused.body.error.message, "at least 500")
    assert.strictEqual((await confirm(id, { custom_unit_amount: 500 })).body.amount_total, 500)

    const open = await sell({ maximum: 900 }, fee(900))
    assertError(await confirm(open.id, { custom_unit_amount: 899 }), 400, "parameter_invalid", param)
    assertOk(await confirm(open.id, { custom_unit_amount: 900 }))
    for (const [terms, amount] of [
      [{ maximum: 900 }, 901],
      [{ minimum: 300, preset: 700 }, 701]
    ] as const) {
      const sent = await line({ price: await custom(terms) }, fee(amount))
      assertError(sent, 400, "parameter_invalid", field)
    }
    const beside = await create({ line_items: [{ price: catalog.price }, { price: await custom() }], ...fee(2000) })
    assertOk(await confirm(beside.id, { custom_unit_amount: 1 }))
  })

  it("checkout.custom_amount: allows one such line, once, whose amount can be above 0", async () => {
    const [one, other] = [await custom(), await custom({ preset: 5 })]
    for (const [line_items, field] of [
      [[{ price: one, quantity: 2 }], "line_items[0][quantity]"],
      [[{ price: one }, { price: catalog.price }, { price: other }], "line_items[2][price]"],
      [[{ price: one }, { price: one }], "line_items[1][price]"],
      [[{ price: await custom({ maximum: 0 }) }], "line_items[0][price]"]
    ] as const) {
      const body = { mode: "payment", line_items, success_url: "https://shop.example" }
      assertError(await post("checkout_sessions", body), 400, "parameter_invalid", field)
    }
  })

  it("checkout.confirm: is paid by a page with a publishable key, once for one idempotency key", async () => {
    const { client_secret, id } = await sell({ minimum: 300 }, { ui_mode: "custom", success_url: null })
    const options = { key: server.keys.publishableTest, idempotencyKey: "chosen" }
    const pay = (custom_unit_amount: number) =>
      post(
        `checkout_sessions/${id}/confirm`,
        {
          client_secret,
          payment_method: "pm_card_visa",
          customer_details: { email: "payer@example.com" },
          custom_unit_amount
        },
        options
      )
    const first = await pay(450)
    assertOk(first)
    assert.strictEqual(first.body.amount_total, 450)
    assert.deepStrictEqual((await pay(450)).body, first.body)
    assert.strictEqual((await pay(451)).body.error.code, "idempotency_key_reuse")
    const paid = await intent(first.body.payment_intent)
    assert.lengthOf(paid.charges.data, 1)
  })

  it("checkout.payment_intent: leaves the amount of its PaymentIntent to the session", async () => {
    const { id, payment_intent } = await sell({ minimum: 300 })
    const refused = await post(`payment_intents/${payment_intent}`, { amount: 500 })
    assertError(refused, 400, "payment_intent_unexpected_state", "id")
    assertOk(await post(`payment_intents/${payment_intent}/confirm`, { payment_method: "pm_card_visa" }))
    assert.deepInclude(await session(id), { status: "complete", amount_total: 300 })
  })
})
