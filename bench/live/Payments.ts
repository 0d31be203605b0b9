/** All measures have these in common: the processes, the merchant with the gateway, and its payments. */
import { Effect } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import type { StartedServer } from "../Contender.ts"
import type { Database } from "../Database.ts"
import type { Load } from "../load/Load.ts"
import type { PacedLoad } from "../load/PacedLoad.ts"
import type { PacedLoadPlan } from "../load/PacedLoadPlan.ts"
import { get, INTENTS, intentBody } from "../scenarios/Scenario.ts"
import type { Gateway } from "./Gateway.ts"

export interface LiveSetting {
  readonly database: Database
  readonly till: StartedServer
  readonly gateway: Gateway
  readonly load: PacedLoad
  /** The load of another merchant. */
  readonly others: PacedLoad
  readonly reads: Load
  /** The live key of the merchant with the gateway. */
  readonly apiKey: string
  readonly otherKey: string
  /** A card of the gateway. */
  readonly paymentMethod: string
  /** Returns a new name for every load. */
  readonly nextRun: () => string
}

export type Pacing = Pick<PacedLoadPlan, "connections" | "seconds" | "ratePerSecond" | "requestsMax">

/** Payments that are created and confirmed by one request. */
export const payments = ({ apiKey, nextRun, paymentMethod, till }: LiveSetting, pacing: Pacing): PacedLoadPlan => ({
  ...pacing,
  port: till.port,
  path: INTENTS,
  apiKey,
  body: JSON.stringify({ ...intentBody, payment_method: paymentMethod, confirm: true }),
  run: nextRun()
})

/** Payments over a connection each, all at once. */
export const atOnce = (count: number): Pacing => ({
  connections: count,
  seconds: 10,
  ratePerSecond: null,
  requestsMax: count
})

interface Page {
  readonly data: ReadonlyArray<{
    readonly id: string
    readonly status: string
    readonly outcome: { readonly kind: string } | null
  }>
  readonly next_cursor: string | null
}

const PAGE = 100

/** Returns true if the merchant has an operation with this status. */
export const hasOperation = ({ apiKey, till }: LiveSetting, status: string): Effect.Effect<boolean, BenchFailure> =>
  Effect.map(
    get<Page>({ port: till.port, apiKeys: [apiKey] }, `/v1/operations?limit=1&status=${status}`),
    ({ data }) => data.length > 0
  )

/** Fails unless each operation of the merchant is approved, and the gateway has carried out exactly these. */
export const requireApproved = Effect.fnUntraced(function* ({ apiKey, gateway, till }: LiveSetting) {
  let count = 0
  for (let cursor: string | null = ""; cursor !== null;) {
    const after: string = cursor === "" ? "" : `&starting_after=${cursor}`
    const target = { port: till.port, apiKeys: [apiKey] }
    const { data, next_cursor }: Page = yield* get<Page>(target, `/v1/operations?limit=${PAGE}${after}`)
    const other = data.find(({ outcome, status }) => status !== "final" || outcome?.kind !== "approved")
    if (other !== undefined) {
      const problem = `The operation ${other.id} is ${other.status}, ${other.outcome?.kind}, and the gateway approved it.`
      return yield* new BenchFailure({ problem })
    }
    count += data.length
    cursor = next_cursor
  }
  const { operations, wrong } = yield* gateway.ledger
  if (operations === count && wrong === 0) return
  return yield* new BenchFailure({
    problem: `Till has ${count} operations, the gateway ${operations}, of which it should not have had ${wrong}.`
  })
})
