/**
 * A merchant with products and prices, over a real socket, and common steps of the tests of Checkout Sessions. A test
 * file that calls `openShop` has a shop of its own.
 */
import { afterAll, beforeAll } from "@effect/vitest"
import { assertOk } from "./Assertions.ts"
import type { RequestOptions, TestServer } from "./TestServer.ts"
import { start } from "./TestServer.ts"

export let server: TestServer
/** Products and prices to sell, created once. */
export let catalog: Readonly<
  Record<"product" | "inactiveProduct" | "price" | "yen" | "free" | "custom" | "archived", string>
>

export const post = (path: string, body?: unknown, options: RequestOptions = {}) =>
  server.request("POST", `/v1/${path}`, { body, ...options })
export const get = (path: string, options: RequestOptions = {}) => server.request("GET", `/v1/${path}`, options)
export const product = async (name: string, body: object = {}) => (await post("products", { name, ...body })).body.id
export const price = async (body: object) =>
  (await post("prices", { product: catalog.product, currency: "usd", ...body })).body

/** Opens the shop for the tests of a file, and closes it after them. */
export const openShop = () => {
  beforeAll(async () => {
    server = await start()
    catalog = { ...catalog, product: await product("T-shirt") }
    catalog = {
      ...catalog,
      inactiveProduct: await product("Gone", { active: false }),
      price: (await price({ unit_amount: 1999 })).id,
      yen: (await price({ unit_amount: 500, currency: "jpy" })).id,
      free: (await price({ unit_amount: 0 })).id,
      custom: (await price({ custom_unit_amount: { enabled: true, minimum: 300, maximum: 900, preset: 700 } })).id,
      archived: (await price({ unit_amount: 5, active: false })).id
    }
  })
  afterAll(() => server.close())
}

export const hosted = (body: object = {}) => ({
  mode: "payment",
  line_items: [{ price: catalog.price, quantity: 2 }],
  success_url: "https://shop.example/thanks?session={CHECKOUT_SESSION_ID}",
  ...body
})
export const create = async (body: object = {}) => {
  const created = await post("checkout_sessions", hosted(body))
  assertOk(created)
  return created.body
}
export const confirm = (id: string, body: object = {}) =>
  post(`checkout_sessions/${id}/confirm`, {
    payment_method: "pm_card_visa",
    customer_details: { email: "payer@example.com" },
    ...body
  })
export const session = async (id: string) => (await get(`checkout_sessions/${id}`)).body
export const intent = async (id: string) => (await get(`payment_intents/${id}`)).body
export const state = async (id: string) => {
  const { payment_status, status } = await session(id)
  return `${status} ${payment_status}`
}
/** Types of the newest events, oldest first, from the first one after `after`. */
export const eventsSince = async (after: string | undefined) => {
  const { data } = (await get("events?limit=100")).body
  const end = after === undefined ? data.length : data.findIndex(({ id }: { id: string }) => id === after)
  return data
    .slice(0, end)
    .map(({ type }: { type: string }) => type)
    .toReversed()
}
export const newestEvent = async () => (await get("events?limit=1")).body.data[0]?.id
export const line = (body: object, rest: object = {}) =>
  post("checkout_sessions", hosted({ line_items: [body], ...rest }))
