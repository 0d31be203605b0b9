/**
 * The shop's work after Till has started: it creates products and endpoints over the API and sells, so the newest
 * payments have requests, events and deliveries, too.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"
import { BenchFailure, failureOf } from "../BenchFailure.ts"
import { createObjects, INTENTS, post, type Target } from "../scenarios/Scenario.ts"
import type { Shop } from "./Shop.ts"

const PRODUCTS = 60
const SALES = 2000
/** One in this many payments is declined or refunded. */
const RARELY = 15
/** Refunds of one payment. */
const REFUNDS = 60
/** An address without a listener. */
const NOWHERE = "http://127.0.0.1:9/"

/** Starts an endpoint that accepts every delivery; returns its address. */
const makeSink = Effect.acquireRelease(
  Effect.tryPromise({
    try: () =>
      new Promise<ReturnType<typeof createServer>>((resolve, reject) => {
        const server = createServer((request, response) => {
          request.resume()
          request.once("end", () => response.end())
        })
        server.once("error", reject)
        server.listen(0, "127.0.0.1", () => resolve(server))
      }),
    catch: failureOf("Nothing can listen for deliveries")
  }),
  (server) => Effect.sync(() => server.close().closeAllConnections())
)

const subscribe = Effect.fnUntraced(function* (target: Target) {
  const { port } = (yield* makeSink).address() as AddressInfo
  const outcomes = ["payment_intent.succeeded", "payment_intent.payment_failed", "charge.refunded", "refund.created"]
  yield* createObjects(target, "/v1/webhook_endpoints", [
    { url: `http://127.0.0.1:${port}/`, enabled_events: outcomes },
    { url: NOWHERE, enabled_events: ["payment_intent.payment_failed"] }
  ])
})

const offer = Effect.fnUntraced(function* (target: Target) {
  const names = Array.from({ length: PRODUCTS }, (_, i) => ({ name: `Product ${i}`, description: `Size ${i % 5}` }))
  const products = yield* createObjects(target, "/v1/products", names)
  const prices = products.flatMap((product, i) =>
    ["usd", "eur"].map((currency) => ({ product, currency, unit_amount: 500 + 100 * i }))
  )
  yield* createObjects(target, "/v1/prices", prices)
})

const pay = (target: Target, body: object, card: string) =>
  Effect.map(post<{ readonly id: string }>(target, INTENTS, { ...body, payment_method: card }), ({ id }) => id)

/** Sends a payment that must be declined for insufficient funds. */
const beDeclined = (target: Target, body: object) =>
  Effect.matchEffect(pay(target, body, "pm_card_insufficient_funds"), {
    onSuccess: (id) => Effect.fail(new BenchFailure({ problem: `${id} was not declined.` })),
    onFailure: (failure) => (failure.problem.includes("card_declined") ? Effect.undefined : Effect.fail(failure))
  })

/** Sells for a while; returns the ids of the payments, of which the first one has many refunds. */
export const go = Effect.fnUntraced(function* ({ apiKey, customers }: Shop, port: number) {
  const target: Target = { port, apiKeys: [apiKey] }
  yield* offer(target)
  yield* subscribe(target)
  const bodies = Array.from({ length: SALES }, (_, i) => ({
    amount: 10_000 + i,
    currency: "eur",
    description: `Order ${i} of today`,
    customer: customers[i % customers.length]!,
    confirm: true
  }))
  const sold = yield* Effect.forEach(
    bodies,
    (body, i) => (i % RARELY === 1 ? beDeclined(target, body) : pay(target, body, "pm_card_visa")),
    { concurrency: 32 }
  )
  const payments = sold.flatMap((id) => id ?? [])
  const refunds = [
    ...Array.from({ length: REFUNDS }, () => ({ payment_intent: payments[0]!, amount: 100 })),
    ...payments.filter((_, i) => i % RARELY === 2).map((payment_intent) => ({ payment_intent }))
  ]
  yield* createObjects(target, "/v1/refunds", refunds)
  return payments
})
