/**
 * The bench of growth: millions of PaymentIntents, in one account or many, each created by a request with a key of its
 * own. It then measures creates, reads, a start and a verification.
 */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { Console, Effect, Exit, Schedule, Scope } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import { contenders, ownCommand, start, type StartedServer } from "../Contender.ts"
import * as Database from "../Database.ts"
import * as Load from "../load/Load.ts"
import * as PacedLoad from "../load/PacedLoad.ts"
import type { LoadPlan } from "../load/LoadPlan.ts"
import { latencyOf, tailLatencyOf } from "../load/Percentiles.ts"
import * as Machine from "../Machine.ts"
import * as ProcessTime from "../ProcessTime.ts"
import { createIntent, get, INTENTS, intentBody } from "../scenarios/Scenario.ts"
import { outcomesOf } from "../overload/OverloadFigures.ts"
import * as Seed from "../Seed.ts"
import * as Suite from "../Suite.ts"
import { verify } from "../Verification.ts"
import { requestsPerSecondOf } from "../webhooks/Figures.ts"
import * as KeptGround from "./KeptGround.ts"
import type { GrownPair, GrowthResults, Restart, TableSize } from "./GrowthResults.ts"

export interface GrowthPace {
  readonly objects: number
  readonly accounts: number
  readonly warmUpSeconds: number
  readonly secondsPerRound: number
  readonly rounds: number
  /** Starts of both installations, each on a new empty database. */
  readonly starts: number
  readonly restarts: number
  readonly coldRequests: number
}

const FILL_SECONDS = 15
const CONNECTIONS = 64
const IDS_PER_PAGE = 100
const NAME = "till"
const COUNT = "SELECT count(*) FROM journal WHERE account <> 'till'"
const SIZES = `SELECT relname AS table, pg_table_size(c.oid) AS rows, pg_indexes_size(c.oid) AS indexes
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = 'public' AND c.relkind = 'r' AND c.reltuples > 0 ORDER BY pg_total_relation_size(c.oid) DESC`

/** An installation whose accounts are filled, or an empty one. */
interface Ground {
  readonly database: Database.Database
  readonly databaseUrl: string
  readonly dataFolder: string
  /** Secret keys, one per account. */
  readonly apiKeys: ReadonlyArray<string>
}

const makeGround = Effect.fnUntraced(function* (database: Database.Database, name: string, accounts: number) {
  const databaseUrl = yield* database.create(name)
  const apiKeys = yield* Seed.make(databaseUrl, { merchants: accounts })
  return { database, databaseUrl, dataFolder: yield* Database.temporaryFolder, apiKeys } satisfies Ground as Ground
})

interface Growing extends KeptGround.Kept {
  readonly ground: Ground
  /** Stores the progress. */
  readonly keep: (perSecond: ReadonlyArray<number>) => void
}

/** Makes a new installation, or opens the one in a folder that an earlier run has kept. */
const makeGrowing = Effect.fnUntraced(function* (accounts: number, folder: string | undefined) {
  const sinceSeconds = Date.now() / 1000
  if (folder === undefined) {
    const ground = yield* makeGround(yield* Database.make, NAME, accounts)
    const { apiKeys } = ground
    return { ground, apiKeys, sinceSeconds, perSecond: [], keep: () => {} } satisfies Growing as Growing
  }
  const before = KeptGround.read(folder)
  if (before !== undefined && before.apiKeys.length !== accounts) {
    return yield* new BenchFailure({ problem: `${folder} has ${before.apiKeys.length} accounts, not ${accounts}.` })
  }
  const database = yield* Database.makeKept(folder)
  const databaseUrl = yield* database.create(NAME)
  const dataFolder = join(folder, "till")
  mkdirSync(dataFolder, { recursive: true })
  const apiKeys = before?.apiKeys ?? (yield* Seed.make(databaseUrl, { merchants: accounts }))
  const kept = before ?? { apiKeys, sinceSeconds, perSecond: [] }
  KeptGround.write(folder, kept)
  const keep = (perSecond: ReadonlyArray<number>) => KeptGround.write(folder, { ...kept, perSecond })
  return { ...kept, ground: { database, databaseUrl, dataFolder, apiKeys }, keep } satisfies Growing as Growing
})

