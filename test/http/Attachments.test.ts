/**
 * Customers hold payment methods (semantics payment_methods.attach, payment_methods.states), and are charged with them
 * later, through a real socket.
 */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { PaymentMethod } from "../../src/domain/PaymentMethod.ts"
import { assertError, assertOk } from "./Assertions.ts"
import {
  create as openSession,
  eventsSince,
  get,
  newestEvent,
  openShop,
  post,
  server
} from "../support/fixtures/CheckoutSessions.ts"

openShop()

const CARD = { number: "5555555555554444", exp_month: 12, exp_year: 2040, cvc: "737" }
const decode = Schema.decodeUnknownSync(PaymentMethod, { onExcessProperty: "error" })

const newCustomer = async (): Promise<string> => (await post("customers", {})).body.id
const newCard = async (number = CARD.number): Promise<string> =>
  (await post("payment_methods", { type: "card", card: { ...CARD, number } })).body.id
const attach = (id: string, customer: string) => post(`payment_methods/${id}/attach`, { customer })
const attached = async (id: string, customer: string): Promise<string> => {
  const reply = await attach(id, customer)
  assertOk(reply)
  return reply.body.id
}
const detach = (id: string) => post(`payment_methods/${id}/detach`)
const pay = (body: object) => post("payment_intents", { amount: 2000, currency: "usd", confirm: true, ...body })
const shown = async (id: string) => (await get(`payment_methods/${id}`)).body
const idsOf = async (path: string): Promise<ReadonlyArray<string>> =>
  (await get(path)).body.data.map(({ id }: { readonly id: string }) => id)
const lastEvent = async () => (await get("events?limit=1")).body.data[0]

describe("attaching", () => {
  it("payment_methods.attach: gives a payment method to a customer, once", async () => {
    const customer = await newCustomer()
    const id = await newCard()
    const before = await shown(id)
    const after = await newestEvent()
    const given = await attach(id, customer)
    assertOk(given)
    decode(given.body)
    assert.deepStrictEqual(given.body, { ...before, customer })
    assert.strictEqual((await get(`payment_methods/${id}`)).text, given.text)
    const event = await lastEvent()
    assert.strictEqual(event.type, "payment_method.attached")
    assert.deepStrictEqual(event.data, { object: given.body })
    const again = await attach(id, customer)
    assert.strictEqual(again.text, given.text)
    assert.deepStrictEqual(await eventsSince(after), ["payment_method.attached"])
  })

  it("payment_methods.attach: another customer's is refused, and a repetition gets that again", async () => {
    const id = await attached(await newCard(), await newCustomer())
    const customer = await newCustomer()
    const body = { customer }
    const first = await post(`payment_methods/${id}/attach`, body, { idempotencyKey: "taken" })
    assertError(first, 400, "resource_in_use", "id")
    assert.strictEqual(first.body.error.message, `The payment method '${id}' belongs to another customer.`)
    const second = await post(`payment_methods/${id}/attach`, body, { idempotencyKey: "taken" })
    assert.strictEqual(second.text, first.text)
    assert.strictEqual(second.headers.get("idempotent-replayed"), "true")
    assert.deepStrictEqual(await idsOf(`customers/${customer}/payment_methods`), [])
  })

  it("requests.order, parameters.references: refuses missing objects, and keys without permission", async () => {
    const customer = await newCustomer()
    const id = await newCard()
    assertError(await attach("pm_unknown", "cus_unknown"), 404, "resource_missing", "id")
    assertError(await attach(id, "cus_unknown"), 404, "resource_missing", "customer")
    assertError(await attach("pm_card_visa", "cus_unknown"), 404, "resource_missing", "customer")
    assertError(await attach(customer, customer), 404, "resource_missing", "id")
    assertError(await detach("pm_unknown"), 404, "resource_missing", "id")
    await server.request("DELETE", `/v1/customers/${customer}`)
    assertError(await attach(id, customer), 404, "resource_missing", "customer")
    const live = { key: server.keys.secretLive }
    const { id: ofLive } = (await post("customers", {}, live)).body
    const inLive = await post("payment_methods/pm_card_visa/attach", { customer: ofLive }, live)
    assertError(inLive, 404, "resource_missing", "id")
    const payer = { key: server.keys.publishableTest }
    assertError(await post(`payment_methods/${id}/attach`, { customer }, payer), 403, "secret_key_required")
    assertError(await post(`payment_methods/${id}/detach`, {}, payer), 403, "secret_key_required")
    for (const path of ["payment_methods?customer=cus_x", `customers/${customer}/payment_methods`]) {
      assertError(await get(path, payer), 403, "secret_key_required")
    }
    assertError(await post(`payment_methods/${id}/detach`, { customer }), 400, "parameter_unknown", "customer")
  })

  it("payment_methods.attach: copies a built-in one, which behaves like its original", async () => {
    const customer = await newCustomer()
    const original = await shown("pm_card_visa")
    const copy = (await attach("pm_card_visa", customer)).body
    decode(copy)
    const { created, id, ...same } = copy
    assert.match(id, /^pm_[0-9A-Za-z]{24}$/)
    assert.isAbove(created, 1_700_000_000)
    assert.deepStrictEqual({ ...same, created: 0, id: "pm_card_visa", customer: null }, original)
    assert.deepStrictEqual(await shown("pm_card_visa"), original)
    assert.notStrictEqual(await attached("pm_card_visa", customer), id)
    const by = async (builtIn: string) => pay({ customer, payment_method: await attached(builtIn, customer) })
    assert.strictEqual((await pay({ customer, payment_method: id })).body.status, "succeeded")
    assert.strictEqual((await by("pm_card_authenticationRequired")).body.status, "requires_action")
    assert.strictEqual((await by("pm_card_processing_failure")).body.status, "processing")
    const declined = await by("pm_card_chargeDeclinedExpiredCard")
    assertError(declined, 402, "card_declined")
    assert.strictEqual(declined.body.error.decline_code, "expired_card")
    assertError(await by("pm_card_processor_error"), 500, "processor_unavailable")
    // Settles processing payments now, so that their events do not appear in a later test.
    await post("test_helpers/clock/advance", { seconds: 2 })
  })

  it("payment_methods.attach: a customer holds 100 payment methods", async () => {
    const customer = await newCustomer()
    for (let i = 0; i < 100; i++) await attached("pm_card_visa", customer)
    const refused = await attach("pm_card_visa", customer)
    assertError(refused, 400, "parameter_invalid", "customer")
    assert.include(refused.body.error.message, "fewer than 100 payment methods")
    assert.strictEqual((await idsOf(`customers/${customer}/payment_methods?limit=100`)).length, 100)
  })
})

