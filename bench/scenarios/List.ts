/**
 * GET /v1/payment_intents?limit=10: the newest page of an account that holds about a hundred (ten with `--only list`).
 */
import { Effect } from "effect"
import { createIntent, INTENTS, type Scenario, subjects, type Target } from "./Scenario.ts"

const LIMIT = 10

const requests = (target: Target) =>
  Effect.as(Effect.replicateEffect(createIntent(target), LIMIT + 1), {
    method: "GET" as const,
    paths: [`${INTENTS}?limit=${LIMIT}`],
    apiKeys: target.apiKeys.slice(0, 1),
    body: null
  })

export const list: Scenario = {
  name: "list",
  title: `List ${LIMIT} PaymentIntents`,
  connections: 64,
  writes: false,
  expect: `"object":"list"`,
  subjects: subjects(["till", "transactionPerRequest", "emulate", "echo"], requests)
}
