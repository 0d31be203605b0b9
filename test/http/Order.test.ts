/**
 * The order of checks within steps 10, 12 and 13 of semantics requests.order, as semantics requests.order.references,
 * requests.order.state defines it: each request is wrong in two ways, and gets the error that comes first.
 */
import { assert, describe, it } from "@effect/vitest"
import { assertError } from "./Assertions.ts"
import {
  catalog,
  create,
  get,
  hosted,
  intent,
  openShop,
  post,
  product,
  server
} from "../support/fixtures/CheckoutSessions.ts"

openShop()

const none = (prefix: string) => `${prefix}_${"0".repeat(24)}`
const card = { number: "4242424242424242", exp_month: 12, exp_year: 2040 }
const payment_method_data = { type: "card", card }
const newIntent = async (body: object = {}) =>
  (await post("payment_intents", { amount: 2000, currency: "usd", ...body })).body.id

describe("step 10: strings that cannot be stored are invalid like other values", () => {
  it.each<[path: string, body: object, code: string, param: string]>([
    ["customers", { name: "\u0000", zzz: 1 }, "parameter_unknown", "zzz"],
    ["payment_intents", { amount: 1, description: "\u0000" }, "parameter_missing", "currency"],
    ["customers", { name: "\u0000", phone: 1 }, "parameter_invalid", "name"],
    ["customers", { name: 1, phone: "\ud800" }, "parameter_invalid", "name"],
    ["customers", { phone: "\u0000", name: "\udfff" }, "parameter_invalid", "name"],
    ["customers", { email: "a\u0000@b.co", name: "\u0000" }, "parameter_invalid", "email"],
    ["customers", { metadata: { "a\u0000": "x" }, name: 1 }, "parameter_invalid", "name"],
    ["customers", { metadata: { "a\u0000": "x" } }, "parameter_invalid", "metadata[a\ufffd]"],
    ["customers", { metadata: { a: "\ud800" }, description: "" }, "parameter_invalid", "metadata[a]"],
    ["products", { name: "T", images: ["https://a.b/\u0000"], url: 1 }, "parameter_invalid", "images[0]"],
    [
      "payment_methods",
      { type: "card", card: { ...card, cvc: "12\u0000" }, billing_details: { name: 1 } },
      "parameter_invalid",
      "card[cvc]"
    ]
  ])("%s %j", async (path, body, code, param) => {
    assertError(await post(path, body), 400, code, param)
  })

  it("and reported, if nothing else is wrong", async () => {
    const { body } = await post("customers", { name: "\u0000" })
    assert.include(body.error.message, "text without NUL characters")
  })

  it("query parameters in the order of the contract, not in that of the request", async () => {
    for (const [path, param] of [
      ["checkout_sessions?status=&limit=0", "limit"],
      ["checkout_sessions?status=x&ending_before=", "ending_before"],
      ["checkout_sessions?status=x&status=y&limit=10", "status"],
      ["checkout_sessions?starting_after=%00&limit=10&limit=11", "limit"],
      ["payment_intents/pi_x?client_secret=&expand[]=x", "expand[]"],
      [`customers?starting_after=${"x".repeat(5001)}`, "starting_after"],
      ["payment_methods?customer=&limit=0", "limit"],
      ["payment_methods?customer=x&limit=", "limit"],
      ["payment_methods?customer=x&starting_after=&limit=0", "limit"],
      ["payment_methods?customer=&customer=cus_x&limit=1", "customer"]
    ] as const) {
      assertError(await get(path), 400, "parameter_invalid", param)
    }
    for (const query of ["", "?limit=0", "?limit=&starting_after=x&starting_after=y"]) {
      assertError(await get(`payment_methods${query}`), 400, "parameter_missing", "customer")
    }
    assertError(await get("payment_methods?limits=1"), 400, "parameter_unknown", "limits")
  })
})

