/** The run of the bench of live payments: one Till, one Postgres, one gateway; the measures one after the other. */
import { Console, Effect, Scope } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import { contenders, start } from "../Contender.ts"
import * as Database from "../Database.ts"
import * as Load from "../load/Load.ts"
import * as PacedLoad from "../load/PacedLoad.ts"
import * as Machine from "../Machine.ts"
import { createObject } from "../scenarios/Scenario.ts"
import * as Seed from "../Seed.ts"
import { around, perRequest } from "../SpentTime.ts"
import * as Suite from "../Suite.ts"
import { verify } from "../Verification.ts"
import { answersUntil, distributionOf, requestsPerSecondOf } from "../webhooks/Figures.ts"
import * as Gateway from "./Gateway.ts"
import type { Confirms, LiveResults } from "./LiveResults.ts"
import { type LiveSetting, type Pacing, payments, requireApproved } from "./Payments.ts"
import * as Waits from "./Waits.ts"

export interface LivePace {
  readonly warmUpSeconds: number
  readonly secondsSaturated: number
  readonly secondsPaced: number
  /** Seconds of the reads and of the creates beside payments that wait. */
  readonly secondsBeside: number
  /** Seconds without a gateway. */
  readonly secondsGone: number
}

const CONNECTIONS = 64
const PACED_PER_SECOND = 50

const part = <A, R>(name: string, effect: Effect.Effect<A, BenchFailure, R>) =>
  Console.log(`  ${name} …`).pipe(
    Effect.andThen(effect),
    Effect.mapError(({ problem }) => new BenchFailure({ problem: `live, ${name}: ${problem}` }))
  )

const confirm = Effect.fnUntraced(function* (setting: LiveSetting, pacing: Pacing) {
  const { database, gateway, load, till } = setting
  const loaded = Effect.tap(load.run(payments(setting, pacing)), Suite.settled(till, database))
  const { spent, value } = yield* around({ server: till, database, workers: [load, gateway] }, loaded)
  return {
    requestsPerSecond: requestsPerSecondOf(value),
    answer: distributionOf(answersUntil(value, Infinity)),
    ...perRequest(value.sentMicros.length, spent)
  } satisfies Confirms as Confirms
})

const prepare = Effect.fnUntraced(function* (nodeOptions: ReadonlyArray<string>) {
  const database = yield* Database.make
  const databaseUrl = yield* database.create("till")
  const [shop, other] = yield* Seed.accounts(databaseUrl, { merchants: 2 })
  const dataFolder = yield* Database.temporaryFolder
  const scope = yield* Effect.scope
  const startTill = start(contenders.till, { databaseUrl, nodeOptions, dataFolder }).pipe(
    Effect.provideService(Scope.Scope, scope)
  )
  const till = yield* startTill
  const gateway = yield* Gateway.make
  yield* gateway.addTo(till.installation, shop!.id.split(":")[0]!)
  const { liveKey: apiKey } = shop!
  const card = { type: "card", token: "tok_bench" }
  let runs = 0
  const setting: LiveSetting = {
    database,
    till,
    gateway,
    load: yield* PacedLoad.make,
    others: yield* PacedLoad.make,
    reads: yield* Load.make,
    apiKey,
    otherKey: other!.apiKey,
    paymentMethod: yield* createObject({ port: till.port, apiKeys: [apiKey] }, "/v1/payment_methods", card),
    nextRun: () => `${runs++}`
  }
  return { setting, startTill }
})

/** With `profileOptions`, if there are any, Till is started and never killed, so that it leaves its profile. */
export const run = Effect.fnUntraced(function* (pace: LivePace, profileOptions: ReadonlyArray<string>) {
  const { setting, startTill } = yield* prepare(profileOptions)
  const machine = Machine.describe(setting.database.version)
  yield* Console.log(`Live payments. ${Machine.sentence(machine)}`)
  const closed = (seconds: number): Pacing => ({ connections: CONNECTIONS, seconds, ratePerSecond: null })
  yield* part("warm-up", confirm(setting, closed(pace.warmUpSeconds)))
  const saturated = yield* part("saturated", confirm(setting, closed(pace.secondsSaturated)))
  const open = { ...closed(pace.secondsPaced), ratePerSecond: PACED_PER_SECOND }
  const paced = yield* part(`${PACED_PER_SECOND} a second`, confirm(setting, open))
  const waiting = yield* part("a slow gateway", Waits.wait(setting, pace.secondsBeside))
  const results = {
    at: new Date().toISOString(),
    machine,
    saturated,
    paced,
    pacedPerSecond: PACED_PER_SECOND,
    waiting
  } satisfies LiveResults
  if (profileOptions.length > 0) return results
  const [killed, till] = yield* part("kill -9", Waits.kill(setting, startTill))
  const restarted = { ...setting, till }
  const outage = yield* part("a gateway that is gone", Waits.outage(restarted, pace.secondsGone))
  yield* part("ledger", requireApproved(restarted))
  yield* part("till verify", verify(till.installation))
  return { ...results, killed, outage } satisfies LiveResults as LiveResults
}, Effect.scoped)
