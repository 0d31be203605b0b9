/** Semantics products.*, the rows about products, through a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, type Reply, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const post = (path: string, body?: unknown) => server.request("POST", path, { body })
const get = (path: string, key?: string) => server.request("GET", path, key === undefined ? {} : { key })
const product = async (body: object = {}) => (await post("/v1/products", { name: "Tea", ...body })).body
const price = async (product: string, body: object = {}) =>
  (await post("/v1/prices", { product, currency: "usd", unit_amount: 500, ...body })).body
const update = (id: string, body?: unknown) => post(`/v1/products/${id}`, body)
const remove = (id: string) => server.request("DELETE", `/v1/products/${id}`)
const events = async (count: number) => (await get(`/v1/events?limit=${count}`)).body.data
const dimensions = { height: 1, length: 2.5, width: 3, weight: 0.4 }

describe("products", () => {
  it("are created with every field of the contract, and retrieved", async () => {
    const body = {
      name: "Tea",
      active: false,
      description: "D",
      images: ["https://example.com/1.png", "http://example.com/2.png"],
      url: "https://example.com/tea",
      shippable: true,
      statement_descriptor: "TEA",
      unit_label: "bag",
      tax_code: "txcd_1",
      package_dimensions: dimensions,
      marketing_features: [{ name: "Hot" }, { name: "Cold" }],
      metadata: { a: "b" }
    }
    const created = await post("/v1/products", body)
    assertOk(created)
    const { created: at, id, ...rest } = created.body
    assert.match(id, /^prod_[0-9A-Za-z]{24}$/)
    assert.deepStrictEqual(rest, { ...body, object: "product", livemode: false, updated: at, default_price: null })
    const retrieved = await get(`/v1/products/${id}`)
    assertOk(retrieved)
    assert.strictEqual(retrieved.text, created.text)
    const [event] = await events(1)
    assert.strictEqual(event.type, "product.created")
    assert.deepStrictEqual(event.data, { object: created.body })
    for (const other of [server.keys.secretLive, (await server.merchant()).secretTest]) {
      assertError(await get(`/v1/products/${id}`, other), 404, "resource_missing", "id")
    }
  })

  it("parameters.null, responses.null: show unset fields as null, or omit those that cannot be null", async () => {
    const defaults = {
      object: "product",
      active: true,
      name: "Tea",
      images: [],
      marketing_features: [],
      metadata: {},
      livemode: false,
      description: null,
      url: null,
      default_price: null,
      shippable: null,
      statement_descriptor: null,
      unit_label: null,
      tax_code: null
    }
    const nulls = Object.fromEntries(
      [...Object.keys(defaults).slice(3), "package_dimensions", "default_price_data", "active"]
        .filter((field) => !["livemode", "default_price"].includes(field))
        .map((field) => [field, null])
    )
    for (const body of [{}, nulls, { description: "", unit_label: "", images: [] }]) {
      const { created, id, updated, ...rest } = await product({ ...body, name: "Tea" })
      assert.deepStrictEqual(rest, defaults)
      assert.deepStrictEqual([typeof created, typeof updated, typeof id], ["number", "number", "string"])
    }
  })

  it.each([
    [{}, "parameter_missing", "name"],
    [{ name: null }, "parameter_missing", "name"],
    [{ name: "" }, "parameter_invalid", "name"],
    [{ name: "x".repeat(5001) }, "parameter_invalid", "name"],
    [{ name: "x", description: "x".repeat(5001) }, "parameter_invalid", "description"],
    [{ name: "x", active: "true" }, "parameter_invalid", "active"],
    [{ name: "x", images: Array(9).fill("https://a.b/c") }, "parameter_invalid", "images"],
    [{ name: "x", images: ["https://a.b/c", "/relative"] }, "parameter_invalid", "images[1]"],
    [{ name: "x", images: "https://a.b/c" }, "parameter_invalid", "images"],
    [{ name: "x", url: "ftp://a.b/c" }, "parameter_invalid", "url"],
    [{ name: "x", shippable: 1 }, "parameter_invalid", "shippable"],
    [{ name: "x", statement_descriptor: "x".repeat(23) }, "parameter_invalid", "statement_descriptor"],
    [{ name: "x", unit_label: "x".repeat(13) }, "parameter_invalid", "unit_label"],
    [{ name: "x", tax_code: 1 }, "parameter_invalid", "tax_code"],
    [
      { name: "x", marketing_features: Array.from({ length: 16 }, () => ({ name: "x" })) },
      "parameter_invalid",
      "marketing_features"
    ],
    [{ name: "x", marketing_features: [{ name: "x" }, {}] }, "parameter_missing", "marketing_features[1][name]"],
    [{ name: "x", marketing_features: [{ name: "" }] }, "parameter_invalid", "marketing_features[0][name]"],
    [{ name: "x", default_price: "price_x" }, "parameter_unknown", "default_price"],
    [{ name: "x", metadata: { a: 1 } }, "parameter_invalid", "metadata[a]"]
  ])("refuse %j on creation", async (body, code, param) => {
    assertError(await post("/v1/products", body), 400, code, param)
  })

  it("accept the greatest values that the contract allows", async () => {
    const emoji = "\u{1f600}"
    assertOk(
      await post("/v1/products", {
        name: emoji.repeat(5000),
        description: "x".repeat(5000),
        images: Array(8).fill("https://a.b/c"),
        statement_descriptor: emoji.repeat(22),
        unit_label: emoji.repeat(12),
        marketing_features: Array.from({ length: 15 }, () => ({ name: "x" }))
      })
    )
  })

  it("products.list, products.active: are listed, newest first, and filtered by `active`", async () => {
    const key = (await server.merchant()).secretTest
    const make = async (active: boolean) =>
      (await server.request("POST", "/v1/products", { key, body: { name: "x", active } })).body.id
    const ids = [await make(true), await make(false), await make(true), await make(false)]
    const list = async (query: string) =>
      (await get(`/v1/products${query}`, key)).body.data.map((p: Reply["body"]) => p.id)
    assert.deepStrictEqual(await list(""), [ids[3], ids[2], ids[1], ids[0]])
    assert.deepStrictEqual(await list("?active=true"), [ids[2], ids[0]])
    assert.deepStrictEqual(await list("?active=false&limit=1"), [ids[3]])
    assert.deepStrictEqual(await list(`?active=false&starting_after=${ids[2]}`), [ids[1]])
    await server.request("POST", `/v1/products/${ids[0]}`, { key, body: { active: false } })
    assert.deepStrictEqual(await list("?active=true"), [ids[2]])
    const page = (await get("/v1/products?limit=1", key)).body
    assert.deepInclude(page, { object: "list", has_more: true, url: "/v1/products", next_cursor: ids[3] })
    for (const active of ["1", "TRUE", ""]) {
      assertError(await get(`/v1/products?active=${active}`, key), 400, "parameter_invalid", "active")
    }
    assertError(await get("/v1/products?name=x", key), 400, "parameter_unknown", "name")
    assertError(await get("/v1/products?starting_after=prod_x", key), 404, "resource_missing", "starting_after")
  })

  it("products.delete, responses.deleted: can be deleted without prices, and then are gone", async () => {
    const deleted = await product()
    const { id } = deleted
    assert.deepStrictEqual((await remove(id)).body, { id, object: "product", deleted: true, livemode: false })
    const [event] = await events(1)
    assert.strictEqual(event.type, "product.deleted")
    assert.deepStrictEqual(event.data, { object: deleted })
    for (const gone of [await get(`/v1/products/${id}`), await update(id, {}), await remove(id)]) {
      assertError(gone, 404, "resource_missing", "id")
    }
    const reference = await post("/v1/prices", { product: id, currency: "usd", unit_amount: 1 })
    assertError(reference, 404, "resource_missing", "product")
    assert.notInclude((await get("/v1/products?limit=100")).text, id)
  })

  it("products.delete: cannot be deleted with prices, active or not, of any origin", async () => {
    const priced = await product()
    await price(priced.id, { active: false })
    const withDefault = await product({ default_price_data: { currency: "usd", unit_amount: 1 } })
    for (const { id } of [priced, withDefault]) {
      const refused = await remove(id)
      assertError(refused, 400, "resource_in_use", "id")
      assert.include(refused.body.error.message, "set active=false instead")
      assertOk(await update(id, { active: false, default_price: null }))
      assertError(await remove(id), 400, "resource_in_use", "id")
      assertOk(await get(`/v1/products/${id}`))
    }
  })

  // Semantics products.default_price_data, prices.tax_behavior.
  it("default_price_data makes a price, after the product", async () => {
    const data = { currency: "EUR", unit_amount_decimal: "12.50", tax_behavior: "inclusive" }
    const made = await product({ default_price_data: data })
    const { body: made_price } = await get(`/v1/prices/${made.default_price}`)
    assert.deepInclude(made_price, {
      product: made.id,
      active: true,
      currency: "eur",
      type: "one_time",
      unit_amount: null,
      unit_amount_decimal: "12.5",
      tax_behavior: "inclusive"
    })
    const [second, first] = await events(2)
    assert.deepStrictEqual([first.type, second.type], ["product.created", "price.created"])
    assert.deepStrictEqual([first.data.object, second.data.object], [made, made_price])
    const recurring = { interval: "week", interval_count: 2 }
    const subscription = await product({ default_price_data: { currency: "usd", unit_amount: 0, recurring } })
    const { body } = await get(`/v1/prices/${subscription.default_price}`)
    assert.deepInclude(body, { type: "recurring", recurring: { ...recurring, usage_type: "licensed" } })
    assert.deepInclude(body, { unit_amount: 0, unit_amount_decimal: "0", tax_behavior: "unspecified" })
  })

  it.each([
    [{ unit_amount: 1 }, "parameter_missing", "default_price_data[currency]"],
    [{ currency: "usd" }, "parameter_missing", "default_price_data[unit_amount]"],
    [{ currency: "us", unit_amount: 1 }, "parameter_invalid", "default_price_data[currency]"],
    [{ currency: "usd", unit_amount: -1 }, "parameter_invalid", "default_price_data[unit_amount]"],
    [{ currency: "usd", unit_amount: 1e12 }, "amount_too_large", "default_price_data[unit_amount]"],
    [
      { currency: "usd", unit_amount: 1, unit_amount_decimal: "2" },
      "parameters_exclusive",
      "default_price_data[unit_amount_decimal]"
    ],
    [
      { currency: "usd", unit_amount: 1, recurring: { interval: "week", interval_count: 157 } },
      "parameter_invalid",
      "default_price_data[recurring][interval_count]"
    ],
    [
      { currency: "usd", unit_amount: 1, recurring: {} },
      "parameter_missing",
      "default_price_data[recurring][interval]"
    ],
    [{ currency: "usd", unit_amount: 1, nickname: "x" }, "parameter_unknown", "default_price_data[nickname]"]
  ])("products.default_price_data: default_price_data cannot be %j", async (default_price_data, code, param) => {
    const before = await events(1)
    assertError(await post("/v1/products", { name: "Tea", default_price_data }), 400, code, param)
    assert.deepStrictEqual(await events(1), before)
  })

  it("products.default_price: the default price is an active price of the product, when it is set", async () => {
    const { id } = await product()
    const [own, archived, foreign] = [
      await price(id),
      await price(id, { active: false }),
      await price((await product()).id)
    ]
    assertError(await update(id, { default_price: foreign.id }), 400, "parameter_invalid", "default_price")
    assertError(await update(id, { default_price: archived.id }), 400, "price_inactive", "default_price")
    assertError(await update(id, { default_price: "price_nobody" }), 404, "resource_missing", "default_price")
    assertError(await update(id, { default_price: "prod_x" }), 400, "parameter_invalid", "default_price")
    assert.strictEqual((await update(id, { default_price: own.id })).body.default_price, own.id)
    const [event] = await events(1)
    assert.strictEqual(event.type, "product.updated")
    assert.deepStrictEqual(event.data.previous_attributes, { default_price: null })
    assertOk(await post(`/v1/prices/${own.id}`, { active: false }))
    assert.strictEqual((await get(`/v1/products/${id}`)).body.default_price, own.id)
    assert.strictEqual((await update(id, { default_price: null })).body.default_price, null)
    assertError(await update(id, { default_price_data: {} }), 400, "parameter_unknown", "default_price_data")
  })

  it("products.lists: lists and dimensions are replaced as a whole", async () => {
    const { id } = await product({
      images: ["https://a.b/1", "https://a.b/2"],
      marketing_features: [{ name: "Hot" }, { name: "Cold" }],
      package_dimensions: dimensions
    })
    const changed = {
      images: ["https://a.b/3"],
      marketing_features: [{ name: "Warm" }],
      package_dimensions: { ...dimensions, weight: 9 }
    }
    assert.deepInclude((await update(id, changed)).body, changed)
    const { package_dimensions: _, ...cleared } = (
      await update(id, { images: [], marketing_features: [], package_dimensions: null })
    ).body
    assert.deepInclude(cleared, { images: [], marketing_features: [] })
    assert.notProperty((await get(`/v1/products/${id}`)).body, "package_dimensions")
    const [event] = await events(1)
    assert.deepStrictEqual(event.data.previous_attributes, changed)
    for (const [package_dimensions, code, param] of [
      [{ height: 1, length: 1, width: 1 }, "parameter_missing", "package_dimensions[weight]"],
      [{ ...dimensions, width: 0 }, "parameter_invalid", "package_dimensions[width]"],
      [{ ...dimensions, width: "1" }, "parameter_invalid", "package_dimensions[width]"],
      [{ ...dimensions, depth: 1 }, "parameter_unknown", "package_dimensions[depth]"],
      [[], "parameter_invalid", "package_dimensions"]
    ] as const) {
      assertError(await update(id, { package_dimensions }), 400, code, param)
    }
    assertError(
      await update(id, '{"package_dimensions":{"height":1e999,"length":1,"width":1,"weight":1}}'),
      400,
      "parameter_invalid",
      "package_dimensions[height]"
    )
  })

  it("products.updated, events.none: only a change makes an event and moves `updated`", async () => {
    const made = await product({ metadata: { a: "b" }, package_dimensions: dimensions })
    const before = await events(1)
    const { height, length, weight, width } = dimensions
    for (const body of [
      undefined,
      {},
      { name: "Tea", active: true, description: null, url: "", shippable: null, unit_label: "", tax_code: null },
      { images: [], metadata: { a: "b", c: "" } },
      { package_dimensions: { weight, width, length, height } }
    ]) {
      const reply = await update(made.id, body)
      assertOk(reply)
      assert.deepStrictEqual(reply.body, made)
    }
    assert.deepStrictEqual(await events(1), before)
    const { body } = await update(made.id, { name: "Green tea", shippable: false, metadata: { a: "", c: "d" } })
    assert.deepStrictEqual(body, {
      ...made,
      name: "Green tea",
      shippable: false,
      metadata: { c: "d" },
      updated: body.updated
    })
    assert.isAtLeast(body.updated, made.updated)
    const [event] = await events(1)
    assert.deepStrictEqual(event.data, {
      object: body,
      previous_attributes: { name: "Tea", shippable: null, metadata: { a: "b", c: null } }
    })
  })

  it.each([
    [{ name: null }, "name"],
    [{ name: "" }, "name"],
    [{ active: null }, "active"]
  ])("parameters.null: %j cannot be set", async (body, param) => {
    const { id } = await product()
    assertError(await update(id, body), 400, "parameter_invalid", param)
  })
})
