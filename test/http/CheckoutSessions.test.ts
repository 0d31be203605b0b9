/** Semantics §1.15 and I-18, row by row, through a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Transaction } from "../../src/engine/Transaction.ts"
import { CHECKOUT_SESSION } from "../../src/payments/Documents.ts"
import * as TimerNames from "../../src/payments/TimerNames.ts"
import { assertError, assertOk } from "./Assertions.ts"
import type { RequestOptions, TestServer } from "./TestServer.ts"
import { start } from "./TestServer.ts"

let server: TestServer
/** Products and prices to sell, made once. */
let catalog: Readonly<Record<"product" | "inactiveProduct" | "price" | "yen" | "free" | "custom" | "archived", string>>

const post = (path: string, body?: unknown, options: RequestOptions = {}) =>
  server.request("POST", `/v1/${path}`, { body, ...options })
const get = (path: string, options: RequestOptions = {}) => server.request("GET", `/v1/${path}`, options)
const product = async (name: string, body: object = {}) => (await post("products", { name, ...body })).body.id
const price = async (body: object) =>
  (await post("prices", { product: catalog.product, currency: "usd", ...body })).body

beforeAll(async () => {
  server = await start()
  catalog = { ...catalog, product: await product("T-shirt") }
  catalog = {
    ...catalog,
    inactiveProduct: await product("Gone", { active: false }),
    price: (await price({ unit_amount: 1999 })).id,
    yen: (await price({ unit_amount: 500, currency: "jpy" })).id,
    free: (await price({ unit_amount: 0 })).id,
    custom: (await price({ custom_unit_amount: { enabled: true, minimum: 300, maximum: 900, preset: 700 } })).id,
    archived: (await price({ unit_amount: 5, active: false })).id
  }
})
afterAll(() => server.close())

const hosted = (body: object = {}) => ({
  mode: "payment",
  line_items: [{ price: catalog.price, quantity: 2 }],
  success_url: "https://shop.example/thanks?session={CHECKOUT_SESSION_ID}",
  ...body
})
const create = async (body: object = {}) => {
  const created = await post("checkout_sessions", hosted(body))
  assertOk(created)
  return created.body
}
const confirm = (id: string, body: object = {}) =>
  post(`checkout_sessions/${id}/confirm`, {
    payment_method: "pm_card_visa",
    customer_details: { email: "payer@example.com" },
    ...body
  })
const session = async (id: string) => (await get(`checkout_sessions/${id}`)).body
const intent = async (id: string) => (await get(`payment_intents/${id}`)).body
const state = async (id: string) => {
  const { payment_status, status } = await session(id)
  return `${status} ${payment_status}`
}
/** The types of the newest events, oldest first, from the first one behind `after`. */
const eventsSince = async (after: string | undefined) => {
  const { data } = (await get("events?limit=100")).body
  const end = after === undefined ? data.length : data.findIndex(({ id }: { id: string }) => id === after)
  return data
    .slice(0, end)
    .map(({ type }: { type: string }) => type)
    .toReversed()
}
const newestEvent = async () => (await get("events?limit=1")).body.data[0]?.id
const line = (body: object, rest: object = {}) => post("checkout_sessions", hosted({ line_items: [body], ...rest }))

