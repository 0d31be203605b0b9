/** Semantics money.limits, money.currencies, prices.*, the rows about prices, through a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, type Reply, start } from "../support/MemoryTill.ts"

let server: MemoryTill
let tea: string
beforeAll(async () => {
  server = await start()
  tea = (await post("/v1/products", { name: "Tea" })).body.id
})
afterAll(() => server.close())

const post = (path: string, body?: unknown, key?: string) =>
  server.request("POST", path, { body, ...(key !== undefined && { key }) })
const get = (path: string, key?: string) => server.request("GET", path, key === undefined ? {} : { key })
const create = (body: object) => post("/v1/prices", { product: tea, currency: "usd", ...body })
const price = async (body: object = {}) => (await create({ unit_amount: 500, ...body })).body
const update = (id: string, body?: unknown) => post(`/v1/prices/${id}`, body)
const events = async (count: number): Promise<Array<Reply["body"]>> =>
  (await get(`/v1/events?limit=${count}`)).body.data
const eventsSince = async (id: string) => (await events(20)).filter((event) => event.id > id).toReversed()

const month = { interval: "month" }
const tiers = [
  { up_to: 5, unit_amount: 500 },
  { up_to: "inf", unit_amount: 300 }
]
const graduated = { billing_scheme: "tiered", tiers_mode: "graduated", tiers }

describe("lookup_keys[]", () => {
  it("prices.lookup_key: finds prices by their keys, together with every other filter, in pages", async () => {
    const keys = ["find-a", "find-b", "find-c"]
    const ids: Array<string> = []
    for (const [index, lookup_key] of keys.entries()) {
      ids.unshift((await price({ lookup_key, currency: index === 1 ? "eur" : "usd" })).id)
    }
    const find = async (query: string) => {
      const reply = await get(`/v1/prices?${query}`)
      assertOk(reply)
      const { data, has_more, next_cursor, url } = reply.body
      assert.strictEqual(url, "/v1/prices")
      assert.strictEqual(next_cursor, has_more ? data.at(-1).id : null)
      return [data.map(({ id }: { id: string }) => id), has_more]
    }
    const [c, b, a] = ids
    const all = keys.map((key) => `lookup_keys[]=${key}`).join("&")
    assert.deepStrictEqual(await find(all), [[c, b, a], false])
    assert.deepStrictEqual(await find(`${all}&lookup_keys[]=find-a&lookup_keys[]=nobody`), [[c, b, a], false])
    assert.deepStrictEqual(await find("lookup_keys[0]=find-a&lookup_keys%5B%5D=find-c&limit=1"), [[c], true])
    assert.deepStrictEqual(await find(`${all}&currency=EUR`), [[b], false])
    assert.deepStrictEqual(await find(`${all}&active=false`), [[], false])
    assert.deepStrictEqual(await find(`${all}&product=${tea}&type=one_time`), [[c, b, a], false])
    assert.deepStrictEqual(await find(`${all}&limit=1&starting_after=${c}`), [[b], true])
    assert.deepStrictEqual(await find(`${all}&limit=1&starting_after=${b}`), [[a], false])
    assert.deepStrictEqual(await find(`${all}&limit=1&ending_before=${a}`), [[b], true])
    assert.deepStrictEqual(await find(`${all}&ending_before=${a}`), [[c, b], false])
    assert.deepStrictEqual(await find("lookup_keys=nobody"), [[], false])
    // A moved key finds its new price, a dropped key none.
    await update(c!, { lookup_key: "find-a", transfer_lookup_key: true })
    assert.deepStrictEqual(await find(all), [[c, b], false])
    await update(b!, { lookup_key: null })
    assert.deepStrictEqual(await find(all), [[c], false])
    const live = await get(`/v1/prices?${all}`, server.keys.secretLive)
    assert.deepStrictEqual(live.body.data, [])
  })

  it("refuses anything but a list of up to ten keys, and missing cursors", async () => {
    const ten = Array.from({ length: 10 }, (_, i) => `lookup_keys[]=${i}`).join("&")
    assertOk(await get(`/v1/prices?${ten}`))
    for (const query of [`${ten}&lookup_keys[]=x`, "lookup_keys[]=", "lookup_keys[]=a&lookup_keys[]=%00"]) {
      assertError(await get(`/v1/prices?${query}`), 400, "parameter_invalid", "lookup_keys[]")
    }
    const long = await get(`/v1/prices?lookup_keys[]=${"x".repeat(201)}`)
    assertError(long, 400, "parameter_invalid", "lookup_keys[]")
    const rule = "at most 10 lookup keys, each a string of at most 200 characters"
    assert.strictEqual(long.body.error.message, `The \`lookup_keys[]\` field must be ${rule}.`)
    assertError(await get(`/v1/prices?${ten}&starting_after=${tea}`), 404, "resource_missing", "starting_after")
    assertError(await get("/v1/products?lookup_keys[]=a"), 400, "parameter_unknown", "lookup_keys[]")
    assertError(await get("/v1/prices?limit[]=1"), 400, "parameter_unknown", "limit[]")
  })
})

describe("prices", () => {
  it("are created with every field of the contract, and retrieved", async () => {
    const created = await create({
      currency: "EUR",
      unit_amount: 2000,
      unit_amount_decimal: "2000.0",
      custom_unit_amount: null,
      active: false,
      type: "recurring",
      billing_scheme: "per_unit",
      recurring: { interval: "month", interval_count: 3, usage_type: "metered" },
      tax_behavior: "exclusive",
      tiers: null,
      transform_quantity: { divide_by: 10, round: "down" },
      lookup_key: "every-field",
      transfer_lookup_key: false,
      nickname: "N",
      metadata: { a: "b" }
    })
    assertOk(created)
    const { created: at, id, ...rest } = created.body
    assert.match(id, /^price_[0-9A-Za-z]{24}$/)
    assert.isNumber(at)
    assert.deepStrictEqual(rest, {
      object: "price",
      active: false,
      product: tea,
      currency: "eur",
      type: "recurring",
      billing_scheme: "per_unit",
      tax_behavior: "exclusive",
      metadata: { a: "b" },
      livemode: false,
      unit_amount: 2000,
      unit_amount_decimal: "2000",
      recurring: { interval: "month", interval_count: 3, usage_type: "metered" },
      transform_quantity: { divide_by: 10, round: "down" },
      lookup_key: "every-field",
      nickname: "N"
    })
    assert.strictEqual((await get(`/v1/prices/${id}`)).text, created.text)
    const [event] = await events(1)
    assert.strictEqual(event.type, "price.created")
    assert.deepStrictEqual(event.data, { object: created.body })
    assertError(await get(`/v1/prices/${id}`, server.keys.secretLive), 404, "resource_missing", "id")
  })

  it("responses.null: omit fields that do not apply, and show unset ones as null", async () => {
    const { created: _, id: __, ...rest } = await price({ nickname: "", lookup_key: null })
    assert.deepStrictEqual(rest, {
      object: "price",
      active: true,
      product: tea,
      currency: "usd",
      type: "one_time",
      billing_scheme: "per_unit",
      tax_behavior: "unspecified",
      metadata: {},
      livemode: false,
      unit_amount: 500,
      unit_amount_decimal: "500",
      lookup_key: null,
      nickname: null
    })
  })

  it.each([
    [{ unit_amount: 5, product: null }, "parameter_missing", "product"],
    [{ unit_amount: 5, product: "price_x" }, "parameter_invalid", "product"],
    [{ unit_amount: 5, currency: undefined }, "parameter_missing", "currency"],
    [{ unit_amount: 5, currency: "usdx" }, "parameter_invalid", "currency"],
    [{ unit_amount: "5" }, "parameter_invalid", "unit_amount"],
    [{ unit_amount: 1.5 }, "parameter_invalid", "unit_amount"],
    [{ unit_amount: -1 }, "parameter_invalid", "unit_amount"],
    [{ unit_amount: 5, type: "metered" }, "parameter_invalid", "type"],
    [{ unit_amount: 5, billing_scheme: "flat" }, "parameter_invalid", "billing_scheme"],
    [{ unit_amount: 5, tax_behavior: "none" }, "parameter_invalid", "tax_behavior"],
    [{ unit_amount: 5, lookup_key: "x".repeat(201) }, "parameter_invalid", "lookup_key"],
    [{ unit_amount: 5, amount: 5 }, "parameter_unknown", "amount"],
    // Semantics prices.recurring
    [{ unit_amount: 5, recurring: { interval: "hour" } }, "parameter_invalid", "recurring[interval]"],
    [{ unit_amount: 5, recurring: {} }, "parameter_missing", "recurring[interval]"],
    [{ unit_amount: 5, recurring: { ...month, interval_count: 0 } }, "parameter_invalid", "recurring[interval_count]"],
    [{ unit_amount: 5, recurring: { ...month, interval_count: 37 } }, "parameter_invalid", "recurring[interval_count]"],
    [
      { unit_amount: 5, recurring: { interval: "day", interval_count: 1096 } },
      "parameter_invalid",
      "recurring[interval_count]"
    ],
    [
      { unit_amount: 5, recurring: { interval: "year", interval_count: 4 } },
      "parameter_invalid",
      "recurring[interval_count]"
    ],
    // Semantics prices.recurring
    [{ unit_amount: 5, recurring: { ...month, usage_type: "x" } }, "parameter_invalid", "recurring[usage_type]"],
    // Semantics prices.transform_quantity
    [{ unit_amount: 5, transform_quantity: { divide_by: 2 } }, "parameter_missing", "transform_quantity[round]"],
    [{ unit_amount: 5, transform_quantity: { round: "up" } }, "parameter_missing", "transform_quantity[divide_by]"],
    [
      { unit_amount: 5, transform_quantity: { divide_by: 0, round: "up" } },
      "parameter_invalid",
      "transform_quantity[divide_by]"
    ],
    [
      { unit_amount: 5, transform_quantity: { divide_by: 2, round: "half" } },
      "parameter_invalid",
      "transform_quantity[round]"
    ],
    [{ ...graduated, transform_quantity: { divide_by: 2, round: "up" } }, "parameter_invalid", "transform_quantity"],
    // Semantics prices.type
    [{ unit_amount: 5, type: "recurring" }, "parameter_missing", "recurring"],
    [{ unit_amount: 5, type: "one_time", recurring: month }, "parameter_invalid", "recurring"],
    // Semantics prices.unit_amount
    [{}, "parameter_missing", "unit_amount"],
    [{ unit_amount: null, unit_amount_decimal: null }, "parameter_missing", "unit_amount"],
    [{ unit_amount: 5, unit_amount_decimal: "5.1" }, "parameters_exclusive", "unit_amount_decimal"],
    ...["", "-1", "1e3", ".5", "5.", "1,5", "0.1234567890123", "1234567890123", " 1"].map(
      (unit_amount_decimal) => [{ unit_amount_decimal }, "parameter_invalid", "unit_amount_decimal"] as const
    ),
    // Semantics prices.custom_unit_amount
    [{ custom_unit_amount: {} }, "parameter_missing", "custom_unit_amount[enabled]"],
    [{ custom_unit_amount: { enabled: false } }, "parameter_invalid", "custom_unit_amount[enabled]"],
    [{ custom_unit_amount: { enabled: true, minimum: -1 } }, "parameter_invalid", "custom_unit_amount[minimum]"],
    [
      { custom_unit_amount: { enabled: true, minimum: 5, maximum: 4 } },
      "parameter_invalid",
      "custom_unit_amount[maximum]"
    ],
    [
      { custom_unit_amount: { enabled: true, minimum: 5, preset: 4 } },
      "parameter_invalid",
      "custom_unit_amount[preset]"
    ],
    [
      { custom_unit_amount: { enabled: true, maximum: 5, preset: 6 } },
      "parameter_invalid",
      "custom_unit_amount[preset]"
    ],
    [{ custom_unit_amount: { enabled: true }, unit_amount: 5 }, "parameters_exclusive", "unit_amount"],
    [
      { custom_unit_amount: { enabled: true }, unit_amount_decimal: "5" },
      "parameters_exclusive",
      "unit_amount_decimal"
    ],
    [{ custom_unit_amount: { enabled: true }, recurring: month }, "parameters_exclusive", "recurring"],
    [{ custom_unit_amount: { enabled: true }, ...graduated }, "parameters_exclusive", "tiers"],
    [
      { custom_unit_amount: { enabled: true }, transform_quantity: { divide_by: 2, round: "up" } },
      "parameters_exclusive",
      "transform_quantity"
    ],
    // Semantics prices.tiers, prices.recurring, prices.custom_unit_amount
    [{ ...graduated, tiers: undefined }, "parameter_missing", "tiers"],
    [{ ...graduated, tiers_mode: undefined }, "parameter_missing", "tiers_mode"],
    [{ ...graduated, tiers: [] }, "parameter_invalid", "tiers"],
    [{ ...graduated, tiers: Array.from({ length: 101 }, () => ({ unit_amount: 1 })) }, "parameter_invalid", "tiers"],
    [{ ...graduated, unit_amount: 5 }, "parameter_invalid", "unit_amount"],
    [{ ...graduated, unit_amount_decimal: "5" }, "parameter_invalid", "unit_amount_decimal"],
    [{ ...graduated, tiers: [{ up_to: 5, unit_amount: 1 }] }, "parameter_invalid", "tiers[0][up_to]"],
    [{ ...graduated, tiers: [{ unit_amount: 1 }, { unit_amount: 1 }] }, "parameter_invalid", "tiers[0][up_to]"],
    [
      { ...graduated, tiers: [{ up_to: 5, unit_amount: 1 }, { up_to: 5, unit_amount: 1 }, { unit_amount: 1 }] },
      "parameter_invalid",
      "tiers[1][up_to]"
    ],
    [
      { ...graduated, tiers: [{ up_to: 0, unit_amount: 1 }, { unit_amount: 1 }] },
      "parameter_invalid",
      "tiers[0][up_to]"
    ],
    [{ ...graduated, tiers: [{ up_to: "x", unit_amount: 1 }] }, "parameter_invalid", "tiers[0][up_to]"],
    [{ ...graduated, tiers: [{ up_to: 5, unit_amount: 1 }, {}] }, "parameter_missing", "tiers[1][unit_amount]"],
    [
      { ...graduated, tiers: [{ unit_amount: 1, unit_amount_decimal: "1" }] },
      "parameters_exclusive",
      "tiers[0][unit_amount_decimal]"
    ],
    [
      { ...graduated, tiers: [{ flat_amount: 1, flat_amount_decimal: "1" }] },
      "parameters_exclusive",
      "tiers[0][flat_amount_decimal]"
    ],
    [{ ...graduated, tiers: [{ unit_amount: 1, price: 1 }] }, "parameter_unknown", "tiers[0][price]"],
    // Semantics prices.tiers
    [{ unit_amount: 5, tiers }, "parameter_invalid", "tiers"],
    [{ tiers }, "parameter_invalid", "tiers"],
    [{ unit_amount: 5, tiers_mode: "volume" }, "parameter_invalid", "tiers_mode"],
    // Semantics money.limits
    [{ unit_amount: 1_000_000_000_000 }, "amount_too_large", "unit_amount"],
    [{ unit_amount_decimal: "999999999999.5" }, "amount_too_large", "unit_amount_decimal"],
    [{ ...graduated, tiers: [{ unit_amount: 1e12 }] }, "amount_too_large", "tiers[0][unit_amount]"],
    [{ ...graduated, tiers: [{ flat_amount: 1e12 }] }, "amount_too_large", "tiers[0][flat_amount]"],
    [{ custom_unit_amount: { enabled: true, maximum: 1e12 } }, "amount_too_large", "custom_unit_amount[maximum]"]
  ] as ReadonlyArray<readonly [object, string, string]>)("refuse %j", async (body, code, param) => {
    assertError(await create(body), 400, code, param)
  })

  it.each([
    [{ unit_amount: 999_999_999_999 }, { unit_amount: 999_999_999_999, unit_amount_decimal: "999999999999" }],
    [{ unit_amount: 0 }, { unit_amount: 0, unit_amount_decimal: "0" }],
    [{ unit_amount_decimal: "007.00" }, { unit_amount: 7, unit_amount_decimal: "7" }],
    [{ unit_amount_decimal: "0.000000000001" }, { unit_amount: null, unit_amount_decimal: "0.000000000001" }],
    [
      { unit_amount: 5, unit_amount_decimal: "05.0" },
      { unit_amount: 5, unit_amount_decimal: "5" }
    ],
    [
      { unit_amount: 1, currency: "JPY" },
      { currency: "jpy", unit_amount: 1 }
    ],
    [
      { unit_amount: 1, recurring: { interval: "day", interval_count: 1095 } },
      { type: "recurring", recurring: { interval: "day", interval_count: 1095, usage_type: "licensed" } }
    ],
    [
      { unit_amount: 1, type: "recurring", recurring: { interval: "year", interval_count: null, usage_type: null } },
      { type: "recurring", recurring: { interval: "year", interval_count: 1, usage_type: "licensed" } }
    ],
    [
      { custom_unit_amount: { enabled: true, minimum: 5, maximum: 5, preset: 5 } },
      {
        unit_amount: null,
        unit_amount_decimal: null,
        custom_unit_amount: { enabled: true, minimum: 5, maximum: 5, preset: 5 }
      }
    ],
    [{ custom_unit_amount: { enabled: true, preset: null } }, { custom_unit_amount: { enabled: true } }],
    [
      {
        billing_scheme: "tiered",
        tiers_mode: "volume",
        tiers: [{ up_to: 1, flat_amount: 5 }, { up_to: 2, unit_amount_decimal: "1.50" }, { flat_amount_decimal: "3.0" }]
      },
      {
        type: "one_time",
        billing_scheme: "tiered",
        unit_amount: null,
        unit_amount_decimal: null,
        tiers_mode: "volume",
        tiers: [
          { up_to: 1, flat_amount: 5, flat_amount_decimal: "5", unit_amount: null, unit_amount_decimal: null },
          { up_to: 2, flat_amount: null, flat_amount_decimal: null, unit_amount: null, unit_amount_decimal: "1.5" },
          { up_to: null, flat_amount: 3, flat_amount_decimal: "3", unit_amount: null, unit_amount_decimal: null }
        ]
      }
    ],
    [{ ...graduated, tiers: [{ up_to: null, unit_amount: 0 }] }, { tiers_mode: "graduated" }],
    [
      {
        ...graduated,
        tiers: Array.from({ length: 100 }, (_, i) => ({ up_to: i === 99 ? "inf" : i + 1, unit_amount: 1 }))
      },
      { billing_scheme: "tiered" }
    ]
  ])("prices.*: %j becomes %j", async (body, expected) => {
    const created = await create(body)
    assertOk(created)
    assert.deepInclude(created.body, expected)
    assert.strictEqual((await get(`/v1/prices/${created.body.id}`)).text, created.text)
  })

  // Semantics requests.order, parameters.references, requests.order.references, requests.order.state.
  it("missing objects come before invalid combinations and limits", async () => {
    const nobody = "prod_000000000000000000000000"
    assertError(await create({ product: nobody, unit_amount: -1 }), 400, "parameter_invalid", "unit_amount")
    assertError(await create({ product: nobody, type: "recurring" }), 404, "resource_missing", "product")
    assertError(await create({ product: nobody, unit_amount: 1e12 }), 404, "resource_missing", "product")
    const live = await post("/v1/prices", { product: tea, currency: "usd", unit_amount: 1 }, server.keys.secretLive)
    assertError(live, 404, "resource_missing", "product")
  })

  it("prices.delete: cannot be deleted", async () => {
    const reply = await server.request("DELETE", `/v1/prices/${(await price()).id}`)
    assertError(reply, 405, "method_not_allowed")
    assert.strictEqual(reply.headers.get("allow"), "GET, POST")
  })

  it("prices.inactive_product: can be made for an archived product", async () => {
    const { body } = await post("/v1/products", { name: "Old", active: false })
    assertOk(await create({ product: body.id, unit_amount: 1 }))
  })

  it("prices.immutable: never change their amount", async () => {
    const { id } = await price()
    for (const field of [
      "currency",
      "unit_amount",
      "unit_amount_decimal",
      "custom_unit_amount",
      "product",
      "type",
      "billing_scheme",
      "recurring",
      "tiers_mode",
      "tiers",
      "transform_quantity"
    ]) {
      assertError(await update(id, { [field]: null }), 400, "parameter_unknown", field)
    }
  })

  it("are updated, with one event that shows the changes", async () => {
    const made = await price({ nickname: "N", lookup_key: "old", metadata: { a: "b" } })
    const sent = {
      active: false,
      nickname: null,
      tax_behavior: "inclusive",
      lookup_key: "new",
      metadata: { a: "", c: "d" }
    }
    const updated = await update(made.id, sent)
    assertOk(updated)
    assert.deepStrictEqual(updated.body, { ...made, ...sent, metadata: { c: "d" } })
    const [event] = await events(1)
    assert.strictEqual(event.type, "price.updated")
    assert.deepStrictEqual(event.data, {
      object: updated.body,
      previous_attributes: {
        active: true,
        nickname: "N",
        tax_behavior: "unspecified",
        lookup_key: "old",
        metadata: { a: "b", c: null }
      }
    })
    for (const body of [undefined, {}, sent, { nickname: "", transfer_lookup_key: true }, { lookup_key: "new" }]) {
      assert.deepStrictEqual((await update(made.id, body)).body, updated.body)
    }
    assert.strictEqual((await events(1))[0].id, event.id)
    for (const field of ["active", "tax_behavior", "transfer_lookup_key"]) {
      assertError(await update(made.id, { [field]: null }), 400, "parameter_invalid", field)
    }
    assertError(await update("price_nobody", {}), 404, "resource_missing", "id")
  })

  it("prices.lookup_key: a lookup key belongs to one price of an environment", async () => {
    const [one, other] = [await price({ lookup_key: "k1" }), await price()]
    const taken = await create({ unit_amount: 1, lookup_key: "k1" })
    assertError(taken, 400, "resource_already_exists", "lookup_key")
    assert.strictEqual(taken.body.error.message, "A price already uses the lookup_key 'k1'.")
    assertError(await update(other.id, { lookup_key: "k1" }), 400, "resource_already_exists", "lookup_key")
    // Archived prices keep theirs.
    assertOk(await update(one.id, { active: false }))
    assertError(await update(other.id, { lookup_key: "k1" }), 400, "resource_already_exists", "lookup_key")
    const { body: live } = await post("/v1/products", { name: "Tea" }, server.keys.secretLive)
    const elsewhere = { product: live.id, currency: "usd", unit_amount: 1, lookup_key: "k1" }
    assertOk(await post("/v1/prices", elsewhere, server.keys.secretLive))
    for (const nothing of [null, ""]) {
      assert.isNull((await update(one.id, { lookup_key: nothing })).body.lookup_key)
      assertOk(await update(other.id, { lookup_key: "k1" }))
      assertError(await update(one.id, { lookup_key: "k1" }), 400, "resource_already_exists", "lookup_key")
      assertOk(await update(other.id, { lookup_key: "k2" }))
      assertOk(await update(one.id, { lookup_key: "k1" }))
      assertOk(await update(other.id, { lookup_key: "" }))
    }
    assertOk(await create({ unit_amount: 1, lookup_key: "\u{1f600}".repeat(200) }))
    for (const key of ["__proto__", "lookup_key:k1", one.id, "k1 "])
      assertOk(await create({ unit_amount: 1, lookup_key: key }))
    assertError(await get("/v1/prices/lookup_key:k1"), 404, "resource_missing", "id")
  })

  // Semantics prices.lookup_key, events.previous_attributes.
  it("a transfer takes the key from its price, whose event comes first", async () => {
    const loser = await price({ lookup_key: "t1", nickname: "loser" })
    const [{ id: since }] = (await events(1)) as [Reply["body"]]
    const winner = await price({ lookup_key: "t1", transfer_lookup_key: true })
    const third = await price()
    assertOk(await update(third.id, { lookup_key: "t1", transfer_lookup_key: true }))
    const lookupKey = async (id: string) => (await get(`/v1/prices/${id}`)).body.lookup_key
    assert.deepStrictEqual(await Promise.all([loser.id, winner.id, third.id].map(lookupKey)), [null, null, "t1"])
    assert.deepStrictEqual(
      (await eventsSince(since)).map(({ data, type }) => [
        type,
        data.object.id,
        data.object.lookup_key,
        data.previous_attributes
      ]),
      [
        ["price.updated", loser.id, null, { lookup_key: "t1" }],
        ["price.created", winner.id, "t1", undefined],
        ["price.created", third.id, null, undefined],
        ["price.updated", winner.id, null, { lookup_key: "t1" }],
        ["price.updated", third.id, "t1", { lookup_key: null }]
      ]
    )
    // The key is free, or the price's own: no transfer happens.
    assertOk(await update(loser.id, { lookup_key: "t2", transfer_lookup_key: true }))
    assertOk(await update(loser.id, { lookup_key: "t2", transfer_lookup_key: true, nickname: "x" }))
    assert.strictEqual(await lookupKey(loser.id), "t2")
  })

  it("prices.lookup_key: of many concurrent requests for a key, one gets it", async () => {
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => create({ unit_amount: 1, lookup_key: "wanted" }))
    )
    const [winner, ...others] = replies.filter(({ status }) => status === 200)
    assert.strictEqual(winner?.body.lookup_key, "wanted")
    assert.lengthOf(others, 0)
    for (const reply of replies.filter((candidate) => candidate !== winner)) {
      assertError(reply, 400, "resource_already_exists", "lookup_key")
    }
    const transfers = await Promise.all(
      Array.from({ length: 20 }, () => create({ unit_amount: 1, lookup_key: "wanted", transfer_lookup_key: true }))
    )
    for (const reply of transfers) assert.strictEqual(reply.body.lookup_key, "wanted")
    const prices: Array<Reply["body"]> = (await get("/v1/prices?limit=100")).body.data
    assert.lengthOf(
      prices.filter(({ lookup_key }) => lookup_key === "wanted"),
      1
    )
  })

  it("are listed by active, product, type and currency", async () => {
    const key = (await server.merchant()).secretTest
    const make = async (path: string, body: object) => (await post(path, body, key)).body.id
    const [one, two] = [await make("/v1/products", { name: "1" }), await make("/v1/products", { name: "2" })]
    const p = (product: string, body: object) =>
      make("/v1/prices", { product, currency: "usd", unit_amount: 1, ...body })
    const a = await p(one, {})
    const b = await p(two, { currency: "eur" })
    const c = await p(one, { recurring: month })
    const d = await p(one, { active: false })
    const list = async (query: string) =>
      (await get(`/v1/prices${query}`, key)).body.data.map(({ id }: Reply["body"]) => id)
    assert.deepStrictEqual(await list(""), [d, c, b, a])
    assert.deepStrictEqual(await list("?active=true"), [c, b, a])
    assert.deepStrictEqual(await list("?active=false"), [d])
    assert.deepStrictEqual(await list(`?product=${one}`), [d, c, a])
    assert.deepStrictEqual(await list("?type=recurring"), [c])
    assert.deepStrictEqual(await list("?currency=EUR"), [b])
    assert.deepStrictEqual(await list(`?product=${one}&type=one_time&active=true&currency=usd`), [a])
    assert.deepStrictEqual(await list(`?product=${one}&limit=1&starting_after=${d}`), [c])
    assert.deepStrictEqual(await list("?product=prod_nobody"), [])
    for (const [query, param] of [
      ["active=yes", "active"],
      ["product=price_x", "product"],
      ["type=both", "type"],
      ["currency=us", "currency"],
      ["currency=usd&currency=eur", "currency"]
    ]) {
      assertError(await get(`/v1/prices?${query}`, key), 400, "parameter_invalid", param)
    }
    assertError(await get(`/v1/prices?starting_after=${one}`, key), 404, "resource_missing", "starting_after")
  })

  it("show their product where `expand[]` asks for it", async () => {
    const { id } = await price()
    const expanded = await get(`/v1/prices/${id}?expand[]=product`)
    assertOk(expanded)
    assert.deepStrictEqual(expanded.body, {
      ...(await get(`/v1/prices/${id}`)).body,
      product: (await get(`/v1/products/${tea}`)).body
    })
    const refused = await get(`/v1/prices/${id}?expand[]=currency`)
    assertError(refused, 400, "parameter_invalid", "expand[]")
    assert.strictEqual(refused.body.error.message, "The field 'currency' is not expandable on GET /v1/prices/{id}.")
    assertError(await get("/v1/prices?expand[]=product"), 400, "parameter_invalid", "expand[]")
    assertError(await get(`/v1/products/${tea}?expand[]=default_price`), 400, "parameter_invalid", "expand[]")
  })

  // Semantics idempotency.stored, idempotency.released.
  it("a refusal by the catalog's state is stored for its idempotency key", async () => {
    await price({ lookup_key: "kept" })
    const again = () =>
      server.request("POST", "/v1/prices", {
        body: { product: tea, currency: "usd", unit_amount: 1, lookup_key: "kept" },
        idempotencyKey: "lookup-key-kept"
      })
    const first = await again()
    const second = await again()
    assertError(first, 400, "resource_already_exists", "lookup_key")
    assert.strictEqual(second.text, first.text)
    assert.strictEqual(second.headers.get("idempotent-replayed"), "true")
  })
})
