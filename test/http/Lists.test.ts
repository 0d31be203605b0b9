/** Semantics lists.*, expand.*, row by row, through a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
let ids: ReadonlyArray<string>
beforeAll(async () => {
  server = await start()
  const created: Array<string> = []
  for (let i = 0; i < 12; i++) {
    const email = i % 2 === 0 ? "Even@Example.test" : null
    created.push((await server.request("POST", "/v1/customers", { body: { name: `${i}`, email } })).body.id)
  }
  ids = created.toReversed()
})
afterAll(() => server.close())

const get = (path: string) => server.request("GET", path)
const list = (query = "") => get(`/v1/customers${query}`)
const idsOf = (body: { readonly data: ReadonlyArray<{ readonly id: string }> }) => body.data.map(({ id }) => id)

describe("lists", () => {
  it("lists.order, lists.url: newest first, with the path as url, ten by default", async () => {
    const reply = await list()
    assertOk(reply)
    assert.deepStrictEqual(Object.keys(reply.body), ["object", "data", "has_more", "url", "next_cursor"])
    assert.strictEqual(reply.body.object, "list")
    assert.strictEqual(reply.body.url, "/v1/customers")
    assert.deepStrictEqual(idsOf(reply.body), ids.slice(0, 10))
    assert.isTrue(reply.body.has_more)
    assert.strictEqual(reply.body.next_cursor, ids[9])
    assert.strictEqual((await list("?limit=1")).body.url, "/v1/customers")
  })

  it("lists.cursors: both cursors", async () => {
    const reply = await list(`?starting_after=${ids[0]}&ending_before=${ids[1]}`)
    assertError(reply, 400, "parameters_exclusive", "ending_before")
    assert.strictEqual(reply.body.error.message, "Only one of starting_after and ending_before may be sent.")
  })

  // Semantics lists.cursors.unknown.
  it("refuses missing cursors, and those of another kind or environment; deleted ones stay valid", async () => {
    const intent = await server.request("POST", "/v1/payment_intents", { body: { amount: 1, currency: "usd" } })
    const live = await server.request("POST", "/v1/customers", { key: server.keys.secretLive })
    for (const id of ["cus_x", "x", intent.body.id, live.body.id]) {
      for (const name of ["starting_after", "ending_before"]) {
        const reply = await list(`?${name}=${id}`)
        assertError(reply, 404, "resource_missing", name)
        assert.strictEqual(reply.body.error.message, `No Customer found with ID '${id}'.`)
      }
    }
    const { body: doomed } = await server.request("POST", "/v1/customers")
    await server.request("DELETE", `/v1/customers/${doomed.id}`)
    const after = await list(`?starting_after=${doomed.id}&limit=2`)
    assertOk(after)
    assert.deepStrictEqual(idsOf(after.body), ids.slice(0, 2))
    // The cursor's object need not match the filter.
    const filtered = await list(`?email=even@example.test&starting_after=${doomed.id}&limit=1`)
    assertOk(filtered)
    assertError(await get("/v1/events?starting_after=evt_x"), 404, "resource_missing", "starting_after")
    assertError(await get(`/v1/events?ending_before=${ids[0]}`), 404, "resource_missing", "ending_before")
  })

  it("lists.cursors, lists.has_more: starting_after", async () => {
    const { body } = await list(`?starting_after=${ids[1]}&limit=3`)
    assert.deepStrictEqual(idsOf(body), ids.slice(2, 5))
    assert.isTrue(body.has_more)
    assert.strictEqual(body.next_cursor, ids[4])
    const last = (await list(`?starting_after=${ids[9]}&limit=2`)).body
    assert.deepStrictEqual(idsOf(last), ids.slice(10))
    assert.isFalse(last.has_more)
    assert.isNull(last.next_cursor)
  })

  it("lists.cursors, lists.has_more: ending_before selects the nearest, and still shows the newest first", async () => {
    const { body } = await list(`?ending_before=${ids[6]}&limit=3`)
    assert.deepStrictEqual(idsOf(body), ids.slice(3, 6))
    assert.isTrue(body.has_more)
    assert.strictEqual(body.next_cursor, ids[5])
    const newest = (await list(`?ending_before=${ids[2]}&limit=3`)).body
    assert.deepStrictEqual(idsOf(newest), ids.slice(0, 2))
    assert.isFalse(newest.has_more)
    assert.isNull(newest.next_cursor)
  })

  it("lists.empty: nothing", async () => {
    for (const query of [`?starting_after=${ids[11]}`, "?email=nobody@example.test"]) {
      const { body } = await list(query)
      assert.deepStrictEqual(body, {
        object: "list",
        data: [],
        has_more: false,
        url: "/v1/customers",
        next_cursor: null
      })
    }
  })

  it("lists.limit: limits", async () => {
    for (const limit of ["0", "101", "-1", "1.5", "1e1", "ten", "", "%201", "01", "0x10", "99999999999999999999"]) {
      const reply = await list(`?limit=${limit}`)
      assertError(reply, 400, "parameter_invalid", "limit")
    }
    assert.strictEqual(
      (await list("?limit=0")).body.error.message,
      "The `limit` field must be an integer from 1 to 100."
    )
    assert.strictEqual((await list("?limit=1")).body.data.length, 1)
    assert.strictEqual((await list("?limit=100")).body.data.length, 12)
  })

  it("lists.filters, lists.email, payment_intents.list: filters", async () => {
    const even = ids.filter((_, index) => index % 2 === 1)
    assert.deepStrictEqual(idsOf((await list("?email=even@EXAMPLE.test")).body), even)
    assertError(await list("?email="), 400, "parameter_invalid", "email")
    assertError(await list("?email=a@b.co&email=a@b.co"), 400, "parameter_invalid", "email")
    assertError(await list("?limit=1&limit=1"), 400, "parameter_invalid", "limit")
    // A filter accepts any text (semantics lists.created).
    for (const text of ["x", "%40", "x".repeat(320)]) {
      const reply = await list(`?email=${text}`)
      assertOk(reply)
      assert.deepStrictEqual(reply.body.data, [])
    }
    assertError(await list(`?email=${"x".repeat(321)}`), 400, "parameter_invalid", "email")
    // A plus in a URL stands for a blank.
    for (const blank of ["+", "%20", "%C2%A0"]) {
      const refused = await list(`?email=a${blank}b@example.com`)
      assertError(refused, 400, "parameter_invalid", "email")
      assert.include(refused.body.error.message, "a `+` in a URL is written as `%2B`")
    }
    assert.deepStrictEqual((await list("?email=a%2Bb@example.com")).body.data, [])
    assert.deepStrictEqual((await get("/v1/payment_intents?customer=cus_x")).body.data, [])
    assertError(await get("/v1/payment_intents?customer=x"), 400, "parameter_invalid", "customer")
    const { body } = await server.request("POST", "/v1/payment_intents", {
      body: { amount: 1, currency: "usd", customer: ids[0] }
    })
    assert.deepStrictEqual(idsOf((await get(`/v1/payment_intents?customer=${ids[0]}`)).body), [body.id])
    assertError(await list("?limit=x&zzz=1"), 400, "parameter_unknown", "zzz")
  })

  it("parameters.text: no parameter accepts a NUL, which the database cannot compare", async () => {
    for (const [path, parameter] of [
      ["customers", "email=a@b.c%00"],
      ["customers", "starting_after=cus_%00"],
      ["customers", "ending_before=%00"],
      ["payment_intents", "customer=cus_%00"],
      ["prices", "product=prod_a%00b"],
      ["refunds", "payment_intent=pi_%00"],
      ["payment_intents/pi_x", "client_secret=%00"]
    ] as const) {
      const name = parameter.slice(0, parameter.indexOf("="))
      assertError(await get(`/v1/${path}?${parameter}`), 400, "parameter_invalid", name)
    }
  })

  it("lists.consistency: a list after a 200 contains the object", async () => {
    for (let i = 0; i < 10; i++) {
      const { body } = await server.request("POST", "/v1/customers", { key: server.keys.secretLive })
      const newest = await server.request("GET", "/v1/customers?limit=1", { key: server.keys.secretLive })
      assert.strictEqual(newest.body.data[0].id, body.id)
      await server.request("DELETE", `/v1/customers/${body.id}`, { key: server.keys.secretLive })
      const left = await server.request("GET", "/v1/customers?limit=1", { key: server.keys.secretLive })
      assert.notInclude(left.text, body.id)
    }
  })
})

describe("expansion", () => {
  const intentOf = async (customer: string | null) =>
    (await server.request("POST", "/v1/payment_intents", { body: { amount: 1, currency: "usd", customer } })).body.id

  it("replaces the customer's id by the customer", async () => {
    const id = await intentOf(ids[0]!)
    const expanded = await get(`/v1/payment_intents/${id}?expand[]=customer`)
    assertOk(expanded)
    const plain = await get(`/v1/payment_intents/${id}`)
    const customer = await get(`/v1/customers/${ids[0]}`)
    assert.deepStrictEqual(expanded.body, { ...plain.body, customer: customer.body })
    assert.deepStrictEqual(Object.keys(expanded.body), Object.keys(plain.body))
  })

  it("expand.unknown: no other field can be expanded, on any GET", async () => {
    const id = await intentOf(null)
    const cases = [
      [`/v1/payment_intents/${id}?expand[]=charges`, "charges", "GET /v1/payment_intents/{id}"],
      [`/v1/payment_intents/${id}?expand[]=customer&expand[]=x.y`, "x.y", "GET /v1/payment_intents/{id}"],
      [`/v1/payment_intents/${id}?expand[]=`, "", "GET /v1/payment_intents/{id}"],
      [`/v1/payment_intents?expand[]=customer`, "customer", "GET /v1/payment_intents"],
      [`/v1/customers?expand[]=x`, "x", "GET /v1/customers"],
      [`/v1/customers/${ids[0]}?expand[]=x`, "x", "GET /v1/customers/{id}"],
      [`/v1/events?expand=data`, "data", "GET /v1/events"]
    ] as const
    for (const [path, field, route] of cases) {
      const reply = await get(path)
      assertError(reply, 400, "parameter_invalid", "expand[]")
      assert.strictEqual(reply.body.error.message, `The field '${field}' is not expandable on ${route}.`)
    }
  })

  it("expand.spelling: spellings", async () => {
    const id = await intentOf(ids[0]!)
    for (const query of [
      "expand[]=customer",
      "expand%5B%5D=customer",
      "expand=customer",
      "expand[0]=customer",
      "expand[]=customer&expand[]=customer&expand=customer"
    ]) {
      const { body } = await get(`/v1/payment_intents/${id}?${query}`)
      assert.strictEqual(body.customer.id, ids[0], query)
    }
    assertError(await get(`/v1/payment_intents/${id}?expand[x]=customer`), 400, "parameter_unknown", "expand[x]")
  })

  it("expand.customer: no customer, and a deleted one", async () => {
    assert.isNull((await get(`/v1/payment_intents/${await intentOf(null)}?expand[]=customer`)).body.customer)
    const { body: customer } = await server.request("POST", "/v1/customers")
    const id = await intentOf(customer.id)
    await server.request("DELETE", `/v1/customers/${customer.id}`)
    const expanded = await get(`/v1/payment_intents/${id}?expand[]=customer`)
    const stub = { id: customer.id, object: "customer", deleted: true, livemode: false }
    assert.deepStrictEqual(expanded.body.customer, stub)
  })

  it("expand.post: not in the body of a POST", async () => {
    const reply = await server.request("POST", "/v1/payment_intents", {
      body: { amount: 1, currency: "usd", expand: ["customer"] }
    })
    assertError(reply, 400, "parameter_unknown", "expand")
  })
})

describe("events", () => {
  it("events.list: by type, by prefix, and one by one", async () => {
    const key = (await server.merchant()).secretTest
    const { body: customer } = await server.request("POST", "/v1/customers", { key, idempotencyKey: "event-source" })
    const created = await server.request("POST", "/v1/payment_intents", {
      key,
      body: { amount: 1, currency: "usd", confirm: true, payment_method: "pm_card_visa" }
    })
    assertOk(created)
    const events = async (query: string) => (await server.request("GET", `/v1/events${query}`, { key })).body.data
    const typesOf = async (query: string) => (await events(query)).map(({ type }: { type: string }) => type)
    const all = ["payment_intent.succeeded", "charge.succeeded", "payment_intent.created", "customer.created"]
    assert.deepStrictEqual(await typesOf(""), all)
    assert.deepStrictEqual(await typesOf("?type=charge.succeeded"), ["charge.succeeded"])
    assert.deepStrictEqual(await typesOf("?type=payment_intent.*"), [all[0], all[2]])
    assert.deepStrictEqual(await typesOf("?type=price.created"), [])
    for (const type of ["nothing", "nothing.*", "payment_intent", "*", "payment_intent.x", "payment*"]) {
      assertError(await server.request("GET", `/v1/events?type=${type}`, { key }), 400, "parameter_invalid", "type")
    }
    const [oldest] = await events("?type=customer.created")
    const one = await server.request("GET", `/v1/events/${oldest.id}`, { key })
    assert.deepStrictEqual(one.body, oldest)
    assert.deepStrictEqual(one.body.data, { object: customer })
    assert.strictEqual(one.body.request.idempotency_key, "event-source")
    assertError(await server.request("GET", `/v1/events/${oldest.id}`), 404, "resource_missing", "id")
    assertError(await server.request("GET", `/v1/events/${customer.id}`, { key }), 404, "resource_missing", "id")
    const first = (await server.request("GET", "/v1/events?limit=3", { key })).body
    assert.strictEqual(first.next_cursor, first.data[2].id)
    assert.deepStrictEqual(await typesOf(`?starting_after=${first.next_cursor}`), ["customer.created"])
    assert.deepStrictEqual(await typesOf(`?ending_before=${oldest.id}&limit=1`), ["payment_intent.created"])
  })
})