describe("step 12: references in the order of the contract", () => {
  it("payment_intents.create: customer, then payment_method", async () => {
    const body = { amount: 1, currency: "usd", payment_method: none("pm"), customer: none("cus") }
    assertError(await post("payment_intents", body), 404, "resource_missing", "customer")
  })

  it("payment_intents.update: customer, then payment_method", async () => {
    const body = { payment_method: none("pm"), customer: none("cus") }
    assertError(await post(`payment_intents/${await newIntent()}`, body), 404, "resource_missing", "customer")
  })

  it("checkout_sessions.create: lines in turn, then the customer", async () => {
    const customer = none("cus")
    const price_data = { currency: "usd", product: none("prod"), unit_amount: 1 }
    for (const [line_items, param] of [
      [[{ price: none("price") }], "line_items[0][price]"],
      [[{ price: catalog.price }, { price_data }], "line_items[1][price_data][product]"],
      [[{ price_data, price: none("price") }], "line_items[0][price]"],
      [[{ price: catalog.archived }], "customer"]
    ] as const) {
      const refused = await post("checkout_sessions", hosted({ line_items, customer }))
      assertError(refused, 404, "resource_missing", param)
    }
  })
})

describe("missing objects come before invalid combinations", () => {
  it("payment_intents.create", async () => {
    const body = { amount: 1e12, currency: "usd", payment_method: none("pm"), payment_method_data }
    assertError(await post("payment_intents", body), 404, "resource_missing", "payment_method")
    const visa = { ...body, payment_method: "pm_card_visa" }
    assertError(await post("payment_intents", visa), 400, "amount_too_large", "amount")
  })

  it("prices.create", async () => {
    for (const terms of [{}, { unit_amount: 1, tiers: [{ unit_amount: 1 }] }, { unit_amount: 1e12 }]) {
      const refused = await post("prices", { product: none("prod"), currency: "usd", ...terms })
      assertError(refused, 404, "resource_missing", "product")
    }
  })

  it("checkout_sessions.create", async () => {
    const price_data = { currency: "usd", product: none("prod"), unit_amount: 1e12 }
    const param = "line_items[0][price_data][product]"
    const bare = { mode: "payment", line_items: [{ price_data, price: catalog.price }, {}] }
    assertError(await post("checkout_sessions", bare), 404, "resource_missing", param)
    const unpriced = { mode: "payment", line_items: [{}], customer: none("cus") }
    assertError(await post("checkout_sessions", unpriced), 404, "resource_missing", "customer")
  })
})

describe("step 13: states, in the order of the contract, before limits and invalid combinations", () => {
  it("checkout_sessions.create: inactive prices and products, line by line", async () => {
    const gone = { currency: "usd", product: catalog.inactiveProduct, unit_amount: 1e12 }
    const yen = { price: catalog.yen }
    for (const [line_items, code, param] of [
      [[{ price: catalog.price }, yen, { price: catalog.archived }], "price_inactive", "line_items[2][price]"],
      [[{ price_data: gone }, { price: catalog.archived }], "product_inactive", "line_items[0][price_data][product]"],
      [[{ price: catalog.archived }, { price_data: gone }], "price_inactive", "line_items[0][price]"],
      [
        [{ price: catalog.custom, quantity: 2 }, { price_data: gone }],
        "product_inactive",
        "line_items[1][price_data][product]"
      ],
      [[{ price: catalog.archived, price_data: gone }], "price_inactive", "line_items[0][price]"],
      [[{ price: catalog.archived }, {}], "price_inactive", "line_items[0][price]"]
    ] as const) {
      const refused = await post("checkout_sessions", { mode: "payment", line_items })
      assertError(refused, 400, code, param)
    }
  })

  it("an update of a product: a price that is inactive before one of another product", async () => {
    const tea = await product("Tea")
    const refused = await post(`products/${tea}`, { default_price: catalog.archived })
    assertError(refused, 400, "price_inactive", "default_price")
    const foreign = await post(`products/${tea}`, { default_price: catalog.price })
    assertError(foreign, 400, "parameter_invalid", "default_price")
  })

  it("payment_intents.update: the status before the cap", async () => {
    const id = await newIntent()
    await post(`payment_intents/${id}/cancel`)
    assertError(await post(`payment_intents/${id}`, { amount: 1e12 }), 400, "payment_intent_unexpected_state", "id")
  })

  it("payment_intents.confirm: the status before two payment methods", async () => {
    const id = await newIntent()
    const both = { payment_method: "pm_card_visa", payment_method_data }
    const exclusive = await post(`payment_intents/${id}/confirm`, both)
    assertError(exclusive, 400, "parameters_exclusive", "payment_method_data")
    await post(`payment_intents/${id}/cancel`)
    assertError(await post(`payment_intents/${id}/confirm`, both), 400, "payment_intent_unexpected_state", "id")
  })

  it("checkout_sessions.confirm: the status before two payment methods, these before missing details", async () => {
    const { id, payment_intent } = await create()
    const both = { payment_method: "pm_card_visa", payment_method_data }
    const exclusive = await post(`checkout_sessions/${id}/confirm`, both)
    assertError(exclusive, 400, "parameters_exclusive", "payment_method_data")
    await post(`checkout_sessions/${id}/expire`)
    const expired = await post(`checkout_sessions/${id}/confirm`, both)
    assertError(expired, 400, "checkout_session_unexpected_state", "id")
    assert.strictEqual((await intent(payment_intent)).status, "canceled")
  })
})