const startOn = ({ databaseUrl, dataFolder }: Ground) =>
  start(contenders.till, { databaseUrl, dataFolder, nodeOptions: [] })

const planOf = ({ apiKeys }: Ground, { port }: StartedServer): Omit<LoadPlan, "seconds"> => ({
  port,
  connections: CONNECTIONS,
  requests: { method: "POST", paths: [INTENTS], apiKeys, body: JSON.stringify(intentBody) },
  expect: `"object":"payment_intent"`
})

/** Creates the objects and prints the progress, because it takes minutes. A refused request does not count. */
const fill = Effect.fnUntraced(function* ({ ground, keep, perSecond: before }: Growing, objects: number) {
  const server = yield* startOn(ground)
  const load = yield* PacedLoad.make
  const perSecond = [...before]
  let made = yield* ground.database.count(NAME, COUNT)
  let refused = 0
  while (made < objects) {
    const secondsLeft = perSecond.length === 0 ? Infinity : (objects - made) / perSecond.at(-1)!
    const record = yield* load.run({
      port: server.port,
      connections: CONNECTIONS,
      seconds: Math.min(FILL_SECONDS, secondsLeft + 0.1),
      ratePerSecond: null,
      path: INTENTS,
      apiKey: ground.apiKeys,
      body: JSON.stringify(intentBody),
      // An interrupted run has sent keys that the next one must not repeat.
      run: `fill${made}`,
      flood: { refusals: [503], drainSeconds: 60 }
    })
    const { acknowledged, lost } = outcomesOf([record])
    if (lost > 0) return yield* new BenchFailure({ problem: `${lost} creates were not answered.` })
    made += acknowledged
    refused += record.statuses.length - acknowledged
    perSecond.push((acknowledged / record.statuses.length) * requestsPerSecondOf(record))
    keep(perSecond)
    const left = Math.max(0, Math.ceil((objects - made) / perSecond.at(-1)!))
    const rate = Math.round(perSecond.at(-1)!)
    yield* Console.log(`  ${made.toLocaleString("en")} PaymentIntents, ${rate}/s, ${left} s left`)
  }
  yield* Suite.settled(server, ground.database)
  const stored = yield* ground.database.count(NAME, COUNT)
  // A refused request may be stored, if it became durable before the refusal.
  if (stored < made || stored > made + refused) {
    const problem = `${made} creates were acknowledged and ${refused} refused, and there are ${stored} records.`
    return yield* new BenchFailure({ problem })
  }
  return { made: stored, perSecond, residentBytes: ProcessTime.residentBytesOf(server.pid) }
}, Effect.scoped)

const sizesOf = ({ database }: Ground) =>
  Effect.andThen(
    database.rows(NAME, "ANALYZE"),
    Effect.map(database.rows(NAME, SIZES), (rows) =>
      rows.map(({ indexes, rows, table }): TableSize => ({
        table: table!,
        rowBytes: Number(rows),
        indexBytes: Number(indexes)
      }))
    )
  )

/** Kills Till and starts it again. */
const restart = Effect.fnUntraced(function* (ground: Ground) {
  const server = yield* startOn(ground)
  const began = performance.now()
  yield* createIntent({ port: server.port, apiKeys: ground.apiKeys })
  const firstCreateMillis = performance.now() - began
  yield* server.kill
  return { readyMillis: server.readyMillis, firstCreateMillis } satisfies Restart as Restart
}, Effect.scoped)

const SHARED = "SELECT count(DISTINCT url) FROM partitions HAVING count(url) = 64"
const SHARED_MILLIS = 60_000
const TAKEOVER_SECONDS = 8
const TAKEOVER_CONNECTIONS = 8

