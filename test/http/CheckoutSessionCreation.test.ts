/** Semantics checkout.*, row by row, through a real socket: sessions are created. */
import { assert, describe, it } from "@effect/vitest"
import { assertError, assertOk } from "./Assertions.ts"
import {
  catalog,
  create,
  eventsSince,
  get,
  hosted,
  intent,
  line,
  newestEvent,
  NOW,
  openShop,
  post,
  server,
  session
} from "../support/fixtures/CheckoutSessions.ts"

openShop()

const nobody = { email: null, name: null, phone: null, address: null }

describe("creation", () => {
  it("answers with every field of the specification", async () => {
    const since = await newestEvent()
    const body = {
      cancel_url: "https://shop.example/cart",
      client_reference_id: "order 1",
      metadata: { order: "1" },
      billing_address_collection: "required",
      phone_number_collection: { enabled: true },
      locale: "pt"
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

  it("checkout.update: retrieve", async () => {
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

  it("checkout.payment_intent: a PaymentIntent if there is something to pay", async () => {
    const { payment_intent } = await create()
    assert.deepInclude(await intent(payment_intent), {
      amount: 3998,
      currency: "usd",
      status: "requires_payment_method",
      confirmation_method: "automatic"
    })
    assert.strictEqual((await create({ line_items: [{ price: catalog.free }] })).payment_intent, null)
  })

  it("checkout.line_items: requires valid lines", async () => {
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

  it("checkout.line_items: an inactive product cannot be sold", async () => {
    const { body: sold } = await post("prices", { product: catalog.inactiveProduct, currency: "usd", unit_amount: 1 })
    assertError(await line({ price: sold.id }), 400, "product_inactive", "line_items[0][price]")
    const data = { currency: "usd", product: catalog.inactiveProduct, unit_amount: 1 }
    assertError(await line({ price_data: data }), 400, "product_inactive", "line_items[0][price_data][product]")
  })

  it("checkout.price_data: price_data makes an inactive price, without an event", async () => {
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

  it("checkout.recurring: recurring prices are charged for one period", async () => {
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

  it("checkout.currency: one currency, or the given one, without conversion", async () => {
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

  it("checkout.expires_at: how long a session lives", async () => {
    const now = Math.floor(NOW / 1000)
    for (const seconds of [1800, 3600, 86_400]) {
      assert.strictEqual((await create({ expires_at: now + seconds })).expires_at, now + seconds)
    }
    for (const seconds of [0, -5, 1790, 86_400 + 10]) {
      const refused = await post("checkout_sessions", hosted({ expires_at: now + seconds }))
      assertError(refused, 400, "parameter_invalid", "expires_at")
    }
    assertError(await post("checkout_sessions", hosted({ expires_at: "1" })), 400, "parameter_invalid", "expires_at")
  })

  it("checkout.customer, checkout.customer_details: shows the payer's known details", async () => {
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

  it("checkout.url: a page for hosted sessions, a client secret for the others", async () => {
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

  it("checkout.payment_intent_data: sets the PaymentIntent's initial fields", async () => {
    const payment_intent_data = {
      capture_method: "manual",
      description: "An order",
      statement_descriptor: "SHOP",
      metadata: { a: "b" },
      application_fee_amount: 3998
    }
    const { metadata, payment_intent } = await create({ payment_intent_data, metadata: { own: "1" } })
    assert.deepStrictEqual(metadata, { own: "1" })
    const begun = await intent(payment_intent)
    assert.deepInclude(begun, payment_intent_data)
    const [event] = (await get("events?type=payment_intent.created&limit=1")).body.data
    assert.deepStrictEqual(event.data.object, begun)
    for (const application_fee_amount of [null, undefined, 0]) {
      const { payment_intent } = await create({ payment_intent_data: { application_fee_amount } })
      assert.deepInclude(await intent(payment_intent), { application_fee_amount: application_fee_amount ?? null })
    }
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

  it("checkout.mode: only payments", async () => {
    for (const mode of ["setup", "subscription", "x", 1]) {
      assertError(await post("checkout_sessions", hosted({ mode })), 400, "parameter_invalid", "mode")
    }
    assertError(await post("checkout_sessions", hosted({ mode: undefined })), 400, "parameter_missing", "mode")
  })

  it("money.limits, checkout.custom_amount: caps, and amounts that the payer chooses", async () => {
    const dear = { currency: "usd", product: catalog.product, unit_amount: 999_999_999_999 }
    assert.strictEqual((await line({ price_data: dear })).body.amount_total, 999_999_999_999)
    assertError(await line({ price_data: dear, quantity: 2 }), 400, "amount_too_large", "line_items")
    const line_items = [{ price_data: dear }, { price_data: { ...dear, unit_amount: 1 } }]
    assertError(await post("checkout_sessions", hosted({ line_items })), 400, "amount_too_large", "line_items")
    assert.strictEqual((await line({ price: catalog.custom })).body.amount_total, 700)
    assertError(await line({ price: catalog.custom, quantity: 2 }), 400, "parameter_invalid", "line_items[0][quantity]")
  })

  it("refuses other invalid combinations", async () => {
    for (const [field, value] of [
      ["customer_creation", "never"],
      ["ui_mode", "page"],
      ["billing_address_collection", "x"],
      ["phone_number_collection", true],
      ["locale", "de-DE"],
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