describe("detaching", () => {
  it("payment_methods.attach: takes a payment method from its customer, and the event names the customer", async () => {
    const customer = await newCustomer()
    const id = await attached(await newCard(), customer)
    const before = await shown(id)
    const taken = await detach(id)
    assertOk(taken)
    assert.deepStrictEqual(taken.body, { ...before, customer: null })
    const event = await lastEvent()
    assert.strictEqual(event.type, "payment_method.detached")
    assert.deepStrictEqual(event.data, { object: taken.body, previous_attributes: { customer } })
    assert.deepStrictEqual(await idsOf(`customers/${customer}/payment_methods`), [])
  })

  it("payment_methods.attach: a payment method without a customer cannot be detached", async () => {
    const id = await newCard()
    for (const one of [id, "pm_card_visa"]) {
      const refused = await detach(one)
      assertError(refused, 400, "parameter_invalid", "id")
      assert.include(refused.body.error.message, "a payment method that a customer has")
    }
    await detach(await attached(id, await newCustomer()))
    assertError(await detach(id), 400, "parameter_invalid", "id")
  })

  it("payment_methods.states: a detached payment method can be neither attached nor charged again", async () => {
    const customer = await newCustomer()
    const id = await attached(await newCard(), customer)
    await detach(id)
    for (const one of [customer, await newCustomer()])
      assertError(await attach(id, one), 400, "parameter_invalid", "id")
    const { id: later } = (await pay({ customer, payment_method: id, confirm: false })).body
    const after = await newestEvent()
    for (const refused of [
      await pay({ customer, payment_method: id }),
      await pay({ payment_method: id }),
      await post(`payment_intents/${later}/confirm`),
      await post(`payment_intents/${later}/confirm`, { payment_method: id })
    ]) {
      assertError(refused, 400, "parameter_invalid", "payment_method")
      assert.include(refused.body.error.message, "was not detached before")
    }
    assert.deepStrictEqual(await eventsSince(after), [])
    assertOk(await post(`payment_intents/${later}/confirm`, { payment_method: await newCard() }))
  })

  it("payment_methods.usable: payments that wait for the payer end with it, and charges stand", async () => {
    const customer = await newCustomer()
    const paymentBy = async (builtIn: string, body: object = {}) => {
      const payment_method = await attached(builtIn, customer)
      const { id } = (await pay({ customer, payment_method, ...body })).body
      assertOk(await detach(payment_method))
      return { id, payment_method }
    }
    const status = async (id: string) => (await get(`payment_intents/${id}`)).body.status
    const helper = (id: string) => post(`test_helpers/payment_intents/${id}/authenticate`, { outcome: "success" })
    for (const confirmation_method of ["automatic", "manual"]) {
      const asked = await paymentBy("pm_card_3ds_required", { confirmation_method })
      const after = await newestEvent()
      const failed = await helper(asked.id)
      assertOk(failed)
      assert.deepInclude(failed.body, { status: "requires_payment_method", payment_method: null, latest_charge: null })
      assert.deepStrictEqual(failed.body.last_payment_error, {
        type: "payment_error",
        code: "payment_intent_authentication_failure",
        message: "The payment method can no longer be used for this payment.",
        payment_method: asked.payment_method
      })
      assert.deepStrictEqual(await eventsSince(after), ["payment_intent.payment_failed"])
    }
    const held = await paymentBy("pm_card_visa", { capture_method: "manual" })
    assert.strictEqual((await post(`payment_intents/${held.id}/capture`)).body.status, "succeeded")
    assertOk(await post("refunds", { payment_intent: held.id }))
    const processing = await paymentBy("pm_card_processing_success", { setup_future_usage: "off_session" })
    await post("test_helpers/clock/advance", { seconds: 2 })
    assert.strictEqual(await status(processing.id), "succeeded")
    assert.strictEqual((await shown(processing.payment_method)).customer, null)
  })

  it("payment_methods.attach: happens before a customer's deletion, in the order of attachment", async () => {
    const customer = await newCustomer()
    const late = await newCard()
    const first = await attached("pm_card_visa", customer)
    await attached(late, customer)
    const gone = await attached("pm_card_visa", customer)
    await detach(gone)
    const after = await newestEvent()
    await server.request("DELETE", `/v1/customers/${customer}`)
    const types = ["payment_method.detached", "payment_method.detached", "customer.deleted"]
    assert.deepStrictEqual(await eventsSince(after), types)
    const { data } = (await get("events?limit=3")).body
    assert.deepStrictEqual(
      data.map(({ data: { object } }: { readonly data: { readonly object: { id: string } } }) => object.id),
      [customer, late, first]
    )
    assert.strictEqual((await shown(late)).customer, null)
    assertError(await attach(late, await newCustomer()), 400, "parameter_invalid", "id")
    assertError(await pay({ payment_method: late }), 400, "parameter_invalid", "payment_method")
  })
})

