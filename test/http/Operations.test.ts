/** Operations through a real socket (semantics operations.list, operations.object, operations.events). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"
import { APPROVED, attend, begin, conclude, doubtful, type Made, type Shop } from "../support/fixtures/Operations.ts"

let server: MemoryTill
let shop: Shop
/** An authorization that is open, one that is final and one that is unresolved, in this order. */
let made: ReadonlyArray<Made>
beforeAll(async () => {
  server = await start()
  shop = { accounts: server.accounts, merchantId: server.keys.merchantId }
  const open = await begin(shop)
  const final = await begin(shop)
  await conclude(shop, final, APPROVED)
  const unresolved = await begin(shop, { capture_method: "manual" })
  await attend(shop, unresolved)
  made = [open, final, unresolved]
})
afterAll(() => server.close())

const get = (path: string, key?: string) => server.request("GET", path, key === undefined ? {} : { key })
const idsOf = async (query: string): Promise<ReadonlyArray<string>> =>
  (await get(`/v1/operations${query}`)).body.data.map(({ id }: { readonly id: string }) => id)

describe("operations.list", () => {
  it("lists all, newest first, in pages, by payment, status, kind and time", async () => {
    const [open, final, unresolved] = made.map(({ operation }) => operation) as [string, string, string]
    assert.deepStrictEqual(await idsOf(""), [unresolved, final, open])
    assert.deepStrictEqual(await idsOf("?limit=1"), [unresolved])
    assert.deepStrictEqual(await idsOf(`?starting_after=${unresolved}&limit=1`), [final])
    assert.deepStrictEqual(await idsOf(`?ending_before=${final}`), [unresolved])
    assert.deepStrictEqual(await idsOf(`?payment_intent=${made[1]!.payment}`), [final])
    assert.deepStrictEqual(await idsOf("?status=unresolved"), [unresolved])
    assert.deepStrictEqual(await idsOf("?status=final&kind=authorize"), [final])
    assert.deepStrictEqual(await idsOf("?kind=void"), [])
    assert.deepStrictEqual(await idsOf("?created[gt]=4000000000"), [])
    assert.lengthOf(await idsOf("?created[gte]=1"), 3)
    assertError(await get("/v1/operations?starting_after=op_nothing"), 404, "resource_missing", "starting_after")
  })

  it("shows the operation, and no more of the payment's secrets than the payment does", async () => {
    const { operation, payment } = made[1]!
    const reply = await get(`/v1/operations/${operation}`)
    assertOk(reply)
    const { created, processor, updated, ...rest } = reply.body
    assert.isTrue(Number.isInteger(created) && updated >= created)
    assert.match(processor, /^prc_/)
    assert.deepStrictEqual(rest, {
      id: operation,
      object: "operation",
      kind: "authorize",
      status: "final",
      outcome: { kind: "approved", code: null, message: null, processor_code: null },
      resolved_by: "answer",
      payment_intent: payment,
      refund: null,
      reference: "gw_6735",
      amount: 2000,
      currency: "usd",
      livemode: false
    })
    assert.notInclude(reply.text, "tok_approve")
  })

  it("is for secret keys of the environment", async () => {
    const { operation } = made[0]!
    const { keys } = server
    for (const path of ["/v1/operations", `/v1/operations/${operation}`]) {
      assertError(await get(path, keys.publishableTest), 403, "secret_key_required", null)
    }
    const live = await get(`/v1/operations/${operation}`, keys.secretLive)
    assertError(live, 404, "resource_missing", "id")
    assert.include(live.body.error.message, "No Operation found")
    assert.isEmpty((await get("/v1/operations", keys.secretLive)).body.data)
  })
})

describe("operations.begin", () => {
  it("names the operation without an outcome in its PaymentIntent", async () => {
    for (const { operation, payment } of [made[0]!, made[2]!]) {
      const { pending_operation } = (await get(`/v1/payment_intents/${payment}`)).body
      assert.include(pending_operation, { id: operation, kind: "authorize" })
      assert.isTrue(Number.isInteger(pending_operation.created))
    }
    assert.notProperty((await get(`/v1/payment_intents/${made[1]!.payment}`)).body, "pending_operation")
  })
})

describe("operations.events", () => {
  it("show the operation as it was, and can be listed by type", async () => {
    const { operation } = await doubtful(shop)
    await conclude(shop, { operation, payment: "" }, APPROVED)
    const { data } = (await get("/v1/events?type=operation.*")).body
    const ours = data.filter((event: { data: { object: { id: string } } }) => event.data.object.id === operation)
    assert.deepStrictEqual(
      ours.map((event: { type: string; data: { object: { status: string } } }) => [
        event.type,
        event.data.object.status
      ]),
      [
        ["operation.resolved", "final"],
        ["operation.unresolved", "decide"]
      ]
    )
  })
})
