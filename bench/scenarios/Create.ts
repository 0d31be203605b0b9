/**
 * POST /v1/payment_intents: one durable record per request. On one account, spread over accounts, and one at a time.
 */
import { Effect } from "effect"
import type { Requests } from "../load/LoadPlan.ts"
import { intentBody, INTENTS, type Scenario, subjects, type Target } from "./Scenario.ts"

const onAccounts =
  (accounts: number, body: object = intentBody) =>
  ({ apiKeys }: Target): Effect.Effect<Requests> =>
    Effect.succeed({
      method: "POST",
      paths: [INTENTS],
      apiKeys: apiKeys.slice(0, accounts),
      body: JSON.stringify(body)
    })

const created = `"object":"payment_intent"`

export const create: Scenario = {
  name: "create",
  title: "Create a PaymentIntent",
  connections: 64,
  moreRounds: 4,
  writes: true,
  expect: created,
  subjects: subjects(["till", "transactionPerRequest", "groupCommit", "emulate", "echo"], onAccounts(1))
}

export const createAndConfirm: Scenario = {
  name: "create-and-confirm",
  title: "Create and confirm a PaymentIntent in one request",
  connections: 64,
  writes: true,
  expect: `"status":"succeeded"`,
  subjects: subjects(
    ["till", "transactionPerRequest", "echo"],
    onAccounts(1, { ...intentBody, payment_method: "pm_card_visa", confirm: true })
  )
}

export const createOnManyAccounts: Scenario = {
  name: "accounts",
  title: "Create a PaymentIntent: one account against 100",
  connections: 64,
  writes: true,
  expect: created,
  subjects: [
    { title: "Till, one account", contender: "till", requests: onAccounts(1) },
    { title: "Till, 100 accounts", contender: "till", requests: onAccounts(100) }
  ]
}

export const createOneAtATime: Scenario = {
  name: "create-latency",
  title: "Create a PaymentIntent, one connection",
  connections: 1,
  moreRounds: 4,
  writes: true,
  expect: created,
  subjects: subjects(["till", "transactionPerRequest", "groupCommit"], onAccounts(1))
}