/** Stops one of two runners and sends requests to the other: the longest wait is that for a moving partition. */
const takeover = Effect.fnUntraced(function* (ground: Ground, load: Load.Load) {
  const stays = yield* startOn(ground)
  const scope = yield* Scope.fork(yield* Effect.scope)
  yield* startOn(ground).pipe(Effect.provideService(Scope.Scope, scope))
  yield* ground.database.count(NAME, SHARED).pipe(
    Effect.repeat({ until: (runners) => runners === 2, schedule: Schedule.spaced("200 millis") }),
    Effect.timeoutOrElse({
      duration: SHARED_MILLIS,
      orElse: () => Effect.fail(new BenchFailure({ problem: "Two runners do not share the partitions." }))
    })
  )
  const plan = { ...planOf(ground, stays), connections: TAKEOVER_CONNECTIONS, seconds: TAKEOVER_SECONDS }
  const stopped = Effect.andThen(Effect.sleep("2 seconds"), Scope.close(scope, Exit.void))
  const [{ latencies }] = yield* Effect.all([load.run(plan), stopped], { concurrency: 2 })
  return latencyOf([latencies]).maxMillis
}, Effect.scoped)

/** Runs one start of both installations, which take turns; the first one changes from round to round. */
const compare = Effect.fnUntraced(function* (
  { empty, grown }: { empty: Ground; grown: Ground },
  load: Load.Load,
  pace: GrowthPace
) {
  const sides = yield* Effect.forEach([grown, empty], (ground) =>
    Effect.map(startOn(ground), (server) => ({ ground, server }))
  )
  const measure = ({ ground, server }: (typeof sides)[number], seconds: number) =>
    Suite.measureRound(
      { server, plan: planOf(ground, server), refill: undefined, database: ground.database, load },
      seconds
    )
  for (const side of sides) yield* measure(side, pace.warmUpSeconds)
  const pairs: Array<GrownPair> = []
  for (let round = 0; round < pace.rounds; round++) {
    const inTurn = round % 2 === 0 ? sides : sides.toReversed()
    const measured = yield* Effect.forEach(inTurn, (side) => measure(side, pace.secondsPerRound))
    const [ofGrown, ofEmpty] = round % 2 === 0 ? measured : measured.toReversed()
    pairs.push({ grown: ofGrown!.round, empty: ofEmpty!.round })
  }
  const [bytesGrown, bytesEmpty] = sides.map(({ server }) => ProcessTime.residentBytesOf(server.pid))
  return { pairs, bytesGrown, bytesEmpty }
}, Effect.scoped)

/** An object and the key of its account. */
interface Known {
  readonly id: string
  readonly apiKey: string
}

/** Returns objects spread over all accounts and all times, in random order. */
const someObjects = Effect.fnUntraced(function* (
  { apiKeys }: Ground,
  server: StartedServer,
  count: number,
  sinceSeconds: number
) {
  interface Page {
    readonly data: ReadonlyArray<{ readonly id: string; readonly created: number }>
  }
  const targetOf = (apiKey: string) => ({ port: server.port, apiKeys: [apiKey] })
  const newest = (yield* get<Page>(targetOf(apiKeys[0]!), `${INTENTS}?limit=1`)).data[0]!.created
  const pages = Math.ceil(count / IDS_PER_PAGE)
  const found = yield* Effect.forEach(Array.from({ length: pages }), (_, i) => {
    const until = Math.round(sinceSeconds + ((i + 1) / pages) * (newest - sinceSeconds))
    const apiKey = apiKeys[Math.floor((i / pages) * apiKeys.length)]!
    return Effect.map(
      get<Page>(targetOf(apiKey), `${INTENTS}?limit=${IDS_PER_PAGE}&created[lte]=${until}`),
      ({ data }) => data.map(({ id }): readonly [string, Known] => [id, { id, apiKey }])
    )
  })
  const distinct = [...new Map(found.flat()).values()]
  // The order is the same in every run, and unlike the order of creation.
  return distinct
    .map((known, i) => [Math.imul(i + 1, 0x9e3779b1) >>> 0, known] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, known]) => known)
}, Effect.scoped)