describe("card numbers that were sent in the wrong place", () => {
  const number = "4242424242424242"
  const grouped = "4242-4242-4242-4242"
  type Misplaced = readonly [method: string, path: string, body?: object]
  const everywhere: ReadonlyArray<Misplaced> = [
    ...[number, grouped, `x_${number}`].flatMap((name): ReadonlyArray<Misplaced> => [
      ["POST", "customers", { [name]: "x" }],
      ["POST", "customers", { metadata: { [name]: 1 } }],
      ["POST", "customers", { metadata: { [name]: "\u0000" } }],
      ["POST", "products", { name: "T", package_dimensions: { [name]: 1 } }],
      ["POST", "prices", { product: "prod_1", currency: "usd", tiers: [{ [name]: 1 }] }],
      ["POST", "checkout_sessions", { line_items: [{ price_data: { recurring: { [name]: 1 } } }] }],
      ["POST", "payment_methods", { type: "card", card: { [name]: 1 } }],
      ["POST", "payment_methods", { type: "card", card, billing_details: { address: { [name]: 1 } } }],
      ["POST", "payment_intents", { amount: 1, currency: "usd", customer: `cus_${name}` }],
      ["POST", "payment_intents", { amount: 1, currency: "usd", payment_method: `pm_${name}` }],
      ["POST", `payment_intents/${name}/confirm`, {}],
      ["POST", `checkout_sessions/${name}/expire`, { [name]: 1 }],
      ["GET", `customers?${name}=1`],
      ["GET", `customers?expand[]=${name}`],
      ["GET", `customers?starting_after=${name}`],
      ["GET", `customers/${name}`],
      ["DELETE", `customers/${name}`],
      ["GET", `payment_methods/pm_${name}`],
      ["GET", name],
      ["PUT", `customers/${name}`]
    ]),
    ["GET", "customers/4242%204242%204242%204242"],
    ["GET", "%34242424242424242"],
    ["PATCH", "customers/%34242424242424242"],
    ["GET", "customers/4242/4242/4242/4242"]
  ]

  for (const [method, path, body] of everywhere) {
    it(`${method} ${path} ${JSON.stringify(body)}`, async () => {
      const reply = await server.request(method, `/v1/${path}`, body === undefined ? {} : { body })
      assert.isAbove(reply.status, 399)
      assert.notMatch(reply.text, /4242/u)
      assert.include(reply.text, "****")
    })
  }

  it("are hidden as an API version, too", async () => {
    const reply = await get("customers", { headers: { "x-api-version": number } })
    assertError(reply, 400, "invalid_api_version", "X-API-Version")
    assert.notInclude(reply.text, number)
  })
})