describe("the lists of what a customer has", () => {
  it("payment_methods.list: show the newest first, in pages, on both routes", async () => {
    const [customer, other] = [await newCustomer(), await newCustomer()]
    const oldest = await newCard()
    const ids = [oldest, await newCard(), await attached("pm_card_amex", customer)]
    await attached(ids[1]!, customer)
    await attached("pm_card_visa", other)
    await attached(oldest, customer)
    const newestFirst = ids.toReversed()
    for (const [path, url] of [
      [`payment_methods?customer=${customer}`, "/v1/payment_methods"],
      [`customers/${customer}/payment_methods?`, `/v1/customers/${customer}/payment_methods`]
    ] as const) {
      const whole = await get(path)
      assertOk(whole)
      for (const one of whole.body.data) assert.deepStrictEqual(decode(one), await shown(one.id))
      assert.deepStrictEqual(await idsOf(path), newestFirst)
      const page = (await get(`${path}&limit=2`)).body
      assert.deepInclude(page, { object: "list", has_more: true, url, next_cursor: newestFirst[1] })
      assert.deepStrictEqual(await idsOf(`${path}&limit=2&starting_after=${newestFirst[1]}`), [oldest])
      assert.deepStrictEqual(await idsOf(`${path}&ending_before=${oldest}`), newestFirst.slice(0, 2))
    }
  })

  it("parameters.references: require an existing customer", async () => {
    const customer = await newCustomer()
    assertOk(await get(`payment_methods?customer=${customer}`))
    await server.request("DELETE", `/v1/customers/${customer}`)
    const { id: elsewhere } = (await post("customers", {}, { key: server.keys.secretLive })).body
    for (const id of [customer, elsewhere, "cus_unknown"]) {
      assertError(await get(`payment_methods?customer=${id}`), 404, "resource_missing", "customer")
      assertError(await get(`customers/${id}/payment_methods`), 404, "resource_missing", "id")
    }
    assertError(await get("payment_methods"), 400, "parameter_missing", "customer")
    assertError(await get("payment_methods?customer=pm_card_visa"), 400, "parameter_invalid", "customer")
  })
})