/** Reads objects that a newly started Till has not in memory, one request at a time. */
const readCold = Effect.fnUntraced(function* (ground: Ground, load: Load.Load, pace: GrowthPace, sinceSeconds: number) {
  const objects = yield* Effect.scoped(
    Effect.flatMap(startOn(ground), (server) => someObjects(ground, server, 2 * pace.coldRequests, sinceSeconds))
  )
  const server = yield* startOn(ground)
  const ask = (some: ReadonlyArray<Known>, pathOf: (id: string) => string, seconds: number, pathsOnce: boolean) =>
    load.run({
      port: server.port,
      connections: 1,
      seconds,
      requests: {
        method: "GET",
        paths: some.map(({ id }) => pathOf(id)),
        pathsOnce,
        apiKeys: some.map(({ apiKey }) => apiKey),
        body: null
      },
      expect: `"object":`
    })
  const half = objects.length >> 1
  const [retrieves, lists] = [objects.slice(0, half), objects.slice(half)]
  const retrieve = (id: string) => `${INTENTS}/${id}`
  const list = (id: string) => `${INTENTS}?limit=10&starting_after=${id}`
  // Warms up the code without loading the objects.
  yield* ask(retrieves.slice(0, 20), retrieve, pace.warmUpSeconds / 2, false)
  yield* ask(lists.slice(0, 20), list, pace.warmUpSeconds / 2, false)
  const retrieved = yield* ask(retrieves.slice(20), retrieve, 60, true)
  const listed = yield* ask(lists.slice(20), list, 60, true)
  return { retrieve: tailLatencyOf(retrieved.latencies), list: tailLatencyOf(listed.latencies) }
}, Effect.scoped)

/** With a folder, the grown installation stays there, and a later run continues to fill it. */
export const run = Effect.fnUntraced(function* (pace: GrowthPace, folder: string | undefined) {
  const growing = yield* makeGrowing(pace.accounts, folder)
  const grown = growing.ground
  const other = yield* Database.make
  const load = yield* Load.make
  const machine = Machine.describe(grown.database.version)
  yield* Console.log(`Growth to ${pace.objects.toLocaleString("en")}. ${Machine.sentence(machine)}`)
  const filled = yield* fill(growing, pace.objects)
  const sizes = yield* sizesOf(grown)
  yield* Console.log("  restarts …")
  const restarts = yield* Effect.replicateEffect(restart(grown), pace.restarts)
  yield* Console.log("  a runner is stopped …")
  const takeoverMillis = yield* takeover(grown, load)
  const compared: Array<Effect.Success<ReturnType<typeof compare>>> = []
  for (let turn = 0; turn < pace.starts; turn++) {
    yield* Console.log("  creates, beside an empty database …")
    compared.push(yield* compare({ grown, empty: yield* makeGround(other, `empty${turn}`, pace.accounts) }, load, pace))
  }
  yield* Console.log("  cold reads …")
  const cold = yield* readCold(grown, load, pace, growing.sinceSeconds)
  yield* Console.log("  till verify …")
  const records = yield* grown.database.count(NAME, COUNT)
  const verifySeconds = yield* verify({ ...grown, command: ownCommand })
  const most = (bytes: ReadonlyArray<number | undefined>) => Math.max(...bytes.map((one) => one ?? 0))
  return {
    at: new Date().toISOString(),
    machine,
    objects: filled.made,
    accounts: pace.accounts,
    fillPerSecond: filled.perSecond,
    ...(filled.residentBytes !== undefined && {
      residentBytesFilled: filled.residentBytes,
      residentBytesStarted: most(compared.map(({ bytesGrown }) => bytesGrown)),
      residentBytesEmpty: most(compared.map(({ bytesEmpty }) => bytesEmpty))
    }),
    sizes,
    restarts,
    takeoverMillis,
    starts: compared.map(({ pairs }) => pairs),
    ...cold,
    records,
    verifySeconds
  } satisfies GrowthResults as GrowthResults
}, Effect.scoped)
