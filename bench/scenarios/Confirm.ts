/** POST /v1/payment_intents/{id}/confirm: one PaymentIntent after the other, each created before the round. */
import { Effect } from "effect"
import { contenders } from "../Contender.ts"
import type { Requests } from "../load/LoadPlan.ts"
import { createObjects, intentBody, INTENTS, type Scenario, type Target } from "./Scenario.ts"

/** Enough for most of a round. */
const INTENTS_PER_SECOND = 5000

const requests = ({ apiKeys }: Target): Requests => ({
  method: "POST",
  paths: [`${INTENTS}/pi_any/confirm`],
  apiKeys: apiKeys.slice(0, 1),
  body: JSON.stringify({ payment_method: "pm_card_visa" })
})

export const confirm: Scenario = {
  name: "confirm",
  title: "Confirm a PaymentIntent",
  connections: 64,
  writes: true,
  expect: `"object":"payment_intent"`,
  subjects: [
    {
      title: contenders.till.title,
      contender: "till",
      requests: (target) => Effect.succeed({ ...requests(target), pathsOnce: true }),
      refill: (target) =>
        Effect.succeed((seconds: number) => {
          const bodies = Array.from({ length: Math.ceil(INTENTS_PER_SECOND * seconds) }, () => intentBody)
          const paths = (ids: ReadonlyArray<string>) => ids.map((id) => `${INTENTS}/${id}/confirm`)
          return Effect.map(createObjects(target, INTENTS, bodies), paths)
        })
    },
    {
      title: contenders.echo.title,
      contender: "echo",
      requests: (target) => Effect.succeed(requests(target))
    }
  ]
}