describe("creation", () => {
  it("answers with every field of the specification", async () => {
    const since = await newestEvent()
    const body = {
      cancel_url: "https://shop.example/cart",
      client_reference_id: "order 1",
      metadata: { order: "1" },
      billing_address_collection: "required"
    }
    const { client_secret, created, expires_at, id, payment_intent, ...rest } = await create(body)
    assert.match(id, /^cs_[0-9A-Za-z]{24}$/)
    assert.match(payment_intent, /^pi_/)
    assert.strictEqual(client_secret, null)
    assert.strictEqual(expires_at, created + 86_400)
    assert.deepStrictEqual(rest, {
      object: "checkout.session",
      mode: "payment",
      status: "open",
      payment_status: "unpaid",
      ui_mode: "hosted",
      customer_creation: "if_required",
      livemode: false,
      url: `https://pay.example.test/checkout/${id}`,
      success_url: hosted().success_url,
      customer: null,
      customer_email: null,
      currency: "usd",
      amount_subtotal: 3998,
      amount_total: 3998,
      total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
      ...body
    })
    assert.deepStrictEqual(await eventsSince(since), ["payment_intent.created"])
  })

  it("S1: retrieve", async () => {
    const created = await create()
    assert.deepStrictEqual(await session(created.id), created)
    assertError(await get("checkout_sessions/cs_none"), 404, "resource_missing", "id")
    assertError(await get(`checkout_sessions/${created.payment_intent}`), 404, "resource_missing", "id")
    assertError(await get(`checkout_sessions/${created.id}_line_items`), 404, "resource_missing", "id")
    const live = { key: server.keys.secretLive }
    assertError(await get(`checkout_sessions/${created.id}`, live), 404, "resource_missing", "id")
    for (const operation of ["expire", "confirm"]) {
      assertError(await post(`checkout_sessions/cs_none/${operation}`), 404, "resource_missing", "id")
    }
    assertError(await get("checkout_sessions/cs_none/line_items"), 404, "resource_missing", "id")
  })

  it("S2: a PaymentIntent if there is something to pay", async () => {
    const { payment_intent } = await create()
    assert.deepInclude(await intent(payment_intent), {
      amount: 3998,
      currency: "usd",
      status: "requires_payment_method",
      confirmation_method: "automatic"
    })
    assert.strictEqual((await create({ line_items: [{ price: catalog.free }] })).payment_intent, null)
  })

  it("S3: what a line has to be", async () => {
    const { price: id, product: productId } = catalog
    const data = { currency: "usd", product: productId, unit_amount: 1 }
    assertError(await post("checkout_sessions", { mode: "payment" }), 400, "parameter_missing", "line_items")
    for (const line_items of [[], Array.from({ length: 101 }, () => ({ price: id })), "x"]) {
      assertError(await post("checkout_sessions", hosted({ line_items })), 400, "parameter_invalid", "line_items")
    }
    assertOk(
      await post("checkout_sessions", hosted({ line_items: Array.from({ length: 100 }, () => ({ price: id })) }))
    )
    assertError(await line({}), 400, "parameter_missing", "line_items[0][price]")
    assertError(await line({ quantity: 2 }), 400, "parameter_missing", "line_items[0][price]")
    assertError(await line({ price: id, price_data: data }), 400, "parameters_exclusive", "line_items[0][price_data]")
    for (const quantity of [0, -1, 1.5, 1_000_000, "1"]) {
      assertError(await line({ price: id, quantity }), 400, "parameter_invalid", "line_items[0][quantity]")
    }
    assertOk(await line({ price: id, quantity: 999_999 }))
    assert.strictEqual((await line({ price: id })).body.amount_total, 1999)
    assertError(await line({ price: "prod_1" }), 400, "parameter_invalid", "line_items[0][price]")
    assertError(await line({ price: "price_none" }), 404, "resource_missing", "line_items[0][price]")
    assertError(await line({ price: catalog.archived }), 400, "price_inactive", "line_items[0][price]")
    assertError(await line({ price: id, name: "x" }), 400, "parameter_unknown", "line_items[0][name]")
  })

  it("S3, §8.19: an inactive product cannot be sold", async () => {
    const { body: sold } = await post("prices", { product: catalog.inactiveProduct, currency: "usd", unit_amount: 1 })
    assertError(await line({ price: sold.id }), 400, "product_inactive", "line_items[0][price]")
    const data = { currency: "usd", product: catalog.inactiveProduct, unit_amount: 1 }
    assertError(await line({ price_data: data }), 400, "product_inactive", "line_items[0][price_data][product]")
  })

  it("S4: price_data makes an inactive price, without an event", async () => {
    const since = await newestEvent()
    const data = { currency: "EUR", product: catalog.product, unit_amount: 250, tax_behavior: "inclusive" }
    const created = await line({ price_data: data, quantity: 3 })
    assertOk(created)
    assert.deepInclude(created.body, { amount_total: 750, currency: "eur" })
    assert.deepStrictEqual(await eventsSince(since), ["payment_intent.created"])
    const [item] = (await get(`checkout_sessions/${created.body.id}/line_items`)).body.data
    assert.deepInclude((await get(`prices/${item.price}`)).body, {
      active: false,
      product: catalog.product,
      currency: "eur",
      unit_amount: 250,
      tax_behavior: "inclusive",
      type: "one_time"
    })
    for (const field of ["currency", "product", "unit_amount"] as const) {
      const { [field]: _, ...rest } = data
      assertError(await line({ price_data: rest }), 400, "parameter_missing", `line_items[0][price_data][${field}]`)
    }
    for (const [field, value] of [
      ["currency", "euro"],
      ["product", "price_1"],
      ["unit_amount", -1],
      ["tax_behavior", "none"]
    ] as const) {
      const refused = await line({ price_data: { ...data, [field]: value } })
      assertError(refused, 400, "parameter_invalid", `line_items[0][price_data][${field}]`)
    }
    assertError(
      await line({ price_data: { ...data, product: "prod_none" } }),
      404,
      "resource_missing",
      "line_items[0][price_data][product]"
    )
    assertError(
      await line({ price_data: { ...data, unit_amount: 1_000_000_000_000 } }),
      400,
      "amount_too_large",
      "line_items[0][price_data][unit_amount]"
    )
  })

  it("S5: recurring prices are charged for one period", async () => {
    const data = { currency: "usd", product: catalog.product, unit_amount: 250, recurring: { interval: "month" } }
    const created = await line({ price_data: data })
    assertOk(created)
    assert.strictEqual(created.body.amount_total, 250)
    const [item] = (await get(`checkout_sessions/${created.body.id}/line_items`)).body.data
    assert.deepStrictEqual((await get(`prices/${item.price}`)).body.recurring, {
      interval: "month",
      interval_count: 1,
      usage_type: "licensed"
    })
    assertError(
      await line({ price_data: { ...data, recurring: { interval: "year", interval_count: 4 } } }),
      400,
      "parameter_invalid",
      "line_items[0][price_data][recurring][interval_count]"
    )
  })

  it("S6: one currency, or the one that is given, without conversion", async () => {
    const line_items = [{ price: catalog.price }, { price: catalog.yen, quantity: 2 }]
    assertError(await post("checkout_sessions", hosted({ line_items })), 400, "parameter_invalid", "line_items")
    const created = await create({ line_items, currency: "CHF" })
    assert.deepInclude(created, { currency: "chf", amount_total: 2999 })
    assert.deepInclude(await intent(created.payment_intent), { currency: "chf", amount: 2999 })
    const items = (await get(`checkout_sessions/${created.id}/line_items`)).body.data
    assert.deepStrictEqual(
      items.map(({ currency }: { currency: string }) => currency),
      ["chf", "chf"]
    )
    for (const currency of ["us", "usdd", "u$d", 1]) {
      assertError(await post("checkout_sessions", hosted({ currency })), 400, "parameter_invalid", "currency")
    }
  })

  it("S7: how long a session lives", async () => {
    const now = Math.floor(Date.now() / 1000)
    for (const seconds of [1800, 3600, 86_400]) {
      assert.strictEqual((await create({ expires_at: now + seconds })).expires_at, now + seconds)
    }
    for (const seconds of [0, -5, 1790, 86_400 + 10]) {
      const refused = await post("checkout_sessions", hosted({ expires_at: now + seconds }))
      assertError(refused, 400, "parameter_invalid", "expires_at")
    }
    assertError(await post("checkout_sessions", hosted({ expires_at: "1" })), 400, "parameter_invalid", "expires_at")
  })

  it("S10, S11: who is going to pay, as far as it is known", async () => {
    assert.notProperty(await create(), "customer_details")
    const { body: customer } = await post("customers", { email: "c@example.com", name: "C", phone: "1" })
    const email = "other@example.com"
    assert.deepStrictEqual((await create({ customer_email: email })).customer_details, { ...nobody, email })
    const known = { ...nobody, email: "c@example.com", name: "C", phone: "1" }
    const created = await create({ customer: customer.id })
    assert.deepStrictEqual(created.customer_details, known)
    assert.strictEqual((await intent(created.payment_intent)).customer, customer.id)
    const both = await create({ customer: customer.id, customer_email: email })
    assert.deepStrictEqual(both.customer_details, { ...known, email })
    assert.deepInclude(both, { customer: customer.id, customer_email: email })
    const { body: blank } = await post("customers", {})
    assert.notProperty(await create({ customer: blank.id }), "customer_details")
    const refuse = (body: object) => post("checkout_sessions", hosted(body))
    assertError(await refuse({ customer: "cus_none" }), 404, "resource_missing", "customer")
    assertError(await refuse({ customer: "pi_1" }), 400, "parameter_invalid", "customer")
    assertError(await refuse({ customer_email: "nobody" }), 400, "parameter_invalid", "customer_email")
  })

  it("S12, S13: a page for hosted sessions, a client secret for the others", async () => {
    assert.isNull((await create()).client_secret)
    for (const ui_mode of ["embedded", "custom"]) {
      const { body } = await post("checkout_sessions", {
        mode: "payment",
        ui_mode,
        line_items: [{ price: catalog.price }]
      })
      assert.isNull(body.url)
      assert.match(body.client_secret, new RegExp(`^${body.id}_secret_[0-9A-Za-z]{24}$`))
      assert.isNull(body.success_url)
    }
    const bare = { mode: "payment", line_items: [{ price: catalog.price }] }
    assertError(await post("checkout_sessions", bare), 400, "parameter_missing", "success_url")
    for (const success_url of ["/thanks", "javascript:alert(1)"]) {
      assertError(await post("checkout_sessions", { ...bare, success_url }), 400, "parameter_invalid", "success_url")
    }
  })

  it("S19: what the PaymentIntent begins with", async () => {
    const payment_intent_data = {
      capture_method: "manual",
      description: "An order",
      statement_descriptor: "SHOP",
      metadata: { a: "b" },
      application_fee_amount: 3998
    }
    const { metadata, payment_intent } = await create({ payment_intent_data, metadata: { own: "1" } })
    assert.deepStrictEqual(metadata, { own: "1" })
    const { application_fee_amount: _, ...shown } = payment_intent_data
    assert.deepInclude(await intent(payment_intent), shown)
    for (const [field, value] of [
      ["application_fee_amount", 3999],
      ["application_fee_amount", -1],
      ["statement_descriptor", "x".repeat(23)],
      ["capture_method", "later"],
      ["description", 1]
    ] as const) {
      const refused = await post("checkout_sessions", hosted({ payment_intent_data: { [field]: value } }))
      assertError(refused, 400, "parameter_invalid", `payment_intent_data[${field}]`)
    }
    const many = Object.fromEntries(Array.from({ length: 51 }, (_value, index) => [`k${index}`, "v"]))
    assertError(
      await post("checkout_sessions", hosted({ payment_intent_data: { metadata: many } })),
      400,
      "parameter_invalid",
      "payment_intent_data[metadata]"
    )
  })

  it("S20: only payments", async () => {
    for (const mode of ["setup", "subscription", "x", 1]) {
      assertError(await post("checkout_sessions", hosted({ mode })), 400, "parameter_invalid", "mode")
    }
    assertError(await post("checkout_sessions", hosted({ mode: undefined })), 400, "parameter_missing", "mode")
  })

  it("N1, N8: caps, and amounts that the payer chooses", async () => {
    const dear = { currency: "usd", product: catalog.product, unit_amount: 999_999_999_999 }
    assert.strictEqual((await line({ price_data: dear })).body.amount_total, 999_999_999_999)
    assertError(await line({ price_data: dear, quantity: 2 }), 400, "amount_too_large", "line_items")
    const line_items = [{ price_data: dear }, { price_data: { ...dear, unit_amount: 1 } }]
    assertError(await post("checkout_sessions", hosted({ line_items })), 400, "amount_too_large", "line_items")
    assert.strictEqual((await line({ price: catalog.custom })).body.amount_total, 700)
    assertError(await line({ price: catalog.custom, quantity: 2 }), 400, "parameter_invalid", "line_items[0][quantity]")
  })

  it("refuses whatever else does not fit", async () => {
    for (const [field, value] of [
      ["customer_creation", "never"],
      ["ui_mode", "page"],
      ["billing_address_collection", "x"],
      ["client_reference_id", "x".repeat(201)],
      ["cancel_url", "x"],
      ["metadata", { a: 1 }]
    ] as const) {
      const param = field === "metadata" ? "metadata[a]" : field
      assertError(await post("checkout_sessions", hosted({ [field]: value })), 400, "parameter_invalid", param)
    }
    assertError(await post("checkout_sessions", hosted({ amount: 1 })), 400, "parameter_unknown", "amount")
  })
})

