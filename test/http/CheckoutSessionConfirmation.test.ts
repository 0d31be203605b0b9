/** Semantics checkout.*, through a real socket: sessions are confirmed and completed. */
import { assert, describe, it } from "@effect/vitest"
import { assertError, assertOk } from "./Assertions.ts"
import {
  catalog,
  confirm,
  create,
  eventsSince,
  get,
  intent,
  newestEvent,
  openShop,
  post,
  server,
  session,
  state
} from "../support/fixtures/CheckoutSessions.ts"

openShop()

const PAID = ["charge.succeeded", "payment_intent.succeeded", "checkout.session.completed"]
const nobody = { email: null, name: null, phone: null, address: null }

describe("checkout.attempts: attempts that fail", () => {
  const declined = { payment_method: "pm_card_declined" }

  it("close a session for an hour after the twentieth, for every key", async () => {
    const { client_secret, id, payment_intent } = await create({ ui_mode: "custom", success_url: null })
    const publishable = (body: object) => confirm(id, { client_secret, ...body })
    const idempotencyKey = "a decline that is repeated"
    const first = () =>
      post(
        `checkout_sessions/${id}/confirm`,
        { customer_details: { email: "a@b.co" }, ...declined },
        { idempotencyKey }
      )
    // Neither a repetition nor a refused request is an attempt.
    for (let i = 0; i < 5; i++) assertError(await first(), 402, "card_declined")
    for (let i = 0; i < 5; i++)
      assertError(await confirm(id, { payment_method: "pm_none" }), 404, "resource_missing", "payment_method")
    for (let i = 1; i < 19; i++) {
      const pay = i % 2 === 0 ? confirm(id, declined) : publishable(declined)
      assertError(await pay, 402, "card_declined")
    }
    assertOk(await confirm(id, { payment_method: "pm_card_3ds_required" }))
    const failed = await post(`test_helpers/payment_intents/${payment_intent}/authenticate`, { outcome: "failure" })
    assertOk(failed)
    for (const confirmed of [await confirm(id), await publishable({}), await confirm(id, { customer_details: null })]) {
      assertError(confirmed, 429, "rate_limit_exceeded")
      assert.strictEqual(confirmed.body.error.type, "rate_limit_error")
      assert.include([3599, 3600], Number(confirmed.headers.get("retry-after")))
    }
    assertError(await first(), 402, "card_declined")
    assert.deepInclude(await session(id), { status: "open", payment_status: "unpaid" })

    assertOk(await post("test_helpers/clock/advance", { seconds: 3540 }))
    // The refusal was not stored: with its key the request runs again.
    const key = { idempotencyKey: "an attempt too many" }
    const late = { payment_method: "pm_card_visa", customer_details: { email: "a@b.co" } }
    const refused = await post(`checkout_sessions/${id}/confirm`, late, key)
    assertError(refused, 429, "rate_limit_exceeded")
    assert.isAtMost(Number(refused.headers.get("retry-after")), 60)
    assertOk(await post("test_helpers/clock/advance", { seconds: 60 }))
    // The count restarts.
    for (let i = 0; i < 19; i++) assertError(await confirm(id, declined), 402, "card_declined")
    assertOk(await post(`checkout_sessions/${id}/confirm`, late, key))
    assert.strictEqual(await state(id), "complete paid")
  })

  it("still lets the session expire", async () => {
    const { id } = await create()
    for (let i = 0; i < 20; i++) assertError(await confirm(id, declined), 402, "card_declined")
    assertOk(await post(`checkout_sessions/${id}/expire`))
    assertError(await confirm(id), 400, "checkout_session_unexpected_state", "id")
    assertOk(await post("test_helpers/clock/advance", { seconds: 3600 }))
    assert.strictEqual(await state(id), "expired unpaid")
  })
})