describe("setup_future_usage", () => {
  // Semantics payment_intents.setup_future_usage.
  it("attaches after success, and the payment names the copy of a built-in one", async () => {
    const customer = await newCustomer()
    const own = await newCard()
    const after = await newestEvent()
    const paid = (await pay({ customer, payment_method: own, setup_future_usage: "on_session" })).body
    assert.deepInclude(paid, { status: "succeeded", payment_method: own, setup_future_usage: "on_session" })
    assert.strictEqual((await shown(own)).customer, customer)
    const events = ["payment_intent.created", "payment_method.attached", "charge.succeeded", "payment_intent.succeeded"]
    assert.deepStrictEqual(await eventsSince(after), events)
    const held = (
      await pay({
        customer,
        payment_method: "pm_card_visa",
        setup_future_usage: "off_session",
        capture_method: "manual"
      })
    ).body
    assert.strictEqual(held.status, "requires_capture")
    assert.match(held.payment_method, /^pm_[0-9A-Za-z]{24}$/)
    assert.strictEqual(held.charges.data[0].payment_method, held.payment_method)
    assert.deepStrictEqual(await idsOf(`customers/${customer}/payment_methods`), [held.payment_method, own])
    const inline = { payment_method_data: { type: "card", card: CARD }, setup_future_usage: "off_session" }
    const third = (await pay({ customer, ...inline })).body
    assert.strictEqual((await shown(third.payment_method)).customer, customer)
    // A customer's own payment method is not attached again.
    const before = await newestEvent()
    await pay({ customer, payment_method: own, setup_future_usage: "off_session" })
    assert.notInclude(await eventsSince(before), "payment_method.attached")
    assertOk(await post(`payment_intents/${held.id}/capture`))
    assertOk(await post("refunds", { payment_intent: held.id }))
  })

  // Semantics payment_intents.setup_future_usage.
  it("waits until a payment has settled, or the payer has authenticated", async () => {
    const customer = await newCustomer()
    const saved = () => idsOf(`customers/${customer}/payment_methods`)
    const usage = { customer, setup_future_usage: "off_session" }
    const processing = (await pay({ ...usage, payment_method: "pm_card_processing_success" })).body
    const failing = (await pay({ ...usage, payment_method: "pm_card_processing_failure" })).body
    const asked = (await pay({ ...usage, payment_method: "pm_card_3ds_required" })).body
    assertError(await pay({ ...usage, payment_method: "pm_card_declined" }), 402, "card_declined")
    assert.strictEqual(processing.payment_method, "pm_card_processing_success")
    assert.deepStrictEqual(await saved(), [])
    await post("test_helpers/clock/advance", { seconds: 2 })
    const { body: settled } = await get(`payment_intents/${processing.id}`)
    assert.deepStrictEqual(await saved(), [settled.payment_method])
    assert.strictEqual(settled.charges.data[0].payment_method, settled.payment_method)
    assert.deepStrictEqual((await get(`charges/${settled.latest_charge}`)).body, settled.charges.data[0])
    assert.strictEqual((await get(`payment_intents/${failing.id}`)).body.status, "requires_payment_method")
    await post(`test_helpers/payment_intents/${asked.id}/authenticate`, { outcome: "success" })
    const { body: passed } = await get(`payment_intents/${asked.id}`)
    assert.deepStrictEqual(await saved(), [passed.payment_method, settled.payment_method])
  })

  // Semantics payment_intents.setup_future_usage.
  it("the payment stands if the card is now another customer's, or its own customer was deleted", async () => {
    const [customer, other, leaving] = [await newCustomer(), await newCustomer(), await newCustomer()]
    const usage = { setup_future_usage: "off_session" }
    const id = await newCard("4000000000006017")
    const payment = (await pay({ ...usage, customer, payment_method: id })).body
    const left = (await pay({ ...usage, customer: leaving, payment_method: "pm_card_processing_success" })).body
    await attached(id, other)
    await server.request("DELETE", `/v1/customers/${leaving}`)
    await post("test_helpers/clock/advance", { seconds: 2 })
    assert.deepInclude((await get(`payment_intents/${payment.id}`)).body, { status: "succeeded", payment_method: id })
    assert.strictEqual((await shown(id)).customer, other)
    const { body: paid } = await get(`payment_intents/${left.id}`)
    assert.deepInclude(paid, { status: "succeeded", payment_method: "pm_card_processing_success" })
  })

  it("payment_intents.setup_future_usage: needs a customer, from the payment or the session", async () => {
    const usage = { setup_future_usage: "off_session" }
    const customer = await newCustomer()
    const bare = (await pay({ confirm: false, payment_method: "pm_card_visa" })).body
    assert.strictEqual(bare.setup_future_usage, null)
    for (const refused of [
      await pay(usage),
      await pay({ ...usage, confirm: false }),
      await post(`payment_intents/${bare.id}`, usage),
      await post(`payment_intents/${bare.id}/confirm`, usage)
    ]) {
      assertError(refused, 400, "parameter_missing", "customer")
    }
    const update = (body: object) => post(`payment_intents/${bare.id}`, body)
    assert.deepInclude((await update({ ...usage, customer })).body, { customer, ...usage })
    assertError(await update({ customer: null }), 400, "parameter_missing", "customer")
    assert.strictEqual((await update({ setup_future_usage: null, customer: null })).body.setup_future_usage, null)
    await update({ customer })
    // A confirmation by the payer may set it, too.
    const payer = { key: server.keys.publishableTest }
    const body = { client_secret: bare.client_secret, setup_future_usage: "on_session" }
    assertOk(await post(`payment_intents/${bare.id}/confirm`, body, payer))
    const paid = (await get(`payment_intents/${bare.id}`)).body
    assert.deepInclude(paid, { setup_future_usage: "on_session", status: "succeeded" })
    assert.deepStrictEqual(await idsOf(`customers/${customer}/payment_methods`), [paid.payment_method])
    assertError(await update({ setup_future_usage: null }), 400, "payment_intent_unexpected_state", "id")
  })
})

