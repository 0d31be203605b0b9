/** Semantics checkout.update, lists.*, through a real socket: lists of sessions, their lines and their metadata. */
import { assert, describe, it } from "@effect/vitest"
import { publishable } from "../../src/domain/Publishable.ts"
import { assertError, assertOk } from "./Assertions.ts"
import type { Reply } from "../support/MemoryTill.ts"
import {
  catalog,
  create,
  eventsSince,
  get,
  hosted,
  newestEvent,
  openShop,
  post,
  server
} from "../support/fixtures/CheckoutSessions.ts"

openShop()

const EXPIRED = ["payment_intent.canceled", "checkout.session.expired"]

describe("reading and updating", () => {
  it("checkout.update: metadata can be changed at any time, without an event", async () => {
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

  it("lists.*: line items in the order of the cart", async () => {
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
    // A last page may be full.
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

  // Semantics keys.publishable.sessions.
  it("a publishable key sees its fields of a session, in every answer, and the lines", async () => {
    const key = { key: server.keys.publishableTest }
    const hidden = { metadata: { margin: "0.9" }, client_reference_id: "order_7" }
    const { client_secret, id } = await create({
      ...hidden,
      ui_mode: "custom",
      line_items: [1, 2, 3].map((quantity) => ({ price: catalog.price, quantity })),
      payment_intent_data: { metadata: { margin: "0.8" } }
    })
    const path = `checkout_sessions/${id}`
    const assertPart = async (reply: Reply) => {
      assertOk(reply)
      const { body: whole } = await get(path)
      const seen = SEEN.filter((field) => field in whole)
      assert.sameMembers(Object.keys(reply.body), seen)
      for (const field of seen) assert.deepStrictEqual(reply.body[field], whole[field], field)
      for (const secret of ["margin", "order_7", "metadata"]) assert.notInclude(reply.text, secret)
    }
    const read = await get(`${path}?client_secret=${client_secret}`, key)
    await assertPart(read)
    assert.notProperty(read.body, "customer_details")
    const { body: lines } = await get(`${path}/line_items`)
    const shown = await get(`${path}/line_items?client_secret=${client_secret}`, key)
    assertOk(shown)
    assert.deepStrictEqual(shown.body, lines)
    assert.lengthOf(shown.body.data, 3)
    const second = await get(
      `${path}/line_items?limit=1&starting_after=${lines.data[0].id}&client_secret=${client_secret}`,
      key
    )
    assert.deepStrictEqual([second.body.data, second.body.has_more], [[lines.data[1]], true])
    for (const options of [key, {}]) {
      assertError(await get(`${path}/line_items?client_secret=x`, options), 404, "resource_missing", "id")
    }
    assertError(await get(`${path}/line_items`, key), 403, "secret_key_required")
    const other = await create({ ui_mode: "custom" })
    const foreign = await get(`${path}/line_items?client_secret=${other.client_secret}`, key)
    assertError(foreign, 404, "resource_missing", "id")
    const body = { client_secret, payment_method: "pm_card_visa", customer_details: { email: "a@b.co" } }
    const confirm = () => post(`${path}/confirm`, body, { ...key, idempotencyKey: `once-${id}` })
    await assertPart(await confirm())
    const replay = await confirm()
    assert.strictEqual(replay.headers.get("idempotent-replayed"), "true")
    await assertPart(replay)
    assert.property(replay.body, "customer_details")
  })

  it("keys.publishable.sessions: a new field of a line is shown to publishable keys only once it is listed", () => {
    const line = { id: "csli_1", object: "item", quantity: 1, metadata: { a: "b" }, cost: 5 }
    const list = { object: "list", data: [line], has_more: false }
    assert.deepStrictEqual(publishable(list), { ...list, data: [{ id: "csli_1", object: "item", quantity: 1 }] })
  })
})

const SEEN = [
  "id",
  "object",
  "mode",
  "status",
  "payment_status",
  "ui_mode",
  "amount_subtotal",
  "amount_total",
  "currency",
  "total_details",
  "customer_email",
  "customer_details",
  "billing_address_collection",
  "phone_number_collection",
  "locale",
  "expires_at",
  "livemode",
  "client_secret",
  "success_url",
  "cancel_url",
  "payment_intent"
]
