/** Searches over HTTP (semantics search.*); `Search.pg` tests their results. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { TillClient } from "../../src/client/index.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const post = async (path: string, body: object = {}) => {
  const reply = await server.request("POST", `/v1/${path}`, { body })
  assertOk(reply)
  return reply.body
}
const search = (kind: string, query: string, more = "") =>
  server.request("GET", `/v1/${kind}/search?query=${encodeURIComponent(query)}${more}`)
const found = async (kind: string, query: string): Promise<ReadonlyArray<string>> => {
  const reply = await search(kind, query)
  assertOk(reply)
  return reply.body.data.map(({ id }: { readonly id: string }) => id)
}

describe("search.endpoints, search.pages: a search", () => {
  it("finds objects of earlier answers, in their current state", async () => {
    const metadata = { order: "now" }
    const { id: customer } = await post("customers", { email: "Jenny@Example.com", name: "Jenny Rosen", metadata })
    assert.deepStrictEqual(await found("customers", 'email:"jenny@example.com" AND name~"ROS"'), [customer])
    const { amount, id } = await post("payment_intents", { amount: 1234, currency: "EUR", customer, metadata })
    const terms = `amount:${amount} currency:"eur" customer:"${customer}" metadata["order"]:"now"`
    assert.deepStrictEqual(await found("payment_intents", `${terms} last4:null status:"requires_payment_method"`), [id])
    await post(`payment_intents/${id}/confirm`, { payment_method: "pm_card_visa" })
    assert.deepStrictEqual(await found("payment_intents", `${terms} last4:"4242" status:"succeeded"`), [id])
    assert.deepStrictEqual(await found("payment_intents", `${terms} -status:"succeeded"`), [])
    await post(`payment_intents/${id}`, { metadata: { order: "later" } })
    assert.deepStrictEqual(await found("payment_intents", terms), [])
    assert.deepStrictEqual(await found("payment_intents", 'metadata["order"]:"later"'), [id])
    await server.request("DELETE", `/v1/customers/${customer}`)
    assert.deepStrictEqual(await found("customers", 'email:"jenny@example.com"'), [])
  })

  it("refuses an email with a blank, which a plus in a URL means, and shows how to write it", async () => {
    const { id } = await post("customers", { email: "jenny+shop@example.com" })
    const asked = (query: string) => server.request("GET", `/v1/customers/search?query=${query}`)
    for (const clause of ['email:"jenny+shop@example.com"', '-email~"+shop"', 'name:"x"+email:"a+b"']) {
      const refused = await asked(clause)
      assertError(refused, 400, "parameter_invalid", "query")
      assert.match(
        refused.body.error.message,
        /at character \d+, no email has a blank, and a `\+` in a URL is written as `%2B`/
      )
    }
    assert.deepStrictEqual(
      (await asked('email:"jenny%2Bshop@example.com"')).body.data.map(({ id }: { id: string }) => id),
      [id]
    )
    assertOk(await asked('name:"Jenny+Rosen"'))
  })

  it("uses the card of the newest charge for last4", async () => {
    const { id } = await post("payment_intents", { amount: 1, currency: "usd", metadata: { cards: "two" } })
    const declined = { body: { payment_method: "pm_card_chargeDeclined" } }
    assertError(await server.request("POST", `/v1/payment_intents/${id}/confirm`, declined), 402, "card_declined")
    const { last4 } = (await server.request("GET", `/v1/payment_intents/${id}`)).body.charges.data[0]
      .payment_method_details.card
    assert.deepStrictEqual(await found("payment_intents", `last4:"${last4}" metadata["cards"]:"two"`), [id])
    await post(`payment_intents/${id}/confirm`, { payment_method: "pm_card_mastercard" })
    assert.deepStrictEqual(await found("payment_intents", `last4:"${last4}" metadata["cards"]:"two"`), [])
    assert.deepStrictEqual(await found("payment_intents", 'last4:"4444" metadata["cards"]:"two"'), [id])
  })

  it("returns pages, newest first, which the client can follow", async () => {
    const ids: Array<string> = []
    for (let i = 0; i < 7; i++) ids.unshift((await post("customers", { name: `Walker ${i}` })).id)
    const first = await search("customers", 'name~"walker"', "&limit=3")
    assert.deepStrictEqual(Object.keys(first.body), ["object", "data", "has_more", "url", "next_page"])
    assert.strictEqual(first.body.object, "search_result")
    assert.strictEqual(first.body.url, "/v1/customers/search")
    assert.isTrue(first.body.has_more)
    // Changes between two pages move no result.
    await post("customers", { name: "Walker 8" })
    await server.request("DELETE", `/v1/customers/${ids[2]}`)
    const second = await search("customers", 'name~"walker"', `&limit=4&page=${first.body.next_page}`)
    assert.deepStrictEqual(
      [...first.body.data, ...second.body.data].map(({ id }: { readonly id: string }) => id),
      ids
    )
    assert.deepStrictEqual([second.body.has_more, second.body.next_page], [false, null])
    const till = new TillClient({ apiKey: server.keys.secretTest, baseUrl: `http://127.0.0.1:${server.port}` })
    const walked: Array<string> = []
    for await (const customer of till.customers.search({ query: 'name~"walker" -name:"walker 8"', limit: 2 })) {
      walked.push(customer.id)
    }
    assert.deepStrictEqual(
      walked,
      ids.filter((id) => id !== ids[2])
    )
  })

  it("is refused with the place of an error in its query, and for an invalid page", async () => {
    const bad = await search("payment_intents", 'status:"succeeded" AND email:"a@b.co"')
    assertError(bad, 400, "parameter_invalid", "query")
    assert.strictEqual(
      bad.body.error.message,
      "The `query` field must be a search query: at character 24, there is no field email to search by."
    )
    // Only the dashboard uses it (semantics dashboard.payments).
    const reason = await search("payment_intents", 'decline_code:"lost_card"')
    assert.strictEqual(
      reason.body.error.message,
      "The `query` field must be a search query: at character 1, there is no field decline_code to search by."
    )
    assertError(await search("customers", "amount>1"), 400, "parameter_invalid", "query")
    assertError(await server.request("GET", "/v1/customers/search"), 400, "parameter_missing", "query")
    const { id } = await post("customers")
    for (const page of [
      "x",
      id,
      Buffer.from("pi_1").toString("base64url"),
      Buffer.from(`${id} `).toString("base64url")
    ]) {
      assertError(await search("customers", "created>1", `&page=${page}`), 400, "parameter_invalid", "page")
    }
    assertError(await search("customers", "created>1", "&starting_after=x"), 400, "parameter_unknown", "starting_after")
  })

  it("is for secret keys, and sees nothing of other accounts", async () => {
    const { id } = await post("customers", { name: "Mine alone" })
    const path = `/v1/customers/search?query=${encodeURIComponent(`name~"mine alone" OR id:"${id}"`)}`
    const asked = (key: string) => server.request("GET", path, { key })
    assert.lengthOf((await asked(server.keys.secretTest)).body.data, 1)
    assert.deepStrictEqual((await asked(server.keys.secretLive)).body.data, [])
    assert.deepStrictEqual((await asked((await server.merchant()).secretTest)).body.data, [])
    assertError(await asked(server.keys.publishableTest), 403, "secret_key_required")
  })
})