describe("off_session", () => {
  it("pages.saved_cards: charges a saved card, and declines one that requires the payer", async () => {
    const customer = await newCustomer()
    const saved = await attached("pm_card_visa", customer)
    const asking = await attached("pm_card_authenticationRequired", customer)
    const off = { customer, off_session: true }
    assert.strictEqual((await pay({ ...off, payment_method: saved })).body.status, "succeeded")
    const after = await newestEvent()
    const declined = await pay({ ...off, payment_method: asking })
    assertError(declined, 402, "card_declined")
    const { error } = declined.body
    assert.deepInclude(error, {
      type: "payment_error",
      decline_code: "authentication_required",
      message: "Your card was declined. This payment requires authentication."
    })
    assert.deepInclude(error.payment_intent, { status: "requires_payment_method", payment_method: null })
    assert.deepInclude(error.payment_intent.charges.data[0], {
      status: "failed",
      failure_code: "authentication_required",
      payment_method: asking
    })
    const events = ["payment_intent.created", "charge.failed", "payment_intent.payment_failed"]
    assert.deepStrictEqual(await eventsSince(after), events)
    // On a later visit, the payer authenticates.
    const again = await post(`payment_intents/${error.payment_intent.id}/confirm`, { payment_method: asking })
    assert.strictEqual(again.body.status, "requires_action")
    const { id } = again.body
    assertError(await post(`payment_intents/${id}/confirm`, { off_session: true }), 402, "card_declined")
  })

  it("payment_intents.off_session: is for secret keys, and for confirmations", async () => {
    const { client_secret, id } = (await pay({ confirm: false, payment_method: "pm_card_visa" })).body
    const payer = { key: server.keys.publishableTest }
    const confirm = (off_session: boolean) =>
      post(`payment_intents/${id}/confirm`, { client_secret, off_session }, payer)
    assertError(await confirm(true), 403, "secret_key_required")
    assert.strictEqual((await confirm(false)).body.status, "succeeded")
    for (const off_session of [true, false]) {
      assertError(await pay({ confirm: false, off_session }), 400, "parameter_invalid", "off_session")
    }
  })
})

