/** The run of the bench of webhooks: one Till, one Postgres, one sink, one load; the measures one after the other. */
import { Console, Effect, Scope } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import { contenders, start } from "../Contender.ts"
import * as Database from "../Database.ts"
import * as Machine from "../Machine.ts"
import * as Seed from "../Seed.ts"
import * as FanOut from "./FanOut.ts"
import * as PacedLoad from "../load/PacedLoad.ts"
import * as Retries from "./Retries.ts"
import * as Sink from "./Sink.ts"
import { verify } from "../Verification.ts"
import { openShop, type Pacing, trial } from "./Shop.ts"
import type { WebhookResults } from "./WebhookResults.ts"

export interface WebhookPace {
  readonly warmUpSeconds: number
  readonly secondsPerMeasure: number
  readonly secondsPerFanOutRound: number
  readonly fanOutRounds: number
  readonly retries: Retries.RetriesPlan
}

/** A Node sender with Redis and no fsync is said to deliver a little less than this on 4 cores. */
const OFFERED_PER_SECOND = 2000
const CONNECTIONS = 64
/** With an open loop, more requests may be under way than a closed one has; this many is as good as no limit. */
const CONNECTIONS_OPEN = 256
const IDLE_REQUESTS = 100
/** An answer takes a few milliseconds, so nearly all of the time is pause. */
const IDLE_PER_SECOND = 33
const ENDPOINTS = [0, 1, 10]

const closed = (seconds: number): Pacing => ({ connections: CONNECTIONS, seconds, ratePerSecond: null })
const open = (seconds: number, ratePerSecond: number): Pacing => ({
  connections: CONNECTIONS_OPEN,
  seconds,
  ratePerSecond
})
const idle: Pacing = {
  connections: 1,
  seconds: IDLE_REQUESTS / IDLE_PER_SECOND,
  ratePerSecond: IDLE_PER_SECOND,
  requestsMax: IDLE_REQUESTS
}

/** A failure says in which part of the run it happened. */
const part = <A, R>(name: string, effect: Effect.Effect<A, BenchFailure, R>) =>
  Console.log(`  ${name} …`).pipe(
    Effect.andThen(effect),
    Effect.mapError(({ problem }) => new BenchFailure({ problem: `webhooks, ${name}: ${problem}` }))
  )

/** With `profileOptions`, if there are any, Till is started and never killed, so that it leaves its profile. */
export const run = Effect.fnUntraced(function* (pace: WebhookPace, profileOptions: ReadonlyArray<string>) {
  const database = yield* Database.make
  const machine = Machine.describe(database.version)
  yield* Console.log(`Webhooks. ${Machine.sentence(machine)}`)
  const databaseUrl = yield* database.create("till")
  const apiKeys = yield* Seed.make(databaseUrl)
  const scope = yield* Effect.scope
  // The secrets of endpoints are sealed with a key in this folder, so a restart needs the same one.
  const dataFolder = yield* Database.temporaryFolder
  const startTill = start(contenders.till, { databaseUrl, nodeOptions: profileOptions, dataFolder }).pipe(
    Effect.provideService(Scope.Scope, scope)
  )
  const till = yield* startTill
  let runs = 0
  const nextRun = () => `${runs++}`
  const setting = { database, till, load: yield* PacedLoad.make, sink: yield* Sink.make, nextRun }

  const shops = yield* Effect.forEach(ENDPOINTS, (endpoints, i) => openShop(setting, apiKeys[i]!, endpoints))
  const [silent, single] = [shops[0]!, shops[1]!]
  const retried = yield* openShop(setting, apiKeys[ENDPOINTS.length]!, 1)
  const seconds = pace.secondsPerMeasure
  const measure = (name: string, pacing: Pacing) => part(name, trial(setting, single, pacing))

  yield* measure("warm-up", closed(pace.warmUpSeconds))
  const fanOutPacing = closed(pace.secondsPerFanOutRound)
  const fanOut = yield* part("fan-out", FanOut.measure(setting, shops, fanOutPacing, pace.fanOutRounds))
  yield* database.checkpoint
  const saturated = yield* measure("saturated", closed(seconds))
  const half = yield* measure("half of it", open(seconds, saturated.deliveriesPerSecond / 2))
  const offered = yield* measure(`${OFFERED_PER_SECOND} creates/s`, open(seconds, OFFERED_PER_SECOND))
  const idling = yield* measure("one at a time", idle)
  yield* database.checkpoint
  const measureRetries = Retries.measure(setting, { subscribed: retried, other: silent }, startTill, pace.retries)
  const retries = profileOptions.length === 0 ? yield* part("retries", measureRetries) : undefined
  yield* part("till verify", verify(till.installation))
  return {
    at: new Date().toISOString(),
    machine,
    offered,
    offeredPerSecond: OFFERED_PER_SECOND,
    saturated,
    half,
    idle: idling,
    fanOut,
    ...(retries !== undefined && { retries })
  } satisfies WebhookResults as WebhookResults
}, Effect.scoped)
