/** POST /v1/refunds: one minor unit after the other of one large payment. */
import { Effect } from "effect"
import { createObject, INTENTS, type Scenario, subjects } from "./Scenario.ts"

const payment = { amount: 999_999_999_999, currency: "usd", payment_method: "pm_card_visa", confirm: true }

export const refund: Scenario = {
  name: "refund",
  title: "Refund a part of a payment",
  connections: 64,
  writes: true,
  expect: `"object":"refund"`,
  subjects: subjects(["till"], (target) =>
    Effect.map(createObject(target, INTENTS, payment), (payment_intent) => ({
      method: "POST" as const,
      paths: ["/v1/refunds"],
      apiKeys: target.apiKeys.slice(0, 1),
      body: JSON.stringify({ payment_intent, amount: 1 })
    }))
  )
}
