/** Installations for the bench of several runners, each with runners, a database and accounts of its own. */
import { join } from "node:path"
import { Effect, Redacted, Schedule } from "effect"
import { partitionOf } from "../../src/engine/process/Placement.ts"
import type { AccountId } from "../../src/engine/log/Document.ts"
import * as EmbeddedPostgres from "../../src/postgres/embedded/EmbeddedPostgres.ts"
import { freePort } from "../../src/postgres/embedded/FreePort.ts"
import { grantIn, MAKES_DATABASES } from "../../test/support/DatabaseRights.ts"
import { BenchFailure, failureOf } from "../BenchFailure.ts"
import { contenders, start, type StartedServer } from "../Contender.ts"
import * as Database from "../Database.ts"
import * as Seed from "../Seed.ts"

export interface Ground {
  readonly runners: ReadonlyArray<StartedServer>
  readonly accounts: ReadonlyArray<Seed.Account>
  readonly database: Database.Database
  /** Name of the database on that Postgres. */
  readonly databaseName: string
  /** Returns the index of the runner that serves an account. */
  readonly owners: Effect.Effect<(account: AccountId) => number, BenchFailure>
}

/** Starts one process on its embedded Postgres, which serves all accounts. */
export const sole = Effect.gen(function* () {
  const dataFolder = join(yield* Database.temporaryFolder, "data")
  const embedded = { dataFolder }
  const accounts = yield* grantIn(dataFolder, MAKES_DATABASES).pipe(
    Effect.andThen(EmbeddedPostgres.make(embedded)),
    Effect.mapError(failureOf("Postgres does not start")),
    Effect.flatMap(({ url }) => Seed.accounts(Redacted.value(url))),
    Effect.scoped
  )
  const runner = yield* start(contenders.till, { databaseUrl: "", dataFolder, nodeOptions: [] })
  const { url } = yield* Effect.mapError(EmbeddedPostgres.reach(embedded), failureOf("Till's Postgres is not there"))
  return {
    runners: [runner],
    accounts,
    database: yield* Database.at(Redacted.value(url)),
    databaseName: "",
    owners: Effect.succeed(() => 0)
  } satisfies Ground as Ground
})

const NAME = "till"
const HOST = "127.0.0.1"
const PLACES = "SELECT id, url FROM partitions"

/** Starts runners on one Postgres and waits until each serves its share. */
export const cluster = Effect.fnUntraced(function* (count: number) {
  const database = yield* Database.make
  const databaseUrl = yield* database.create(NAME)
  const accounts = yield* Seed.accounts(databaseUrl)
  const secretFile = join(yield* Database.temporaryFolder, "secret")
  const urls: Array<string> = []
  const runners: Array<StartedServer> = []
  for (let i = 0; i < count; i++) {
    const port = yield* Effect.orDie(freePort(HOST, 0))
    urls.push(`http://${HOST}:${port}`)
    const variables = { TILL_SECRET_FILE: secretFile, TILL_RUNNER_HOST: HOST, TILL_RUNNER_PORT: String(port) }
    runners.push(yield* start(contenders.till, { databaseUrl, nodeOptions: [], variables }))
  }
  const places = Effect.map(database.rows(NAME, PLACES), (rows) =>
    rows.map(({ id, url }) => [Number(id), urls.indexOf(url!)] as const)
  )
  yield* shared(places, count)
  const owners = Effect.map(places, (places) => {
    const owner = new Map(places)
    return (account: AccountId) => owner.get(partitionOf(account)) ?? -1
  })
  return { runners, accounts, database, databaseName: NAME, owners } satisfies Ground as Ground
})

const SHARED_MILLIS = 60_000

/** Waits until every partition is served, with about equal numbers per runner. */
const shared = (places: Effect.Effect<ReadonlyArray<readonly [number, number]>, BenchFailure>, count: number) => {
  const isShared = (found: ReadonlyArray<readonly [number, number]>) => {
    const counts = Array.from({ length: count }, (_, runner) => found.filter(([, owner]) => owner === runner).length)
    const even = found.length / count
    return found.length > 0 && found.every(([, owner]) => owner >= 0) && counts.every((one) => one >= even / 2)
  }
  return places.pipe(
    Effect.repeat({ until: isShared, schedule: Schedule.spaced("200 millis") }),
    Effect.timeoutOrElse({
      duration: SHARED_MILLIS,
      orElse: () => Effect.fail(new BenchFailure({ problem: `${count} runners do not share the partitions.` }))
    })
  )
}

/** Restricts the load to the accounts that one runner serves. */
export const servedBy = Effect.fnUntraced(function* ({ accounts, owners }: Ground, runner: number) {
  const ownerOf = yield* owners
  return accounts.filter(({ id }) => ownerOf(id) === runner)
})
