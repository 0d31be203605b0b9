/**
 * Three kinds of requests depend on products and prices: a page of prices under three filters, Checkout Sessions of
 * three lines, and their confirmation.
 */
import { Effect } from "effect"
import { contenders } from "../Contender.ts"
import { createObject, createObjects, type Scenario, subjects, type Target } from "./Scenario.ts"

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

const SESSIONS = "/v1/checkout_sessions"

const sessionBody = (prices: ReadonlyArray<string>) => ({
  mode: "payment",
  success_url: "https://example.com/paid",
  line_items: prices.slice(0, 3).map((price, i) => ({ price, quantity: i + 1 }))
})

export const createCheckoutSession: Scenario = {
  name: "checkout",
  title: "Create a Checkout Session of 3 lines",
  connections: 64,
  writes: true,
  expect: `"object":"checkout.session"`,
  subjects: subjects(["till"], (target) =>
    Effect.map(catalog(target), ({ prices }) => ({
      method: "POST" as const,
      paths: [SESSIONS],
      apiKeys: target.apiKeys.slice(0, 1),
      body: JSON.stringify(sessionBody(prices))
    }))
  )
}

/** Enough for most of a round. Creating them takes the bench about as long as confirming them. */
const SESSIONS_PER_SECOND = 2000

export const confirmCheckoutSession: Scenario = {
  name: "checkout-confirm",
  title: "Confirm a Checkout Session of 3 lines",
  connections: 64,
  writes: true,
  expect: `"status":"complete"`,
  subjects: [
    {
      title: contenders.till.title,
      contender: "till",
      requests: ({ apiKeys }) =>
        Effect.succeed({
          method: "POST",
          paths: [],
          pathsOnce: true,
          apiKeys: apiKeys.slice(0, 1),
          body: JSON.stringify({ payment_method: "pm_card_visa", customer_details: { email: "jenny@example.com" } })
        }),
      refill: (target) =>
        Effect.map(catalog(target), ({ prices }) => (seconds: number) => {
          const bodies = Array.from({ length: Math.ceil(SESSIONS_PER_SECOND * seconds) }, () => sessionBody(prices))
          const paths = (ids: ReadonlyArray<string>) => ids.map((id) => `${SESSIONS}/${id}/confirm`)
          return Effect.map(createObjects(target, SESSIONS, bodies), paths)
        })
    }
  ]
}
