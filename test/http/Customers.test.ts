/** Semantics metadata.*, customers.*, row by row, through a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { parseJson } from "../../src/json/JsonParse.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const create = async (body: unknown = {}) => (await server.request("POST", "/v1/customers", { body })).body
const update = (id: string, body?: unknown) => server.request("POST", `/v1/customers/${id}`, { body })
const newestEvent = async () => (await server.request("GET", "/v1/events?limit=1")).body.data[0]

describe("customers", () => {
  it("customers.list: create and retrieve", async () => {
    const body = { email: "a@b.co", name: "A", phone: "1", description: "D", metadata: { a: "b" } }
    const created = await server.request("POST", "/v1/customers", { body })
    assertOk(created)
    assert.deepInclude(created.body, { ...body, object: "customer", livemode: false })
    const retrieved = await server.request("GET", `/v1/customers/${created.body.id}`)
    assertOk(retrieved)
    assert.strictEqual(retrieved.text, created.text)
  })

  it("customers.delete, responses.deleted: deletion leaves a stub, and no new reference to it is accepted", async () => {
    const { id } = await create()
    const intent = { amount: 1, currency: "usd", customer: id }
    const { body: old } = await server.request("POST", "/v1/payment_intents", { body: intent })
    const stub = { id, object: "customer", deleted: true, livemode: false }
    assert.deepStrictEqual((await server.request("DELETE", `/v1/customers/${id}`)).body, stub)
    assert.deepStrictEqual((await server.request("GET", `/v1/customers/${id}`)).body, stub)
    assertError(await update(id, { name: "A" }), 404, "resource_missing", "id")
    assertError(await server.request("DELETE", `/v1/customers/${id}`), 404, "resource_missing", "id")
    assertError(
      await server.request("POST", "/v1/payment_intents", { body: intent }),
      404,
      "resource_missing",
      "customer"
    )
    assert.strictEqual((await server.request("GET", `/v1/payment_intents/${old.id}`)).body.customer, id)
    assert.notInclude((await server.request("GET", "/v1/customers?limit=100")).text, id)
  })

  it("erasure.request, erasure.after: an erased customer has no data and gets none", async () => {
    const { id } = await create({ name: "Jane", email: "jane@example.com", metadata: { a: "b" } })
    const sale = { amount: 500, currency: "usd", customer: id, payment_method: "pm_card_visa", confirm: true }
    const post = (path: string, body: object = {}) => server.request("POST", `/v1/${path}`, { body })
    const paid = (await post("payment_intents", sale)).body
    const held = (await post("payment_intents", { ...sale, capture_method: "manual" })).body
    const refused = await post(`customers/${id}/erase`)
    assertError(refused, 409, "customer_has_payment", "id")
    assert.include(refused.text, held.id)
    assertOk(await post(`payment_intents/${held.id}/cancel`))
    const { id: card } = (await post("payment_methods/pm_card_visa/attach", { customer: id })).body

    const before = await newestEvent()
    const erased = await post(`customers/${id}/erase`)
    assertOk(erased)
    const nothing = { name: null, email: null, phone: null, description: null, metadata: {} }
    assert.deepInclude(erased.body, { id, ...nothing, erasure: "in_progress" })
    assert.strictEqual((await server.request("GET", `/v1/customers/${id}`)).text, erased.text)
    const event = await newestEvent()
    assert.deepInclude(event, { type: "payment_method.detached" })
    assert.notStrictEqual(event.id, before.id)

    assertError(await update(id, { name: "Jane" }), 400, "parameter_invalid", "id")
    for (const [path, body] of [
      ["payment_intents", { amount: 1, currency: "usd", customer: id }],
      ["payment_methods/pm_card_visa/attach", { customer: id }]
    ] as const) {
      assertError(await post(path, body), 400, "parameter_invalid", "customer")
    }
    assert.isNull((await server.request("GET", `/v1/payment_methods/${card}`)).body.customer)
    assertOk(await post("refunds", { payment_intent: paid.id }))
    assertOk(await post(`customers/${id}/erase`))
    assertOk(await server.request("DELETE", `/v1/customers/${id}`))
    const stub = { id, object: "customer", deleted: true, livemode: false }
    assert.deepStrictEqual((await post(`customers/${id}/erase`)).body, stub)
    assertError(await post("customers/cus_08Qm3vXk1Zr9TbLw5YcHn2Ea/erase"), 404, "resource_missing", "id")
  })

  it("customers.update: an update that changes nothing makes no event", async () => {
    const { id } = await create({ name: "A", metadata: { a: "b" } })
    const before = await newestEvent()
    for (const body of [
      undefined,
      {},
      { name: "A" },
      { metadata: {} },
      { metadata: { a: "b", c: null } },
      { phone: "" }
    ]) {
      assertOk(await update(id, body))
    }
    assert.strictEqual((await newestEvent()).id, before.id)
    assertOk(await update(id, { name: null }))
    const event = await newestEvent()
    assert.strictEqual(event.type, "customer.updated")
    assert.deepStrictEqual(event.data.previous_attributes, { name: "A" })
  })

  it("customers.duplicates: emails need not be unique", async () => {
    const [one, other] = [await create({ email: "a@b.co" }), await create({ email: "a@b.co" })]
    assert.notStrictEqual(one.id, other.id)
  })
})

describe("metadata", () => {
  it("metadata.limits: limits", async () => {
    const post = (metadata: unknown) => server.request("POST", "/v1/customers", { body: { metadata } })
    const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]))
    assertOk(await post(keys(50)))
    assertError(await post(keys(51)), 400, "parameter_invalid", "metadata")
    assertOk(await post({ ["k".repeat(40)]: "v".repeat(500) }))
    assertError(await post({ ["k".repeat(41)]: "v" }), 400, "parameter_invalid", "metadata")
    for (const key of ["a[b", "a]b", ""]) assertError(await post({ [key]: "v" }), 400, "parameter_invalid", "metadata")
    for (const value of [1, true, {}, [], "v".repeat(501)]) {
      assertError(await post({ a: "b", c: value }), 400, "parameter_invalid", "metadata[c]")
    }
    const { id } = await create({ metadata: keys(50) })
    assertError(await update(id, { metadata: { one: "more" } }), 400, "parameter_invalid", "metadata")
    assertOk(await update(id, { metadata: { one: "more", k0: "" } }))
  })

  it("metadata.update: updates merge", async () => {
    const { id } = await create({ metadata: { a: "1", b: "2", c: "3" } })
    const merge = async (metadata: unknown) => (await update(id, { metadata })).body.metadata
    assert.deepStrictEqual(await merge({ a: "9", b: "", d: "4" }), { a: "9", c: "3", d: "4" })
    assert.deepStrictEqual(await merge({ c: null }), { a: "9", d: "4" })
    assert.deepStrictEqual(await merge({}), { a: "9", d: "4" })
    assert.deepStrictEqual(await merge(""), {})
    assert.deepStrictEqual(await merge({ a: "1" }), { a: "1" })
    assert.deepStrictEqual(await merge(null), {})
  })

  it("metadata.create: creation drops empty values", async () => {
    assert.deepStrictEqual((await create({ metadata: { a: "", b: null, c: "d" } })).metadata, { c: "d" })
    assert.deepStrictEqual((await create()).metadata, {})
  })

  it("metadata.copies: a charge gets the PaymentIntent's metadata", async () => {
    const { body } = await server.request("POST", "/v1/payment_intents", {
      body: { amount: 1, currency: "usd", confirm: true, payment_method: "pm_card_visa", metadata: { a: "b" } }
    })
    assert.deepStrictEqual(body.charges.data[0].metadata, { a: "b" })
  })

  it("keeps every key as sent, for any keys of another merchant (semantics requests.json)", async () => {
    const other = await server.merchant()
    const send = (body: string, key?: string) => server.request("POST", "/v1/customers", { body, ...(key && { key }) })
    const keys = [String.raw`\n`, String.raw`a\nb`, String.raw`\"`, String.raw`\u0041\u0042`, String.raw`\\n`]
    for (const [i, key] of keys.entries()) {
      const name: string = JSON.parse(`"${key}"`)
      const bodyOf = (second: string) => `{"metadata":{"first ${i}":"x",${second}:"x"}}`
      // The key with the same hash in V8: as many characters of its source.
      assertOk(await send(bodyOf(JSON.stringify(key.slice(0, name.length))), other.secretTest))
      const created = await send(bodyOf(`"${key}"`))
      assertOk(created)
      const shown = await server.request("GET", `/v1/customers/${created.body.id}`)
      assert.deepStrictEqual(Object.keys(created.body.metadata), [`first ${i}`, name])
      assert.deepStrictEqual(shown.body, created.body)
    }
  })

  it("keeps every key as sent, including names of JavaScript's prototypes", async () => {
    const text = '{"metadata":{"__proto__":"p","constructor":"c","toString":"t","1":"one","ä\u{1f600}":"\u2028"}}'
    const created = await server.request("POST", "/v1/customers", { body: text })
    assertOk(created)
    const { metadata } = parseJson(text) as { readonly metadata: object } as { readonly metadata: object }
    assert.deepStrictEqual(Object.entries(created.body.metadata), Object.entries(metadata))
    const updated = await update(created.body.id, '{"metadata":{"__proto__":"q","constructor":null}}')
    assert.strictEqual(Object.getOwnPropertyDescriptor(updated.body.metadata, "__proto__")?.value, "q")
    assert.isFalse(Object.hasOwn(updated.body.metadata, "constructor"))
    const event = await newestEvent()
    const { metadata: previous } = event.data.previous_attributes
    assert.sameDeepMembers(Object.entries(previous), [
      ["__proto__", "p"],
      ["constructor", "c"]
    ])
    assert.strictEqual(({} as { p?: unknown }).p, undefined)
  })
})
