/** GET /v1/payment_intents/{id}: of 100 PaymentIntents, in turn. With 64 connections, and one at a time. */
import { Effect } from "effect"
import { createIntent, INTENTS, type Scenario, subjects, type Target } from "./Scenario.ts"

const INTENTS_COUNT = 100

const requests = (target: Target) =>
  Effect.map(Effect.replicateEffect(createIntent(target), INTENTS_COUNT), (ids) => ({
    method: "GET" as const,
    paths: ids.map((id) => `${INTENTS}/${id}`),
    apiKeys: target.apiKeys.slice(0, 1),
    body: null
  }))

export const retrieve: Scenario = {
  name: "retrieve",
  title: "Retrieve a PaymentIntent",
  connections: 64,
  writes: false,
  expect: `"object":"payment_intent"`,
  subjects: subjects(["till", "transactionPerRequest", "emulate", "echo"], requests)
}

export const retrieveOneAtATime: Scenario = {
  ...retrieve,
  name: "retrieve-latency",
  title: "Retrieve a PaymentIntent, one connection",
  connections: 1
}
