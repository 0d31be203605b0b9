/**
 * The bench of the dashboard, with a shop of a million payments: the time of each page, and the cost of five hundred
 * open pages and of the request log for the API's requests.
 */
import { Console, Effect } from "effect"
import { failureOf } from "../BenchFailure.ts"
import { contenders, start, type StartedServer } from "../Contender.ts"
import * as Database from "../Database.ts"
import * as Load from "../load/Load.ts"
import { percentile } from "../load/Percentiles.ts"
import * as Machine from "../Machine.ts"
import * as Seed from "../Seed.ts"
import { around } from "../SpentTime.ts"
import * as Suite from "../Suite.ts"
import { verify } from "../Verification.ts"
import * as Creates from "./Creates.ts"
import type { DashboardResults, LoadTimes, PageFigures } from "./DashboardResults.ts"
import * as OpenPages from "./OpenPages.ts"
import { type Page, pagesOf, problemOf } from "./Pages.ts"
import * as Present from "./Present.ts"
import * as Shop from "./Shop.ts"
import { signIn, type Visitor } from "./Visitors.ts"

export interface DashboardPace extends OpenPages.OpenPagesPace {
  readonly payments: number
  readonly loadsPerPage: number
  /** Starts of the pair of servers, one with the request log and one without it. */
  readonly logStarts: number
}

const WARM_UP_LOADS = 10
const LOADS_AT_ONCE = 4

const startOn = (databaseUrl: string, dataFolder: string, variables: Readonly<Record<string, string>> = {}) =>
  start(contenders.till, { databaseUrl, dataFolder, nodeOptions: [], variables })

const loadPage = (visitor: Visitor, page: Page, i: number) =>
  Effect.tryPromise({
    try: async () => {
      const loaded = await visitor.load(page.pathOf(i))
      const problem = problemOf(page, loaded)
      if (problem !== undefined) throw new Error(`${problem}: ${page.pathOf(i)}`)
      return loaded.millis
    },
    catch: failureOf(page.title)
  })

const timesOf = (millis: ReadonlyArray<number>): LoadTimes => {
  const ascending = millis.toSorted((a, b) => a - b)
  return {
    p50Millis: percentile(ascending, 50),
    p95Millis: percentile(ascending, 95),
    maxMillis: ascending.at(-1)!
  }
}

const warmUp = Effect.fnUntraced(function* (visitor: Visitor, page: Page) {
  for (let i = 0; i < WARM_UP_LOADS; i++) yield* loadPage(visitor, page, i)
})

/** Loads a page once at a time, then several times at once; the first loads warm up. */
const measurePage = Effect.fnUntraced(function* (
  { database, server }: { database: Database.Database; server: StartedServer },
  visitor: Visitor,
  page: Page,
  loads: number
) {
  const load = (from: number, concurrency: number) =>
    Effect.forEach(
      Array.from({ length: loads }, (_, i) => from + i),
      (i) => loadPage(visitor, page, i),
      { concurrency }
    )
  yield* warmUp(visitor!, page)
  const { spent, value: alone } = yield* around({ server, database, workers: [] }, load(WARM_UP_LOADS, 1))
  const atOnce = yield* load(WARM_UP_LOADS + loads, LOADS_AT_ONCE)
  return {
    title: page.title,
    alone: timesOf(alone),
    atOnce: timesOf(atOnce),
    ...(spent.serverMicros !== undefined && { serverMillis: spent.serverMicros / loads / 1000 }),
    ...(spent.postgresMicros !== undefined && { postgresMillis: spent.postgresMicros / loads / 1000 })
  } satisfies PageFigures as PageFigures
})

/** Starts two processes, one with the request log and one without, each on an empty database of its own. */
const measureRequestLog = Effect.fnUntraced(function* (load: Load.Load, pace: DashboardPace) {
  const sides = yield* Effect.forEach(["15", "0"], (days) =>
    Effect.gen(function* () {
      const database = yield* Database.make
      const databaseUrl = yield* database.create(Creates.NAME)
      const [account] = yield* Seed.accounts(databaseUrl, { merchants: 1 })
      const server = yield* startOn(databaseUrl, yield* Database.temporaryFolder, { TILL_REQUEST_LOG_DAYS: days })
      return yield* Creates.make({ database, account: account!, server }, load)
    })
  )
  const [withLog, withoutLog] = sides
  for (const side of sides) yield* side.run(pace.warmUpSeconds)
  const round = (side: Creates.Creates) => side.run(pace.secondsPerRound / 2)
  const pairs = yield* Creates.inTurn(pace.rounds, round(withLog!), round(withoutLog!))
  for (const side of sides) yield* side.requireAll
  return pairs
}, Effect.scoped)

export const run = Effect.fnUntraced(function* (pace: DashboardPace) {
  const database = yield* Database.make
  const databaseUrl = yield* database.create(Creates.NAME)
  const shop = yield* Shop.make(databaseUrl, pace.payments)
  const load = yield* Load.make
  const machine = Machine.describe(database.version)
  const merchant = shop.id.split(":")[0]!
  const server = yield* startOn(databaseUrl, yield* Database.temporaryFolder)
  const today = yield* Present.go(shop, server.port)
  // Autovacuum would have updated statistics and visibility in ninety days.
  yield* database.rows(Creates.NAME, "VACUUM ANALYZE")
  yield* Suite.settled(server, database)
  const [visitor] = yield* signIn(server, merchant, { connections: LOADS_AT_ONCE, people: 1 })
  const pages: Array<PageFigures> = []
  const asked = pagesOf(shop, today, pace.payments)
  // Warms up the code that pages share, which would otherwise count for the first page.
  for (const page of asked) yield* warmUp(visitor!, page)
  for (const page of asked) {
    yield* Console.log(`  ${page.title} …`)
    pages.push(yield* measurePage({ database, server }, visitor!, page, pace.loadsPerPage))
  }
  yield* Console.log(`  ${pace.openPages} pages are opened …`)
  const ground = { database, account: shop, server }
  const creates = yield* Creates.make(ground, load)
  const live = yield* OpenPages.measure(ground, creates, merchant, pace)
  yield* creates.requireAll
  yield* verify(server.installation)
  yield* Console.log("  the log of requests …")
  const requestLog = yield* Effect.replicateEffect(measureRequestLog(load, pace), pace.logStarts)
  const at = new Date().toISOString()
  const { openPages, payments } = pace
  const results = { at, machine, payments, pages, loadsAtOnce: LOADS_AT_ONCE, openPages, ...live, requestLog }
  return results satisfies DashboardResults as DashboardResults
}, Effect.scoped)
