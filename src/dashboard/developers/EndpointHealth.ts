/** Webhook endpoints with the state of their newest deliveries. */
import { Effect } from "effect"
import type { WebhookEndpoint } from "../../domain/WebhookEndpoint.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { DeliveryRow } from "../../engine/Deliveries.ts"
import { WEBHOOK_ENDPOINT } from "../../payments/shared/Documents.ts"
import { listObjects } from "../frame/Queries.ts"
import type { Visit } from "../frame/Visit.ts"
import { pickFailing } from "../history/Deliveries.ts"

const ENDPOINTS_MAX = 50
/** Number of an endpoint's newest deliveries that its health is computed from. */
const DELIVERIES_MAX = 100

/** An endpoint and the counts of its newest deliveries by state. */
export interface Health {
  readonly id: string
  readonly endpoint: WebhookEndpoint
  readonly delivered: number
  readonly failing: ReadonlyArray<DeliveryRow>
  /** Number of deliveries without an attempt. */
  readonly waiting: number
}

const healthOf = (endpoint: WebhookEndpoint, deliveries: ReadonlyArray<DeliveryRow>): Health => ({
  id: endpoint.id,
  endpoint,
  delivered: deliveries.filter(({ state }) => state === "delivered").length,
  failing: pickFailing(deliveries),
  waiting: deliveries.filter(({ attempts, state }) => state === "pending" && attempts.length === 0).length
})

export const readHealth = Effect.fnUntraced(function* ({ account }: Pick<Visit, "account">) {
  const accounts = yield* Accounts
  const { rows } = yield* listObjects(account, WEBHOOK_ENDPOINT, { limit: ENDPOINTS_MAX })
  return yield* Effect.forEach(
    rows,
    (endpoint) =>
      Effect.map(accounts.deliveries(account, { destination: endpoint.id, limit: DELIVERIES_MAX }), ({ deliveries }) =>
        healthOf(endpoint, deliveries)
      ),
    { concurrency: 4 }
  )
})
