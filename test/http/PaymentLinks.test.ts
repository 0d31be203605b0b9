/** Semantics payment_links.*, through a real socket: the object, its parameters and its reads. */
import { assert, describe, it } from "@effect/vitest"
import { assertError, assertOk } from "./Assertions.ts"
import { catalog, get, newestEvent, eventsSince, openShop, post, server } from "../support/fixtures/CheckoutSessions.ts"

openShop()

const line = (more: object = {}) => ({ price: catalog.price, quantity: 2, ...more })
const linkOf = (more: object = {}) => ({ line_items: [line()], ...more })
const create = async (more: object = {}) => {
  const created = await post("payment_links", linkOf(more))
  assertOk(created)
  return created.body
}
const refused = async (body: object, code: string, param: string, status = 400) =>
  assertError(await post("payment_links", body), status, code, param)

describe("payment links", () => {
  it("payment_links.object, payment_links.create: have these fields, by default and as sent", async () => {
    const plain = await create()
    assert.match(plain.id, /^plink_[0-9A-Za-z]{24}$/)
    const { created, id, url, ...fields } = plain
    assert.isNumber(created)
    assert.deepStrictEqual(fields, {
      object: "payment_link",
      active: true,
      currency: "usd",
      after_completion: { type: "hosted_confirmation", redirect: null },
      inactive_message: null,
      restrictions: null,
      customer_creation: "if_required",
      billing_address_collection: "auto",
      phone_number_collection: { enabled: false },
      payment_intent_data: {
        capture_method: "automatic",
        description: null,
        statement_descriptor: null,
        metadata: {}
      },
      metadata: {},
      livemode: false
    })
    const sent = {
      after_completion: { type: "redirect", redirect: { url: "https://shop.example/thanks" } },
      inactive_message: "Sold out",
      restrictions: { completed_sessions: { limit: 3 } },
      customer_creation: "always",
      billing_address_collection: "required",
      phone_number_collection: { enabled: true },
      payment_intent_data: {
        capture_method: "manual",
        description: "Tea",
        statement_descriptor: "TEA",
        metadata: { a: "b" }
      },
      metadata: { shop: "1" }
    }
    assert.deepInclude(await create({ ...sent, currency: "EUR" }), {
      ...sent,
      currency: "eur",
      restrictions: { completed_sessions: { count: 0, limit: 3 } }
    })
    assertOk(await get(`payment_links/${id}`))
    assert.deepStrictEqual((await get(`payment_links/${id}`)).body, plain)
    assert.strictEqual(url, `${new URL(url).origin}/pay/${id.slice("plink_".length)}`)
  })

  it("payment_links.create: emit an event, and refuse unknown and wrong parameters", async () => {
    const since = await newestEvent()
    await create()
    assert.deepStrictEqual(await eventsSince(since), ["payment_link.created"])
    await refused({}, "parameter_missing", "line_items")
    await refused({ line_items: [] }, "parameter_invalid", "line_items")
    await refused(linkOf({ inactive_message: "x".repeat(501) }), "parameter_invalid", "inactive_message")
    await refused(linkOf({ success_url: "https://a.b" }), "parameter_unknown", "success_url")
    const fee = { payment_intent_data: { application_fee_amount: 1 } }
    await refused(linkOf(fee), "parameter_unknown", "payment_intent_data[application_fee_amount]")
    for (const limit of [0, 1_000_000, 1.5]) {
      const param = "restrictions[completed_sessions][limit]"
      await refused(linkOf({ restrictions: { completed_sessions: { limit } } }), "parameter_invalid", param)
    }
    const key = { key: server.keys.publishableTest }
    assertError(await post("payment_links", linkOf(), key), 403, "secret_key_required")
    const { id } = await create()
    assertError(await get(`payment_links/${id}`, key), 403, "secret_key_required")
    assertError(await get(`payment_links/${id}/line_items`, key), 403, "secret_key_required")
  })

  it("payment_links.line_items: follow the rules of sessions' lines", async () => {
    const at = (body: object) => ({ line_items: [body] })
    await refused(at({ quantity: 1 }), "parameter_missing", "line_items[0][price]")
    await refused(at(line({ price: "price_none" })), "resource_missing", "line_items[0][price]", 404)
    await refused(at(line({ price: catalog.archived })), "price_inactive", "line_items[0][price]")
    const price_data = { currency: "usd", product: catalog.product, unit_amount: 500 }
    await refused(at(line({ price_data })), "parameters_exclusive", "line_items[0][price_data]")
    const gone = { price_data: { ...price_data, product: catalog.inactiveProduct } }
    await refused(at(gone), "product_inactive", "line_items[0][price_data][product]")
    await refused({ line_items: [line(), line({ price: catalog.yen })] }, "parameter_invalid", "line_items")
    await refused(at(line({ price: catalog.custom })), "parameter_invalid", "line_items[0][quantity]")
    const huge = { price_data: { ...price_data, unit_amount: 999_999_999_999 }, quantity: 2 }
    await refused(at(huge), "amount_too_large", "line_items")

    const link = await create({ line_items: [line(), { price_data, adjustable_quantity: { enabled: true } }] })
    const path = `payment_links/${link.id}/line_items`
    const { body } = await get(path)
    const { data, ...envelope } = body
    assert.deepStrictEqual(envelope, { object: "list", has_more: false, url: `/v1/${path}`, next_cursor: null })
    const [first, second] = data
    assert.match(first.id, /^plli_[0-9A-Za-z]{24}$/)
    const shared = { object: "item", currency: "usd", description: "T-shirt" }
    assert.deepStrictEqual(first, {
      ...shared,
      id: first.id,
      price: catalog.price,
      quantity: 2,
      amount_subtotal: 3998,
      amount_total: 3998,
      adjustable_quantity: null
    })
    assert.deepInclude(second, {
      ...shared,
      quantity: 1,
      amount_total: 500,
      adjustable_quantity: { enabled: true, minimum: 1, maximum: 99 }
    })
    assert.strictEqual((await get(`prices/${second.price}`)).body.active, false)
    assert.deepInclude((await get(`${path}?limit=1`)).body, { has_more: true, next_cursor: first.id })
    assert.deepStrictEqual((await get(`${path}?starting_after=${first.id}`)).body.data, [second])
    assertError(await get(`${path}?starting_after=plli_none`), 404, "resource_missing", "starting_after")
    assertError(await get("payment_links/plink_none/line_items"), 404, "resource_missing", "id")
  })

  it("payment_links.quantity: has bounds that fit", async () => {
    const at = (quantity: number, adjustable_quantity: object) => ({
      line_items: [line({ quantity, adjustable_quantity })]
    })
    const bounds = async (quantity: number, sent: object) => {
      const { id } = await create(at(quantity, { enabled: true, ...sent }))
      const { maximum, minimum } = (await get(`payment_links/${id}/line_items`)).body.data[0].adjustable_quantity
      return [minimum, maximum]
    }
    assert.deepStrictEqual(await bounds(1, {}), [1, 99])
    assert.deepStrictEqual(await bounds(150, {}), [1, 150])
    assert.deepStrictEqual(await bounds(120, { minimum: 120 }), [120, 120])
    assert.deepStrictEqual(await bounds(5, { minimum: 5, maximum: 5 }), [5, 5])
    assert.deepStrictEqual(await bounds(1, { minimum: null, maximum: 999_999 }), [1, 999_999])
    const param = (name: string) => `line_items[0][adjustable_quantity][${name}]`
    await refused(at(5, { enabled: true, minimum: 6, maximum: 5 }), "parameter_invalid", param("maximum"))
    await refused(at(5, { enabled: true, minimum: 6 }), "parameter_invalid", "line_items[0][quantity]")
    await refused(at(5, { enabled: true, maximum: 4 }), "parameter_invalid", "line_items[0][quantity]")
    await refused(at(1, { enabled: true, minimum: 0 }), "parameter_invalid", param("minimum"))
    await refused(at(1, { enabled: true, maximum: 1_000_000 }), "parameter_invalid", param("maximum"))
    await refused(at(1, { enabled: false, maximum: 3 }), "parameter_invalid", param("maximum"))
    await refused(at(1, { minimum: 1 }), "parameter_missing", param("enabled"))
    const custom = { line_items: [{ price: catalog.custom, adjustable_quantity: { enabled: true } }] }
    await refused(custom, "parameter_invalid", "line_items[0][adjustable_quantity]")
    const { id } = await create(at(1, { enabled: false }))
    assert.isNull((await get(`payment_links/${id}/line_items`)).body.data[0].adjustable_quantity)
  })

  it("payment_links.after_completion: leads to a page exactly if it redirects", async () => {
    const param = "after_completion[redirect]"
    const redirect = { url: "https://shop.example/" }
    await refused(linkOf({ after_completion: { type: "redirect" } }), "parameter_missing", param)
    const both = { type: "hosted_confirmation", redirect }
    await refused(linkOf({ after_completion: both }), "parameter_invalid", param)
    const script = { type: "redirect", redirect: { url: "javascript:alert(1)" } }
    await refused(linkOf({ after_completion: script }), "parameter_invalid", `${param}[url]`)
    const { id } = await create()
    assertError(await post(`payment_links/${id}`, { after_completion: both }), 400, "parameter_invalid", param)
    const after_completion = { type: "redirect", redirect }
    assert.deepInclude((await post(`payment_links/${id}`, { after_completion })).body, { after_completion })
  })

  it("payment_links.update: changes what can change, with an event about it", async () => {
    const link = await create({ metadata: { a: "1" }, restrictions: { completed_sessions: { limit: 3 } } })
    const update = (body: object) => post(`payment_links/${link.id}`, body)
    const changes = {
      active: false,
      inactive_message: "Gone",
      restrictions: { completed_sessions: { limit: 5 } },
      metadata: { a: "", b: "2" }
    }
    const changed = await update(changes)
    assertOk(changed)
    assert.deepStrictEqual(changed.body, {
      ...link,
      active: false,
      inactive_message: "Gone",
      restrictions: { completed_sessions: { count: 0, limit: 5 } },
      metadata: { b: "2" }
    })
    const [event] = (await get("events?limit=1")).body.data
    assert.strictEqual(event.type, "payment_link.updated")
    assert.deepStrictEqual(event.data, {
      object: changed.body,
      previous_attributes: {
        active: true,
        inactive_message: null,
        restrictions: { completed_sessions: { count: 0, limit: 3 } },
        metadata: { a: "1", b: null }
      }
    })
    const since = await newestEvent()
    for (const body of [{}, { active: false }, { restrictions: { completed_sessions: { limit: 5 } } }]) {
      assert.deepStrictEqual((await update(body)).body, changed.body)
    }
    assert.deepStrictEqual(await eventsSince(since), [])
    const unset = await update({ inactive_message: "", restrictions: null, metadata: null })
    assert.deepInclude(unset.body, { inactive_message: null, restrictions: null, metadata: {} })
    assertError(await update({ active: null }), 400, "parameter_invalid", "active")
    assertError(await update({ line_items: [line()] }), 400, "parameter_unknown", "line_items")
    assertError(await update({ currency: "usd" }), 400, "parameter_unknown", "currency")
    assertError(await post("payment_links/plink_none", {}), 404, "resource_missing", "id")
    assertError(await server.request("DELETE", `/v1/payment_links/${link.id}`), 405, "method_not_allowed")
  })

  it("payment_links.list: lists links, newest first, by whether they are active", async () => {
    const merchant = await server.merchant()
    const key = { key: merchant.secretTest }
    const product = (await post("products", { name: "P" }, key)).body.id
    const price_data = { currency: "usd", product, unit_amount: 100 }
    const ids: Array<string> = []
    for (let index = 0; index < 3; index++) {
      ids.unshift((await post("payment_links", { line_items: [{ price_data }] }, key)).body.id)
    }
    await post(`payment_links/${ids[1]}`, { active: false }, key)
    const listed = async (query: string) =>
      (await get(`payment_links${query}`, key)).body.data.map(({ id }: { id: string }) => id)
    assert.deepStrictEqual(await listed(""), ids)
    assert.deepStrictEqual(await listed("?active=true"), [ids[0], ids[2]])
    assert.deepStrictEqual(await listed("?active=false"), [ids[1]])
    assert.deepStrictEqual(await listed(`?starting_after=${ids[0]}&limit=1`), [ids[1]])
    assertError(await get("payment_links?active=yes", key), 400, "parameter_invalid", "active")
    const wrong = await get("checkout_sessions?payment_link=cs_1", key)
    assertError(wrong, 400, "parameter_invalid", "payment_link")
    assert.deepStrictEqual((await get("checkout_sessions?payment_link=plink_none", key)).body.data, [])
    assertError(await get(`payment_links/${ids[0]}`), 404, "resource_missing", "id")
  })
})
