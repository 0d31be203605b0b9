/** Semantics money.*, from a price to the payer's amount, through a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
let product: string
beforeAll(async () => {
  server = await start()
  product = (await post("/v1/products", { name: "Tea" })).body.id
})
afterAll(() => server.close())

const post = (path: string, body: unknown) => server.request("POST", path, { body })
const priceId = async (terms: object): Promise<string> => {
  const reply = await post("/v1/prices", { product, currency: "usd", ...terms })
  assertOk(reply)
  return reply.body.id
}
const session = (line_items: ReadonlyArray<object>) =>
  post("/v1/checkout_sessions", { mode: "payment", success_url: "https://shop.example/ok", line_items })

/** The amounts of each line and of the whole session. */
const amounts = async (lines: ReadonlyArray<readonly [terms: object, quantity: number]>) => {
  const items = await Promise.all(lines.map(async ([terms, quantity]) => ({ price: await priceId(terms), quantity })))
  const created = await session(items)
  assertOk(created)
  const { amount_subtotal, amount_total, id, payment_intent, total_details } = created.body
  const list = await server.request("GET", `/v1/checkout_sessions/${id}/line_items`)
  const perLine: Array<number> = list.body.data.map((item: { amount_total: number }) => item.amount_total)
  assert.deepStrictEqual(
    list.body.data.map((item: { amount_subtotal: number }) => item.amount_subtotal),
    perLine
  )
  // Semantics money.tax: no tax, discount or shipping.
  assert.strictEqual(amount_subtotal, amount_total)
  assert.deepStrictEqual(total_details, { amount_discount: 0, amount_shipping: 0, amount_tax: 0 })
  if (payment_intent !== null) {
    const intent = await server.request("GET", `/v1/payment_intents/${payment_intent}`)
    assert.strictEqual(intent.body.amount, amount_total)
  }
  return [amount_total as number, perLine] as const
}

const tiers = [
  { up_to: 5, unit_amount: 500 },
  { up_to: 10, unit_amount: 400, flat_amount: 100 },
  { up_to: "inf", unit_amount_decimal: "300.25", flat_amount_decimal: "1000.5" }
]
const graduated = { billing_scheme: "tiered", tiers_mode: "graduated", tiers }
const volume = { billing_scheme: "tiered", tiers_mode: "volume", tiers }
const packages = (round: string) => ({ unit_amount: 100, transform_quantity: { divide_by: 10, round } })

describe("line amounts", () => {
  it.each([
    ["money.rounding: one rounding per line", { unit_amount_decimal: "0.1" }, 5, 1],
    ["money.rounding: half up", { unit_amount_decimal: "2.5" }, 1, 3],
    ["money.rounding: not what floating point says", { unit_amount_decimal: "1.005" }, 100, 101],
    ["money.rounding: nothing is lost", { unit_amount_decimal: "0.000000499999" }, 999_999, 0],
    ["money.per_unit: unit times quantity", { unit_amount: 250 }, 4, 1000],
    ["money.per_unit: packages, rounded up", packages("up"), 11, 200],
    ["money.per_unit: packages, rounded down", packages("down"), 19, 100],
    ["money.per_unit: no whole package", packages("down"), 9, 0],
    ["money.volume: volume, first tier", volume, 5, 2500],
    ["money.volume: volume, second tier", volume, 6, 2500],
    ["money.volume: volume, last tier", volume, 11, 4303],
    ["money.graduated: graduated, first tier", graduated, 5, 2500],
    ["money.graduated: graduated, second tier", graduated, 6, 3000],
    ["money.graduated: graduated, last tier", graduated, 11, 5901],
    ["checkout.custom_amount: the preset", { custom_unit_amount: { enabled: true, minimum: 5, preset: 7 } }, 1, 7],
    ["checkout.custom_amount: the minimum", { custom_unit_amount: { enabled: true, minimum: 5 } }, 1, 5],
    ["checkout.custom_amount: nothing", { custom_unit_amount: { enabled: true } }, 1, 0],
    ["money.limits: as much as a payment can be", { unit_amount: 999_999_999_999 }, 1, 999_999_999_999]
  ] as ReadonlyArray<readonly [string, object, number, number]>)("%s", async (_, terms, quantity, expected) => {
    assert.deepStrictEqual(await amounts([[terms, quantity]]), [expected, [expected]])
  })

  it("money.rounding: lines are rounded before they are added", async () => {
    const half = { unit_amount_decimal: "0.5" }
    assert.deepStrictEqual(
      await amounts([
        [half, 1],
        [half, 1],
        [half, 2]
      ]),
      [3, [1, 1, 1]]
    )
  })

  it("money.limits: a session above the cap is refused", async () => {
    const [most, one] = [await priceId({ unit_amount: 999_999_999_999 }), await priceId({ unit_amount: 1 })]
    for (const line_items of [
      [{ price: most, quantity: 2 }],
      [{ price: most, quantity: 999_999 }],
      [{ price: most }, { price: one }]
    ]) {
      assertError(await session(line_items), 400, "amount_too_large", "line_items")
    }
  })

  it("money.decimals: amounts are never scaled, in any currency", async () => {
    for (const currency of ["jpy", "usd", "kwd"]) {
      assert.deepStrictEqual(await amounts([[{ currency, unit_amount: 1234 }, 3]]), [3702, [3702]])
    }
  })
})
