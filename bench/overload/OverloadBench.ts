/**
 * The bench of overload: one Till on one Postgres. Loads in one merchant's account grow, by requests per second and by
 * connections, far beyond Till's capacity, while another merchant sends a small load, the probe.
 */
import { Console, Effect } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import { contenders, start, type StartedServer } from "../Contender.ts"
import * as Database from "../Database.ts"
import { nowMicros } from "../load/MonotonicClock.ts"
import * as PacedLoad from "../load/PacedLoad.ts"
import type { PacedLoadPlan, PacedLoadRecord } from "../load/PacedLoadPlan.ts"
import * as Machine from "../Machine.ts"
import { INTENTS, intentBody } from "../scenarios/Scenario.ts"
import * as Seed from "../Seed.ts"
import { around } from "../SpentTime.ts"
import * as Suite from "../Suite.ts"
import { verify } from "../Verification.ts"
import { outcomesOf, probeOf, stepOf } from "./OverloadFigures.ts"
import { nameOf, turnLine } from "./OverloadReport.ts"
import type { OverloadResults, Step, Turn } from "./OverloadResults.ts"

export interface OverloadPace {
  readonly warmUpSeconds: number
  /** Seconds of the probe alone. */
  readonly secondsPerQuiet: number
  readonly secondsPerPeak: number
  readonly secondsPerStep: number
  /** Seconds of the probe after each load. */
  readonly watchedSeconds: number
}

const TIMES_PEAK = [0.5, 0.9, 1, 1.5, 2, 5, 10]
/** With fewer connections, waits for one another would limit the peak. */
const PEAK_CONNECTIONS = 256
const CONNECTIONS = [64, 256, 1000, 4000, 5000, 10_000]
/** Connections of an open loop: more than a server's queue should hold. */
const CONNECTIONS_OPEN = 6000
/** Open files of a process beside its connections. */
const FILES_BESIDE = 200

const PROBE_PER_SECOND = 100
const PROBE_CONNECTIONS = 16

/** Statuses of refusals: too many requests, and unavailable. */
const REFUSALS = [429, 503]
/** A request that waits longer counts as lost. */
const DRAIN_SECONDS = 20
const OPENED_PER_SECOND = 4000

interface Setting {
  readonly database: Database.Database
  readonly till: StartedServer
  readonly apiKeys: ReadonlyArray<string>
  /** Processes that share each load. */
  readonly floods: ReadonlyArray<PacedLoad.PacedLoad>
  readonly prober: PacedLoad.PacedLoad
  readonly nextRun: () => string
}

type Loaded = Pick<Step, "offeredPerSecond" | "connections" | "seconds">

const COUNT = "SELECT count(*) FROM journal WHERE account <> 'till'"

const planOf = ({ nextRun, till }: Setting, apiKey: string) => ({
  port: till.port,
  path: INTENTS,
  apiKey,
  body: JSON.stringify(intentBody),
  run: nextRun(),
  flood: { refusals: REFUSALS, drainSeconds: DRAIN_SECONDS }
})

const probe = (setting: Setting, seconds: number) =>
  setting.prober.run({
    ...planOf(setting, setting.apiKeys[1]!),
    connections: PROBE_CONNECTIONS,
    seconds,
    ratePerSecond: PROBE_PER_SECOND
  })

/** Returns the parts of a load for its processes. */
const floodPlans = (setting: Setting, { connections, offeredPerSecond, seconds }: Loaded, startAtMicros: number) => {
  return setting.floods.map((flood, i, { length }): readonly [PacedLoad.PacedLoad, PacedLoadPlan] => [
    flood,
    {
      ...planOf(setting, setting.apiKeys[0]!),
      connections: Math.floor(connections / length) + (i < connections % length ? 1 : 0),
      seconds,
      ratePerSecond: offeredPerSecond === undefined ? null : offeredPerSecond / length,
      startAtMicros
    }
  ])
}

/** Requires a record for every acknowledged request, and none for a refused one. */
const requireRecords = Effect.fnUntraced(function* (
  { database }: Setting,
  before: number,
  records: ReadonlyArray<PacedLoadRecord>
) {
  const stored = (yield* database.count("till", COUNT)) - before
  const { acknowledged, lost } = outcomesOf(records)
  if (stored >= acknowledged && stored <= acknowledged + lost) return
  return yield* new BenchFailure({
    problem: `${acknowledged} requests were acknowledged, ${lost} not answered, and there are ${stored} records.`
  })
})