describe("confirmation", () => {
  // Semantics checkout.payment_status, checkout.url, checkout.confirm.
  it("completes the session, its PaymentIntent and its charge together", async () => {
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

  it("checkout.payment_status: manual capture pays later", async () => {
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

  it("checkout.payment_status: a held amount that is released leaves the session unpaid", async () => {
    const { id, payment_intent } = await create({ payment_intent_data: { capture_method: "manual" } })
    assertOk(await confirm(id))
    assertOk(await post(`payment_intents/${payment_intent}/cancel`))
    assert.strictEqual(await state(id), "complete unpaid")
  })

  it("checkout.payment_status: nothing to pay", async () => {
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

  it("checkout.customer: creates the customer that it requires, if it has none", async () => {
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

  // Semantics checkout.customer_details, pages.checkout.
  it("requires the details that it collects, unless they are known", async () => {
    const { id } = await create()
    const refused = await confirm(id, { customer_details: null })
    assertError(refused, 400, "parameter_missing", "customer_details[email]")
    assert.strictEqual(await state(id), "open unpaid")
    const prefilled = await create({ customer_email: "a@b.co" })
    const { body } = await confirm(prefilled.id, { customer_details: { name: "N" } })
    assert.deepStrictEqual(body.customer_details, { ...nobody, email: "a@b.co", name: "N" })
    const known = { email: "known@example.com", name: "Known", phone: "1" }
    const { body: customer } = await post("customers", known)
    const recognized = await create({ customer: customer.id })
    const unchanged = await confirm(recognized.id, { customer_details: { email: "a@b.co" } })
    assert.deepStrictEqual(unchanged.body.customer_details, { ...nobody, ...known, email: "a@b.co" })

    const { id: billed } = await create({ billing_address_collection: "required", customer_email: "a@b.co" })
    const address: Record<string, string> = {}
    for (const field of ["line1", "country", "postal_code", "city"]) {
      const asked = await confirm(billed, { customer_details: { address } })
      assertError(asked, 400, "parameter_missing", `customer_details[address][${field}]`)
      address[field] = field === "country" ? "pt" : "x"
    }
    const confirmed = await confirm(billed, { customer_details: { address } })
    assertOk(confirmed)
    assert.deepStrictEqual(confirmed.body.customer_details.address, {
      ...address,
      country: "PT",
      line2: null,
      state: null
    })
    const { id: blank } = await create({ customer_email: "a@b.co" })
    const empty = await confirm(blank, { customer_details: { address: { line1: "", city: null } } })
    assert.isNull(empty.body.customer_details.address)
  })

  it("checkout.phone: requires a phone number only where the merchant does", async () => {
    const required = { phone_number_collection: { enabled: true }, customer_email: "a@b.co" }
    const { id } = await create(required)
    for (const customer_details of [null, {}, { phone: null }, { phone: "" }]) {
      assertError(await confirm(id, { customer_details }), 400, "parameter_missing", "customer_details[phone]")
    }
    assertError(
      await confirm(id, { customer_details: { phone: "1".repeat(65) } }),
      400,
      "parameter_invalid",
      "customer_details[phone]"
    )
    const confirmed = await confirm(id, { customer_details: { phone: "+351 1" } })
    assert.strictEqual(confirmed.body.customer_details.phone, "+351 1")
    const { body: customer } = await post("customers", { phone: "2" })
    assertOk(await confirm((await create({ ...required, customer: customer.id })).id))
    assertOk(await confirm((await create({ ...required, phone_number_collection: { enabled: false } })).id))
  })

  it.each([
    ["HK", { line1: "1 Queen's Road", state: "Hong Kong Island" }],
    ["AE", { line1: "Sheikh Zayed Road", state: "Dubai" }],
    ["IE", { line1: "1 Abbey St", city: "Dublin" }],
    ["JP", { line1: "1-1 Chiyoda", postal_code: "100-0001", state: "Tokyo" }],
    ["gb", { line1: "1 High St", postal_code: "not a code", city: "Leeds" }],
    ["US", { line1: "1 Main St", postal_code: "x", city: "Reno", state: "NV" }],
    ["AQ", { line1: "Base", city: "McMurdo" }]
  ] as const)("pages.address: asks for the parts of an address that %s has and needs", async (country, parts) => {
    const { id } = await create({ billing_address_collection: "required", customer_email: "a@b.co" })
    const address: Record<string, string> = { country }
    for (const [part, value] of Object.entries(parts)) {
      const asked = await confirm(id, { customer_details: { address } })
      assertError(asked, 400, "parameter_missing", `customer_details[address][${part}]`)
      address[part] = value
    }
    const confirmed = await confirm(id, { customer_details: { address } })
    assertOk(confirmed)
    assert.deepInclude(confirmed.body.customer_details.address, { ...parts, country: country.toUpperCase() })
  })

  it("pages.address: accepts parts of an address that its country does not use", async () => {
    const { id } = await create({ billing_address_collection: "required", customer_email: "a@b.co" })
    const address = { line1: "1", line2: "2", city: "Central", state: "Kowloon", postal_code: "999077", country: "HK" }
    assert.deepStrictEqual(
      (await confirm(id, { customer_details: { address } })).body.customer_details.address,
      address
    )
  })

  // Semantics charges.billing_details.
  it("the payer's entries fill the billing details that the payment method lacks", async () => {
    const entered = { email: "guest@example.com", name: "Grace", phone: "1" }
    const address = { line1: "1 High St", line2: null, city: "London", country: "GB", postal_code: "N1", state: null }
    const charged = async (chosen: object) => {
      const { id, payment_intent } = await create({})
      await confirm(id, { customer_details: { ...entered, address }, ...chosen })
      return (await intent(payment_intent)).charges.data[0].billing_details
    }
    const filled = { ...entered, address }
    assert.deepStrictEqual(await charged({ payment_method: "pm_card_visa" }), filled)
    assert.deepStrictEqual(await charged({ payment_method: "pm_card_declined" }), filled)
    const card = { number: "4242424242424242", exp_month: 12, exp_year: 2034 }
    const said = { email: "card@example.com", address: { line1: "Elsewhere", country: "GB" } }
    const data = { type: "card", card, billing_details: said }
    assert.deepStrictEqual(await charged({ payment_method: null, payment_method_data: data }), {
      ...filled,
      email: "card@example.com",
      address: { line1: "Elsewhere", line2: null, city: null, country: "GB", postal_code: null, state: null }
    })
  })

  it("checkout.customer_details: the card's details fill those that were not entered", async () => {
    const { id } = await create({ customer_email: "a@b.co", customer_creation: "always" })
    const address = { line1: "1 High St", line2: null, city: "London", country: "GB", postal_code: "N1", state: null }
    const onTheCard = { name: "On the card", phone: "1", address }
    const { body } = await confirm(id, {
      customer_details: null,
      payment_method: null,
      payment_method_data: {
        type: "card",
        card: { number: "4242424242424242", exp_month: 12, exp_year: 2034 },
        billing_details: { ...onTheCard, email: "card@example.com" }
      }
    })
    assert.deepStrictEqual(body.customer_details, { ...onTheCard, email: "a@b.co" })
    const customer = { email: "a@b.co", name: "On the card", phone: "1" }
    assert.deepInclude((await get(`customers/${body.customer}`)).body, customer)
  })

  it("checkout.customer_details: an entered address is used as a whole, without parts of the card's", async () => {
    const { id } = await create({ customer_email: "a@b.co" })
    const { body } = await confirm(id, {
      customer_details: { address: { line1: "1 High St", country: "GB" } },
      payment_method: null,
      payment_method_data: {
        type: "card",
        card: { number: "4242424242424242", exp_month: 12, exp_year: 2034 },
        billing_details: { name: "On the card", address: { city: "Porto", country: "PT" } }
      }
    })
    const address = { line1: "1 High St", line2: null, city: null, country: "GB", postal_code: null, state: null }
    assert.deepStrictEqual(body.customer_details, { email: "a@b.co", name: "On the card", phone: null, address })
  })

  // Semantics checkout.customer_details.
  it("if the server confirms the payment itself, all details that were not entered are the card's", async () => {
    const { id, payment_intent } = await create({})
    const billing_details = { email: "card@example.com", name: "On the card" }
    const card = { number: "4242424242424242", exp_month: 12, exp_year: 2034 }
    const payment_method_data = { type: "card", card, billing_details }
    assertOk(await post(`payment_intents/${payment_intent}/confirm`, { payment_method_data }))
    const { customer_details } = (await get(`checkout_sessions/${id}`)).body
    assert.deepStrictEqual(customer_details, { ...billing_details, phone: null, address: null })
  })

  it("checkout.confirm: refuses invalid confirmations", async () => {
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
    // Semantics requests.order: the objects that a request refers to are checked before the state.
    assertOk(await confirm(id))
    assertError(await confirm(id, { payment_method: "pm_none" }), 404, "resource_missing", "payment_method")
  })

  // Semantics keys.publishable, keys.client_secret, checkout.url, checkout.confirm.
  it("a publishable key confirms with the client secret only", async () => {
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

  it("checkout.states: an asynchronous payment settles later, and after a failure another one may follow", async () => {
    const { id, payment_intent } = await create()
    const since = await newestEvent()
    const { body } = await confirm(id, { payment_method: "pm_card_processing_failure" })
    assert.deepInclude(body, { status: "complete", payment_status: "unpaid" })
    const started = ["charge.pending", "payment_intent.processing", "checkout.session.completed"]
    assert.deepStrictEqual(await eventsSince(since), started)
    assertOk(await post("test_helpers/clock/advance", { seconds: 2 }))
    assert.strictEqual(await state(id), "complete unpaid")
    const failed = ["charge.failed", "payment_intent.payment_failed", "checkout.session.async_payment_failed"]
    assert.deepStrictEqual(await eventsSince(since), [...started, ...failed])
    assertOk(await post(`payment_intents/${payment_intent}/confirm`, { payment_method: "pm_card_visa" }))
    assert.strictEqual(await state(id), "complete paid")
    assert.strictEqual((await eventsSince(since)).at(-1), "payment_intent.succeeded")
  })
})

describe("checkout.payment_intent: the PaymentIntent of a session", () => {
  it("drives the session when it is confirmed", async () => {
    const { id, payment_intent } = await create({ customer_creation: "always", customer_email: "a@b.co" })
    const since = await newestEvent()
    assertOk(await post(`payment_intents/${payment_intent}/confirm`, { payment_method: "pm_card_visa" }))
    assert.deepInclude(await session(id), { status: "complete", payment_status: "paid", url: null })
    assert.deepStrictEqual(await eventsSince(since), ["customer.created", ...PAID])
  })

  it("keeps its terms, and is canceled only by the session", async () => {
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
      assert.include(refused.body.error.message, `belongs to Checkout Session ${id}; expire the session instead`)
    }
    assertError(await post(`${path}/cancel`), 400, "payment_intent_unexpected_state", "id")
    assertOk(await post(path, { description: "D", metadata: { a: "b" } }))
    assert.strictEqual(await state(id), "open unpaid")
    assertOk(await post(`checkout_sessions/${id}/expire`))
    assertError(await post(`${path}/cancel`), 400, "payment_intent_unexpected_state", "id")
    const late = await post(path, { amount: 1 })
    assertError(late, 400, "payment_intent_unexpected_state", "id")
    assert.include(late.body.error.message, `belongs to Checkout Session ${id}, which settled its terms.`)
  })

  const TERMS = [
    { amount: 1 },
    { currency: "eur" },
    { customer: null },
    { capture_method: "automatic" },
    { payment_method: "pm_card_visa" },
    { payment_method: null }
  ]

  const assertTermsFixed = async (id: string, path: string) => {
    const before = await get(path)
    for (const body of TERMS) {
      const refused = await post(path, body)
      assertError(refused, 400, "payment_intent_unexpected_state", "id")
      assert.include(refused.body.error.message, `belongs to Checkout Session ${id}, which settled its terms.`)
    }
    assert.strictEqual((await get(path)).text, before.text)
  }

  /** A complete session whose payment has failed to settle. */
  const failedToSettle = async () => {
    const { id, payment_intent } = await create()
    assertOk(await confirm(id, { payment_method: "pm_card_processing_failure" }))
    const path = `payment_intents/${payment_intent}`
    assertError(await post(`${path}/cancel`), 400, "payment_intent_unexpected_state", "id")
    assertOk(await post("test_helpers/clock/advance", { seconds: 2 }))
    assert.deepInclude(await intent(payment_intent), { status: "requires_payment_method", payment_method: null })
    return { id, payment_intent, path }
  }

  // Semantics checkout.payment_intent.
  it("keeps its terms when the session is complete and the amount held, and can be canceled", async () => {
    const { id, payment_intent } = await create({ payment_intent_data: { capture_method: "manual" } })
    assertOk(await confirm(id))
    const path = `payment_intents/${payment_intent}`
    await assertTermsFixed(id, path)
    const since = await newestEvent()
    const canceled = await post(`${path}/cancel`, { cancellation_reason: "requested_by_customer" })
    assertOk(canceled)
    const reason = { status: "canceled", cancellation_reason: "requested_by_customer", amount_capturable: 0 }
    assert.deepInclude(canceled.body, reason)
    assert.deepStrictEqual(await eventsSince(since), ["charge.updated", "payment_intent.canceled"])
    assert.strictEqual(await state(id), "complete unpaid")
  })

  it("checkout.payment_intent: can be canceled after an asynchronous failure, its terms as they were", async () => {
    const { id, path } = await failedToSettle()
    await assertTermsFixed(id, path)
    const since = await newestEvent()
    assertOk(await post(`${path}/cancel`))
    assert.deepStrictEqual(await eventsSince(since), ["payment_intent.canceled"])
    assert.strictEqual(await state(id), "complete unpaid")
    const late = await post(`${path}/confirm`, { payment_method: "pm_card_visa" })
    assertError(late, 400, "payment_intent_unexpected_state", "id")
    assertError(await post(`checkout_sessions/${id}/expire`), 400, "checkout_session_unexpected_state", "id")
  })

  // Semantics checkout.payment_intent.
  it("can be confirmed again after an asynchronous failure, with an authentication and a decline between", async () => {
    const { id, path, payment_intent } = await failedToSettle()
    const again = (payment_method: string) => post(`${path}/confirm`, { payment_method })
    assertError(await again("pm_card_declined"), 402, "card_declined")
    assertOk(await again("pm_card_3ds_required"))
    await assertTermsFixed(id, path)
    assert.strictEqual(await state(id), "complete unpaid")
    const since = await newestEvent()
    assertOk(await post(`test_helpers/payment_intents/${payment_intent}/authenticate`, { outcome: "success" }))
    assert.strictEqual(await state(id), "complete paid")
    assert.deepStrictEqual(await eventsSince(since), ["charge.succeeded", "payment_intent.succeeded"])
    assertError(await post(`${path}/cancel`), 400, "payment_intent_unexpected_state", "id")
    // A browser with the client secret cannot do it.
    const other = await failedToSettle()
    const body = { payment_method: "pm_card_visa", client_secret: (await intent(other.payment_intent)).client_secret }
    const key = server.keys.publishableTest
    assertError(await post(`${other.path}/confirm`, body, { key }), 403, "secret_key_required")
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
