/** All measures have these in common: the processes, and the accounts whose events are delivered. */
import { Effect } from "effect"
import type { Server } from "../Contender.ts"
import type { Database } from "../Database.ts"
import { INTENTS, createObjects, intentBody } from "../scenarios/Scenario.ts"
import { around, perRequest } from "../SpentTime.ts"
import { failureIn, figuresOf } from "./Figures.ts"
import type { PacedLoad } from "../load/PacedLoad.ts"
import type { PacedLoadPlan } from "../load/PacedLoadPlan.ts"
import type { Sink } from "./Sink.ts"
import * as Suite from "../Suite.ts"
import type { Trial } from "./WebhookResults.ts"

/** One merchant's test environment; every endpoint is subscribed to what the load causes, and to nothing else. */
export interface Shop {
  readonly apiKey: string
  readonly endpoints: number
  /** Ids of the endpoints. */
  readonly ids: ReadonlyArray<string>
}

export interface WebhookSetting {
  readonly database: Database
  readonly till: Server
  readonly load: PacedLoad
  readonly sink: Sink
  /** Gives a new name to every load. */
  readonly nextRun: () => string
}

export type Pacing = Pick<PacedLoadPlan, "connections" | "seconds" | "ratePerSecond" | "requestsMax">

/** Subscribes so many endpoints of the sink in an account. */
export const openShop = ({ sink, till }: WebhookSetting, apiKey: string, endpoints: number) => {
  const bodies = Array.from({ length: endpoints }, (_, endpoint) => ({
    url: sink.url(endpoint),
    enabled_events: ["payment_intent.created"]
  }))
  return Effect.map(
    createObjects({ port: till.port, apiKeys: [apiKey] }, "/v1/webhook_endpoints", bodies),
    (ids): Shop => ({ apiKey, endpoints, ids })
  )
}

/** Creates of PaymentIntents, each of which causes one event. */
export const createsOf = (till: Server, { apiKey }: Shop, run: string, pacing: Pacing): PacedLoadPlan => ({
  ...pacing,
  port: till.port,
  path: INTENTS,
  apiKey,
  body: JSON.stringify(intentBody),
  run
})

/** Loads Till and waits until all is delivered and at rest. Fails unless every delivery has come exactly once. */
export const deliver = Effect.fnUntraced(function* (setting: WebhookSetting, shop: Shop, pacing: Pacing) {
  const { database, load, nextRun, sink, till } = setting
  const run = nextRun()
  yield* sink.begin(run, shop.endpoints)
  const loaded = Effect.gen(function* () {
    const record = yield* load.run(createsOf(till, shop, run, pacing))
    yield* sink.arrived(record.sentMicros.length * shop.endpoints)
    yield* Suite.rest(till, database)
    return record
  })
  const { spent, value: record } = yield* around({ server: till, database, workers: [load, sink] }, loaded)
  const requests = record.sentMicros.length
  const arrivals = yield* sink.take
  const failure = failureIn(requests, arrivals)
  if (failure !== undefined) return yield* failure
  return { record, arrivals, spent, requests }
})

/** The same, with what it comes to; for a shop with endpoints. */
export const trial = (setting: WebhookSetting, shop: Shop, pacing: Pacing) =>
  Effect.map(deliver(setting, shop, pacing), ({ arrivals, record, requests, spent }): Trial => ({
    ...figuresOf(record, arrivals),
    ...perRequest(requests, spent)
  }))