const measureStep = Effect.fnUntraced(function* (
  setting: Setting,
  loaded: Loaded,
  watchedSeconds: number,
  quietMillis: number
) {
  const { database, floods, prober, till } = setting
  const before = yield* database.count("till", COUNT)
  const openingSeconds = 0.5 + loaded.connections / OPENED_PER_SECOND
  const plans = floodPlans(setting, loaded, nowMicros() + openingSeconds * 1_000_000)
  const probedSeconds = openingSeconds + loaded.seconds + watchedSeconds
  const load = Effect.all(
    [probe(setting, probedSeconds), Effect.forEach(plans, ([flood, plan]) => flood.run(plan), { concurrency: 2 })],
    { concurrency: 2 }
  )
  const { spent, value } = yield* around({ server: till, database, workers: [...floods, prober] }, load)
  const [probed, flooded] = value
  yield* Suite.rest(till, database)
  yield* database.checkpoint
  yield* requireRecords(setting, before, [probed, ...flooded])
  const seconds = probedSeconds * 1_000_000
  return {
    ...stepOf(flooded, probed, loaded, quietMillis),
    ...(spent.serverMicros !== undefined && { serverShare: spent.serverMicros / seconds }),
    ...(spent.postgresMicros !== undefined && { postgresShare: spent.postgresMicros / seconds }),
    ...(spent.othersShare !== undefined && { othersShare: spent.othersShare })
  } satisfies Step as Step
})

const ALWAYS = { fromMicros: 0, untilMicros: Infinity }

/** Measures the probe alone, the peak, and then a load in units of that peak. */
const measureTurn = Effect.fnUntraced(function* (
  setting: Setting,
  pace: OverloadPace,
  loadOf: (peakPerSecond: number) => Loaded
) {
  const quiet = probeOf(yield* probe(setting, pace.secondsPerQuiet), ALWAYS)
  const quietMillis = quiet.latency?.p50Millis ?? 0
  const ofPeak = { connections: PEAK_CONNECTIONS, seconds: pace.secondsPerPeak }
  const peak = yield* measureStep(setting, ofPeak, pace.secondsPerQuiet, quietMillis)
  const loaded = loadOf(peak.goodputPerSecond)
  const step = yield* measureStep(setting, loaded, pace.watchedSeconds, quietMillis).pipe(
    Effect.mapError(({ problem }) => new BenchFailure({ problem: `overload, ${nameOf(loaded)}: ${problem}` }))
  )
  const turn: Turn = { quiet, peak, step }
  yield* Console.log(`  ${turnLine(turn)}`)
  return turn
})

/** Returns the limit of open files of this process, which Node raises where it can. */
const filesMax = (): number => {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft: number | string } } }
  const limit = Number(userLimits?.open_files?.soft)
  return Number.isFinite(limit) ? limit : Infinity
}

const prepare = Effect.gen(function* () {
  const database = yield* Database.make
  const databaseUrl = yield* database.create("till")
  const apiKeys = yield* Seed.make(databaseUrl)
  const till = yield* start(contenders.till, { databaseUrl, nodeOptions: [] })
  let runs = 0
  return {
    database,
    till,
    apiKeys,
    floods: [yield* PacedLoad.makeYielding, yield* PacedLoad.makeYielding],
    prober: yield* PacedLoad.make,
    nextRun: () => `${runs++}`
  } satisfies Setting as Setting
})

export const run = Effect.fnUntraced(function* (pace: OverloadPace) {
  const setting = yield* prepare
  const machine = Machine.describe(setting.database.version)
  yield* Console.log(`Overload. ${Machine.sentence(machine)}`)
  const seconds = pace.secondsPerStep
  yield* measureStep(setting, { connections: PEAK_CONNECTIONS, seconds: pace.warmUpSeconds }, 0, 0)
  const files = filesMax() - FILES_BESIDE
  const byOffer = yield* Effect.forEach(TIMES_PEAK, (timesPeak) =>
    Effect.map(
      measureTurn(setting, pace, (peakPerSecond) => ({
        offeredPerSecond: timesPeak * peakPerSecond,
        connections: Math.min(CONNECTIONS_OPEN, files),
        seconds
      })),
      (turn) => ({ ...turn, timesPeak })
    )
  )
  const byConnections = yield* Effect.forEach(
    new Set(CONNECTIONS.map((connections) => Math.min(connections, files))),
    (connections) => measureTurn(setting, pace, () => ({ connections, seconds }))
  )
  yield* verify(setting.till.installation)
  return {
    at: new Date().toISOString(),
    machine,
    probePerSecond: PROBE_PER_SECOND,
    byOffer,
    byConnections
  } satisfies OverloadResults as OverloadResults
}, Effect.scoped)
