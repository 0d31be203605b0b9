/** Semantics S18 and §1.6, through a real socket: lists of sessions, their lines and their metadata. */
import { assert, describe, it } from "@effect/vitest"
import { assertError, assertOk } from "./Assertions.ts"
import { catalog, create, eventsSince, get, hosted, newestEvent, openShop, post, server } from "./TestShop.ts"

openShop()

const EXPIRED = ["payment_intent.canceled", "checkout.session.expired"]

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
    // A page that is just full is the last one all the same.
    assert.deepStrictEqual(await page(`limit=1&starting_after=${data[3].id}`), [[1], false, null])
    assert.deepStrictEqual(await page("limit=5"), [[5, 4, 3, 2, 1], false, null])
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