describe("the owner of a payment's card", () => {
  it("payment_intents.customer: is no customer, or the payment's own", async () => {
    const [customer, other] = [await newCustomer(), await newCustomer()]
    const saved = await attached("pm_card_visa", customer)
    assertOk(await pay({ customer, payment_method: saved }))
    assertOk(await pay({ customer, payment_method: await newCard() }))
    const { id } = (await pay({ customer, payment_method: saved, confirm: false })).body
    await post(`payment_intents/${id}`, { customer: other })
    for (const refused of [
      await pay({ customer: other, payment_method: saved }),
      await pay({ payment_method: saved }),
      await post(`payment_intents/${id}/confirm`)
    ]) {
      assertError(refused, 400, "parameter_invalid", "payment_method")
      assert.include(refused.body.error.message, "that no other customer owns")
    }
    await post(`payment_intents/${id}`, { customer })
    assertOk(await post(`payment_intents/${id}/confirm`))
  })

  // Semantics payment_methods.attach.
  it("a free card that is attached to another customer during authentication is not charged", async () => {
    const customer = await newCustomer()
    const id = await newCard("4000000000003220")
    const asked = (await pay({ customer, payment_method: id })).body
    await attached(id, await newCustomer())
    const { body } = await post(`test_helpers/payment_intents/${asked.id}/authenticate`, { outcome: "success" })
    assert.deepInclude(body, { status: "requires_payment_method", latest_charge: null })
  })

  it("checkout.confirm, payment_intents.customer: a session accepts its own customer's cards", async () => {
    const [customer, other] = [await newCustomer(), await newCustomer()]
    const saved = await attached("pm_card_visa", customer)
    const confirm = (id: string, body: object = {}, options: object = {}) =>
      post(
        `checkout_sessions/${id}/confirm`,
        { payment_method: saved, customer_details: { email: "jo@example.com" }, ...body },
        options
      )
    const of = async (body: object) => (await openSession(body)).id
    for (const id of [
      await of({ customer: other }),
      await of({}),
      await of({ customer_creation: "always" }),
      await of({ customer: other, ui_mode: "custom" })
    ]) {
      assertError(await confirm(id), 400, "parameter_invalid", "payment_method")
      assert.strictEqual((await get(`checkout_sessions/${id}`)).body.status, "open")
    }
    const own = await confirm(await of({ customer }))
    assertOk(own)
    assert.deepInclude(own.body, { status: "complete", payment_status: "paid", customer })
    const { body: paid } = await get(`payment_intents/${own.body.payment_intent}`)
    assert.deepInclude(paid, { customer, payment_method: saved, setup_future_usage: null })
    const custom = await openSession({ customer, ui_mode: "custom" })
    const payer = { key: server.keys.publishableTest }
    assertOk(await confirm(custom.id, { client_secret: custom.client_secret }, payer))
    await detach(saved)
    assertError(await confirm(await of({ customer })), 400, "parameter_invalid", "payment_method")
  })

  // Semantics payment_intents.setup_future_usage.
  it("the server of a shop has a session's card saved by its PaymentIntent", async () => {
    const customer = await newCustomer()
    const session = await openSession({ customer })
    const usage = { setup_future_usage: "off_session" }
    assertOk(await post(`payment_intents/${session.payment_intent}`, usage))
    const body = { payment_method: "pm_card_visa", customer_details: { email: "jo@example.com" } }
    const after = await newestEvent()
    assertOk(await post(`checkout_sessions/${session.id}/confirm`, body))
    assert.deepStrictEqual(await eventsSince(after), [
      "payment_method.attached",
      "charge.succeeded",
      "payment_intent.succeeded",
      "checkout.session.completed"
    ])
    assert.strictEqual((await idsOf(`customers/${customer}/payment_methods`)).length, 1)
  })
})
