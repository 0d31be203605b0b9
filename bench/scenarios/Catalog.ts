/** What hangs on products and prices: a page of prices under three filters, and Checkout Sessions of three lines. */
import { Effect } from "effect"
import type { Scenario, Target } from "./Scenario.ts"
import { createObject, subjects } from "./Scenario.ts"

const PRICES_COUNT = 200

/** A product with many prices, every second of which is recurring. */
const catalog = Effect.fnUntraced(function* (target: Target) {
  const product = yield* createObject(target, "/v1/products", { name: "Tea" })
  const price = (unit_amount: number) => ({
    product,
    currency: "usd",
    unit_amount,
    ...(unit_amount % 2 === 0 && { recurring: { interval: "month" } })
  })
  const amounts = Array.from({ length: PRICES_COUNT }, (_, i) => i + 1)
  const prices = yield* Effect.forEach(amounts, (amount) => createObject(target, "/v1/prices", price(amount)))
  return { product, prices }
})

export const listPrices: Scenario = {
  name: "prices",
  title: "List 10 prices of a product, active and recurring",
  connections: 64,
  writes: false,
  expect: `"object":"list"`,
  subjects: subjects(["till"], (target) =>
    Effect.map(catalog(target), ({ product }) => ({
      method: "GET" as const,
      paths: [`/v1/prices?product=${product}&active=true&type=recurring&limit=10`],
      apiKeys: target.apiKeys.slice(0, 1),
      body: null
    }))
  )
}

export const createCheckoutSession: Scenario = {
  name: "checkout",
  title: "Create a Checkout Session of 3 lines",
  connections: 64,
  writes: true,
  expect: `"object":"checkout.session"`,
  subjects: subjects(["till"], (target) =>
    Effect.map(catalog(target), ({ prices }) => ({
      method: "POST" as const,
      paths: ["/v1/checkout_sessions"],
      apiKeys: target.apiKeys.slice(0, 1),
      body: JSON.stringify({
        mode: "payment",
        success_url: "https://example.com/paid",
        line_items: prices.slice(0, 3).map((price, i) => ({ price, quantity: i + 1 }))
      })
    }))
  )
}