const PAID = ["charge.succeeded", "payment_intent.succeeded", "checkout.session.completed"]
const EXPIRED = ["payment_intent.canceled", "checkout.session.expired"]
const nobody = { email: null, name: null, phone: null, address: null }

describe("confirmation", () => {
  it("S8, S12, S15: completes the session, its PaymentIntent and its charge at once", async () => {
    const { id, payment_intent } = await create()
    const since = await newestEvent()
    const confirmed = await confirm(id, { customer_details: { email: "a@b.co", name: "A", address: { city: "X" } } })
    assertOk(confirmed)
    assert.deepInclude(confirmed.body, { id, status: "complete", payment_status: "paid", url: null, customer: null })
    const address = { city: "X", country: null, line1: null, line2: null, postal_code: null, state: null }
    assert.deepStrictEqual(confirmed.body.customer_details, { email: "a@b.co", name: "A", phone: null, address })
    assert.deepStrictEqual(await session(id), confirmed.body)
    assert.deepInclude(await intent(payment_intent), { status: "succeeded", amount_received: 3998 })
    assert.deepStrictEqual(await eventsSince(since), PAID)
    const [completed] = (await get("events?limit=1")).body.data
    assert.deepStrictEqual(completed.data.object, confirmed.body)
    assertError(await confirm(id), 400, "checkout_session_unexpected_state", "id")
  })

  it("S8: manual capture pays later", async () => {
    const { id, payment_intent } = await create({ payment_intent_data: { capture_method: "manual" } })
    const since = await newestEvent()
    assert.deepInclude((await confirm(id)).body, { status: "complete", payment_status: "unpaid" })
    const reserved = ["charge.succeeded", "payment_intent.amount_capturable_updated", "checkout.session.completed"]
    assert.deepStrictEqual(await eventsSince(since), reserved)
    assertOk(await post(`payment_intents/${payment_intent}/capture`, { amount_to_capture: 1000 }))
    assert.strictEqual(await state(id), "complete paid")
    const captured = ["charge.captured", "payment_intent.succeeded"]
    assert.deepStrictEqual(await eventsSince(since), [...reserved, ...captured])
  })

  it("S8: a held amount that is released leaves the session unpaid", async () => {
    const { id, payment_intent } = await create({ payment_intent_data: { capture_method: "manual" } })
    assertOk(await confirm(id))
    assertOk(await post(`payment_intents/${payment_intent}/cancel`))
    assert.strictEqual(await state(id), "complete unpaid")
  })

  it("S8: nothing to pay", async () => {
    const { id } = await create({ line_items: [{ price: catalog.free, quantity: 3 }], customer_creation: "always" })
    assert.strictEqual(await state(id), "open unpaid")
    const since = await newestEvent()
    const { body } = await confirm(id, { payment_method: null })
    assert.deepInclude(body, { status: "complete", payment_status: "no_payment_required", payment_intent: null })
    assert.match(body.customer, /^cus_/)
    assert.deepStrictEqual(await eventsSince(since), ["customer.created", "checkout.session.completed"])
  })

  it("a decline leaves it open", async () => {
    const { id, payment_intent, url } = await create()
    const since = await newestEvent()
    const declined = await confirm(id, { payment_method: "pm_card_insufficient_funds" })
    assert.strictEqual(declined.status, 402)
    assert.deepInclude(declined.body.error, { code: "card_declined", decline_code: "insufficient_funds" })
    assert.strictEqual(declined.body.error.payment_intent.id, payment_intent)
    assert.deepStrictEqual(await eventsSince(since), ["charge.failed", "payment_intent.payment_failed"])
    assert.deepInclude(await session(id), { status: "open", payment_status: "unpaid", url })
    assert.notProperty(await session(id), "customer_details")
    assertOk(await confirm(id))
  })

  it("an authentication may come between", async () => {
    const { id, payment_intent } = await create({ customer_creation: "always" })
    const since = await newestEvent()
    const challenged = await confirm(id, {
      payment_method: "pm_card_3ds_required",
      return_url: "https://shop.example/back"
    })
    assert.deepInclude(challenged.body, { status: "open", payment_status: "unpaid", customer: null })
    const { next_action } = await intent(payment_intent)
    assert.strictEqual(next_action.redirect_to_url.return_url, "https://shop.example/back")
    assert.deepStrictEqual(await eventsSince(since), ["payment_intent.requires_action"])
    assertOk(await post(`test_helpers/payment_intents/${payment_intent}/authenticate`, { outcome: "success" }))
    const completed = await session(id)
    assert.deepInclude(completed, { status: "complete", payment_status: "paid" })
    assert.deepStrictEqual(completed.customer_details, { ...nobody, email: "payer@example.com" })
    const events = ["payment_intent.requires_action", "customer.created", ...PAID]
    assert.deepStrictEqual(await eventsSince(since), events)
  })

  it("S9: creates the customer whom it wants, if it has none", async () => {
    const { id, payment_intent } = await create({ customer_creation: "always" })
    const since = await newestEvent()
    const customer_details = { email: "a@b.co", name: "A", phone: "1" }
    const { customer } = (await confirm(id, { customer_details })).body
    assert.deepInclude((await get(`customers/${customer}`)).body, customer_details)
    const paid = await intent(payment_intent)
    assert.strictEqual(paid.customer, customer)
    assert.strictEqual(paid.charges.data[0].customer, customer)
    assert.deepStrictEqual(await eventsSince(since), ["customer.created", ...PAID])
    const { body: known } = await post("customers", { email: "known@example.com" })
    const other = await create({ customer_creation: "always", customer: known.id })
    assert.strictEqual((await confirm(other.id, { customer_details: null })).body.customer, known.id)
  })

  it("S11, S14: asks for what it has to collect, unless it is known", async () => {
    const { id } = await create()
    const refused = await confirm(id, { customer_details: null })
    assertError(refused, 400, "parameter_missing", "customer_details[email]")
    assert.strictEqual(await state(id), "open unpaid")
    const prefilled = await create({ customer_email: "a@b.co" })
    const { body } = await confirm(prefilled.id, { customer_details: { name: "N" } })
    assert.deepStrictEqual(body.customer_details, { ...nobody, email: "a@b.co", name: "N" })

    const { id: billed } = await create({ billing_address_collection: "required", customer_email: "a@b.co" })
    const address: Record<string, string> = {}
    for (const field of ["line1", "country", "postal_code", "city"]) {
      const asked = await confirm(billed, { customer_details: { address } })
      assertError(asked, 400, "parameter_missing", `customer_details[address][${field}]`)
      address[field] = "x"
    }
    assertOk(await confirm(billed, { customer_details: { address } }))
  })

  it("S11: what came with the card fills what nobody entered", async () => {
    const { id } = await create({ customer_email: "a@b.co" })
    const { body } = await confirm(id, {
      customer_details: null,
      payment_method: null,
      payment_method_data: {
        type: "card",
        card: { number: "4242424242424242", exp_month: 12, exp_year: 2034 },
        billing_details: { name: "On the card", email: "card@example.com" }
      }
    })
    assert.deepStrictEqual(body.customer_details, { ...nobody, email: "a@b.co", name: "On the card" })
  })

  it("S15: what can be wrong with a confirmation", async () => {
    const { id } = await create()
    assertError(await confirm(id, { payment_method: "pm_none" }), 404, "resource_missing", "payment_method")
    assertError(await confirm(id, { payment_method: null }), 400, "payment_intent_unexpected_state", "payment_method")
    const payment_method_data = { type: "card", card: { number: "4242424242424242", exp_month: 12, exp_year: 2034 } }
    assertError(await confirm(id, { payment_method_data }), 400, "parameters_exclusive", "payment_method_data")
    assertError(await confirm(id, { return_url: "x" }), 400, "parameter_invalid", "return_url")
    assertError(await confirm(id, { amount: 1 }), 400, "parameter_unknown", "amount")
    const email = { customer_details: { email: "x" } }
    assertError(await confirm(id, email), 400, "parameter_invalid", "customer_details[email]")
    assert.strictEqual((await confirm(id, { payment_method: "pm_card_processor_error" })).status, 500)
    assert.strictEqual(await state(id), "open unpaid")
  })

  it("A5, S13, S15: a publishable key confirms with the client secret only", async () => {
    const { client_secret, id } = await create({ ui_mode: "embedded" })
    const key = { key: server.keys.publishableTest }
    const body = { payment_method: "pm_card_visa", customer_details: { email: "a@b.co" } }
    const path = `checkout_sessions/${id}`
    assertError(await get(path, key), 403, "secret_key_required")
    assertError(await get(`${path}?client_secret=x`, key), 404, "resource_missing", "id")
    assert.strictEqual((await get(`${path}?client_secret=${client_secret}`, key)).body.id, id)
    assertError(await get(`${path}?client_secret=x`), 404, "resource_missing", "id")
    assertError(await post(`${path}/confirm`, body, key), 403, "secret_key_required")
    const wrong = { ...body, client_secret: `${client_secret}x` }
    assertError(await post(`${path}/confirm`, wrong, key), 404, "resource_missing", "id")
    assertError(await post(`${path}/confirm`, wrong), 404, "resource_missing", "id")
    for (const closed of [`${path}/expire`, path]) {
      assertError(await post(closed, { client_secret }, key), 403, "secret_key_required")
    }
    assertError(await get(`${path}/line_items`, key), 403, "secret_key_required")
    const confirmed = await post(`${path}/confirm`, { ...body, client_secret }, key)
    assertOk(confirmed)
    assert.strictEqual(confirmed.body.status, "complete")
    const page = await create()
    const nothing = { ...body, client_secret: `${page.id}_secret_` }
    assertError(await post(`checkout_sessions/${page.id}/confirm`, nothing, key), 404, "resource_missing", "id")
  })

  it("§2.3: an asynchronous payment settles later, and after a failure another one may follow", async () => {
    const { id, payment_intent } = await create()
    const since = await newestEvent()
    const { body } = await confirm(id, { payment_method: "pm_card_processing_failure" })
    assert.deepInclude(body, { status: "complete", payment_status: "unpaid" })
    const started = ["charge.pending", "payment_intent.processing", "checkout.session.completed"]
    assert.deepStrictEqual(await eventsSince(since), started)
    const deadline = Date.now() + 10_000
    while ((await intent(payment_intent)).status === "processing" && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    assert.strictEqual(await state(id), "complete unpaid")
    const failed = ["charge.failed", "payment_intent.payment_failed", "checkout.session.async_payment_failed"]
    assert.deepStrictEqual(await eventsSince(since), [...started, ...failed])
    assertOk(await post(`payment_intents/${payment_intent}/confirm`, { payment_method: "pm_card_visa" }))
    assert.strictEqual(await state(id), "complete paid")
    assert.strictEqual((await eventsSince(since)).at(-1), "payment_intent.succeeded")
  })
})

describe("I-18: the PaymentIntent of a session", () => {
  it("drives the session when it is confirmed", async () => {
    const { id, payment_intent } = await create({ customer_creation: "always", customer_email: "a@b.co" })
    const since = await newestEvent()
    assertOk(await post(`payment_intents/${payment_intent}/confirm`, { payment_method: "pm_card_visa" }))
    assert.deepInclude(await session(id), { status: "complete", payment_status: "paid", url: null })
    assert.deepStrictEqual(await eventsSince(since), ["customer.created", ...PAID])
  })

  it("keeps its terms, and is not canceled but by the session", async () => {
    const { id, payment_intent } = await create()
    const path = `payment_intents/${payment_intent}`
    for (const body of [
      { amount: 1 },
      { currency: "eur" },
      { customer: null },
      { capture_method: "manual" },
      { payment_method: "pm_card_visa" }
    ]) {
      const refused = await post(path, body)
      assertError(refused, 400, "payment_intent_unexpected_state", "id")
      assert.include(refused.body.error.message, `belongs to Checkout Session ${id}`)
    }
    assertError(await post(`${path}/cancel`), 400, "payment_intent_unexpected_state", "id")
    assertOk(await post(path, { description: "D", metadata: { a: "b" } }))
    assert.strictEqual(await state(id), "open unpaid")
    assertOk(await post(`checkout_sessions/${id}/expire`))
    assertError(await post(`${path}/cancel`), 400, "payment_intent_unexpected_state", "id")
  })

  it("is not for publishable keys: those pay for the session", async () => {
    const { payment_intent } = await create()
    const { client_secret } = await intent(payment_intent)
    const body = { payment_method: "pm_card_visa", client_secret }
    const refused = await post(`payment_intents/${payment_intent}/confirm`, body, { key: server.keys.publishableTest })
    assertError(refused, 403, "secret_key_required")
  })

  it("can be refunded", async () => {
    const { id, payment_intent } = await create()
    assertOk(await confirm(id))
    assertOk(await post("refunds", { payment_intent }))
    assert.strictEqual(await state(id), "complete paid")
  })
})

describe("the end of a session", () => {
  it("S16: expires by request, and cancels the payment", async () => {
    const { id, payment_intent } = await create()
    const since = await newestEvent()
    assertError(await post(`checkout_sessions/${id}/expire`, { reason: "x" }), 400, "parameter_unknown", "reason")
    assertError(await post(`checkout_sessions/${id}/expire`, []), 400, "parameter_invalid")
    const expired = await post(`checkout_sessions/${id}/expire`)
    assertOk(expired)
    assert.deepInclude(expired.body, { status: "expired", payment_status: "unpaid", url: null })
    assert.deepInclude(await intent(payment_intent), { status: "canceled", cancellation_reason: "automatic" })
    assert.deepStrictEqual(await eventsSince(since), ["payment_intent.canceled", "checkout.session.expired"])
    assertError(await post(`checkout_sessions/${id}/expire`, {}), 400, "checkout_session_unexpected_state", "id")
    const refused = await confirm(id)
    assertError(refused, 400, "checkout_session_unexpected_state", "id")
    const message = "This Checkout Session's status is `expired`; only `open` sessions can be confirmed."
    assert.strictEqual(refused.body.error.message, message)
    const confirmed = await post(`payment_intents/${payment_intent}/confirm`, { payment_method: "pm_card_visa" })
    assertError(confirmed, 400, "payment_intent_unexpected_state", "id")
    const { id: paid } = await create()
    await confirm(paid)
    assertError(await post(`checkout_sessions/${paid}/expire`), 400, "checkout_session_unexpected_state", "id")
  })

  /** A session whose time has come, and whose timer has not fired. */
  const overdue = async (body: object = {}) => {
    const { id, payment_intent } = await create(body)
    const age = Effect.gen(function* () {
      const transaction = yield* Transaction
      const { hidden, value } = (yield* transaction.get(CHECKOUT_SESSION, id))!
      transaction.put(CHECKOUT_SESSION, { ...value, expires_at: value.created - 1 }, hidden)
      transaction.clearTimer(TimerNames.checkoutSessionTimer(id))
    })
    await Effect.runPromise(server.accounts.run(`${server.keys.merchantId}:test`, age))
    return { id, payment_intent }
  }
  it("S17: is over for every read at its time, whether or not the timer has fired", async () => {
    const reads: ReadonlyArray<(id: string) => Promise<unknown>> = [
      async (id) => assert.strictEqual((await session(id)).status, "expired"),
      async () => assert.strictEqual((await get("checkout_sessions?limit=1")).body.data[0].status, "expired"),
      async (id) => assert.notInclude((await get("checkout_sessions?limit=5&status=open")).text, id)
    ]
    for (const read of reads) {
      const { id, payment_intent } = await overdue()
      const since = await newestEvent()
      await read(id)
      assert.strictEqual(await state(id), "expired unpaid")
      assert.strictEqual((await intent(payment_intent)).status, "canceled")
      assert.deepStrictEqual(await eventsSince(since), EXPIRED)
    }
  })

  it("S17: is over for every confirmation at its time, and that it is so is kept", async () => {
    const attempts: ReadonlyArray<(id: string, intent: string, key: string) => Promise<unknown>> = [
      async (id, _, idempotencyKey) => {
        const body = { payment_method: "pm_card_visa", customer_details: { email: "a@b.co" } }
        const refused = await post(`checkout_sessions/${id}/confirm`, body, { idempotencyKey })
        assertError(refused, 400, "checkout_session_unexpected_state", "id")
      },
      async (id, _, idempotencyKey) => {
        const refused = await post(`checkout_sessions/${id}/expire`, {}, { idempotencyKey })
        assertError(refused, 400, "checkout_session_unexpected_state", "id")
      },
      async (_, paymentIntent, idempotencyKey) => {
        const body = { payment_method: "pm_card_visa" }
        const refused = await post(`payment_intents/${paymentIntent}/confirm`, body, { idempotencyKey })
        assertError(refused, 400, "payment_intent_unexpected_state", "id")
      }
    ]
    for (const [index, attempt] of attempts.entries()) {
      const { id, payment_intent } = await overdue()
      const since = await newestEvent()
      for (let repetition = 0; repetition < 2; repetition++) await attempt(id, payment_intent, `overdue-${index}`)
      assert.deepStrictEqual(await eventsSince(since), EXPIRED)
      assert.strictEqual(await state(id), "expired unpaid")
    }
  })

  it("has one winner when confirmations and expiries meet", async () => {
    for (let round = 0; round < 5; round++) {
      const { id, payment_intent } = await create()
      const since = await newestEvent()
      const replies = await Promise.all([
        confirm(id),
        post(`checkout_sessions/${id}/expire`),
        confirm(id),
        post(`payment_intents/${payment_intent}/confirm`, { payment_method: "pm_card_visa" }),
        post(`checkout_sessions/${id}/expire`)
      ])
      assert.lengthOf(
        replies.filter(({ status }) => status === 200),
        1
      )
      assert.isTrue(replies.every(({ status }) => status === 200 || status === 400))
      const events = await eventsSince(since)
      assert.deepStrictEqual(events, (await state(id)) === "complete paid" ? PAID : EXPIRED)
    }
  })
})

describe("reading and updating", () => {
  it("S18: metadata can be changed at any time, without an event", async () => {
    const { id } = await create({ metadata: { a: "1" } })
    const since = await newestEvent()
    const updated = await post(`checkout_sessions/${id}`, { metadata: { a: "", b: "2" } })
    assertOk(updated)
    assert.deepStrictEqual(updated.body.metadata, { b: "2" })
    assertOk(await post(`checkout_sessions/${id}/expire`))
    assert.deepStrictEqual((await post(`checkout_sessions/${id}`, { metadata: null })).body.metadata, {})
    assert.deepStrictEqual(await eventsSince(since), EXPIRED)
    assertError(await post(`checkout_sessions/${id}`, { success_url: "x:y" }), 400, "parameter_unknown", "success_url")
  })

  it("lists sessions, newest first, by status", async () => {
    const merchant = await server.merchant()
    const key = { key: merchant.secretTest }
    const { body: made } = await post("products", { name: "P" }, key)
    const data = { currency: "usd", product: made.id, unit_amount: 100 }
    const ids: Array<string> = []
    for (let index = 0; index < 3; index++) {
      ids.unshift((await post("checkout_sessions", hosted({ line_items: [{ price_data: data }] }), key)).body.id)
    }
    const paid = { payment_method: "pm_card_visa", customer_details: { email: "a@b.co" } }
    assertOk(await post(`checkout_sessions/${ids[0]}/confirm`, paid, key))
    assertOk(await post(`checkout_sessions/${ids[1]}/expire`, undefined, key))
    const listed = async (query: string) =>
      (await get(`checkout_sessions${query}`, key)).body.data.map(({ id }: { id: string }) => id)
    assert.deepStrictEqual(await listed(""), ids)
    assert.deepStrictEqual(await listed("?status=complete"), [ids[0]])
    assert.deepStrictEqual(await listed("?status=expired"), [ids[1]])
    assert.deepStrictEqual(await listed("?status=open"), [ids[2]])
    assert.deepStrictEqual(await listed(`?starting_after=${ids[0]}&limit=1`), [ids[1]])
    assert.strictEqual((await get("checkout_sessions?limit=1", key)).body.next_cursor, ids[0])
    assertError(await get("checkout_sessions?status=paid", key), 400, "parameter_invalid", "status")
    assertError(await get("checkout_sessions?customer=cus_1", key), 400, "parameter_unknown", "customer")
    assertError(
      await get(`checkout_sessions?starting_after=${made.id}`, key),
      404,
      "resource_missing",
      "starting_after"
    )
  })

  it("G1, G2, G3, G4, G5, G7, G9: line items in the order of the cart", async () => {
    const quantities = [5, 4, 3, 2, 1]
    const { id } = await create({ line_items: quantities.map((quantity) => ({ price: catalog.price, quantity })) })
    const path = `checkout_sessions/${id}/line_items`
    const { body: all } = await get(path)
    const { data, ...envelope } = all
    assert.deepStrictEqual(envelope, { object: "list", has_more: false, url: `/v1/${path}`, next_cursor: null })
    assert.match(data[0].id, /^csli_[0-9A-Za-z]{24}$/)
    assert.deepStrictEqual(
      data,
      quantities.map((quantity, index) => ({
        id: data[index].id,
        object: "item",
        price: catalog.price,
        quantity,
        amount_subtotal: 1999 * quantity,
        amount_total: 1999 * quantity,
        currency: "usd",
        description: "T-shirt"
      }))
    )
    const page = async (query: string) => {
      const { body } = await get(`${path}?${query}`)
      const shown = body.data.map(({ quantity }: { quantity: number }) => quantity)
      return [shown, body.has_more, body.next_cursor]
    }
    assert.deepStrictEqual(await page("limit=2"), [[5, 4], true, data[1].id])
    assert.deepStrictEqual(await page(`limit=2&starting_after=${data[1].id}`), [[3, 2], true, data[3].id])
    assert.deepStrictEqual(await page(`limit=2&starting_after=${data[3].id}`), [[1], false, null])
    assert.deepStrictEqual(await page(`limit=2&ending_before=${data[3].id}`), [[4, 3], true, data[2].id])
    assert.deepStrictEqual(await page(`limit=2&ending_before=${data[2].id}`), [[5, 4], false, null])
    assert.deepStrictEqual(await page(`ending_before=${data[0].id}`), [[], false, null])
    const both = await get(`${path}?starting_after=${data[0].id}&ending_before=${data[1].id}`)
    assertError(both, 400, "parameters_exclusive", "ending_before")
    assertError(await get(`${path}?limit=0`), 400, "parameter_invalid", "limit")
    assertError(await get(`${path}?starting_after=csli_none`), 404, "resource_missing", "starting_after")
    const other = (await get(`checkout_sessions/${(await create()).id}/line_items`)).body.data[0].id
    assertError(await get(`${path}?ending_before=${other}`), 404, "resource_missing", "ending_before")
    assertError(await get(`${path}?expand[]=price`), 400, "parameter_invalid", "expand[]")
  })
})
