/**
 * A runner's own sessions with Postgres, and what it has to know before it does anything on the database.
 *
 * They are apart from the pool that requests use, because a runner that waited there could not say that it lives. Their
 * name says what the runner is able to work beside: its protocol. Postgres knows at once when a runner's sessions are
 * gone, so it tells which runners live, whatever their tables look like.
 *
 * Runners of one protocol work side by side. Of two others, the newer one waits before it changes anything, until no
 * older one is left; and an older one does not start beside it (semantics 9.49).
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, Schedule, Schema } from "effect"
import type { Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlError } from "effect/sql"
import { innermostMessage } from "../engine/log/Journal.ts"

/** What runners have to agree on; each number only grows, and more of one that stands before counts more. */
export interface Protocol {
  /** The newest format of records that is read and written. */
  readonly records: number
  /** The newest migration of the tables. */
  readonly migration: number
  /** How runners ask one another. */
  readonly requests: number
}

/** The runner does not fit the database or the runners that are there. The message is one line. */
export class RunnerRefused extends Schema.TaggedError<RunnerRefused>()("RunnerRefused", { message: Schema.String }) {}

/** One holds the locks, the other asks. */
const CONNECTIONS = 2
const NAME = "till runner"
/** A clock may be so far off the database's, in milliseconds. */
export const CLOCK_OFF_MILLIS_MAX = 2000
/** The same at the start. Whoever gives the service another time than the machine's has to allow for that. */
export const ClockOffMax: Context.Reference<number> = Context.Reference("till/cluster/ClockOffMax", {
  defaultValue: () => CLOCK_OFF_MILLIS_MAX
})

export interface RunnerSessions {
  readonly sql: PgClient.PgClient
  /** The name of the sessions. */
  readonly name: string
  /** By so many milliseconds this machine's clock was ahead of the database's at the start. */
  readonly aheadMillis: number
}

/** Null where the database is this process' alone. */
export class Sessions extends Context.Service<Sessions, RunnerSessions | null>()("till/cluster/Sessions") {
  static readonly layerNone: Layer.Layer<Sessions> = Layer.succeed(Sessions, null)
  /** Built once this runner may begin. Fails if it never may. */
  static readonly layer = (protocol: Protocol): Layer.Layer<Sessions, RunnerRefused, PgClient.PgClient> =>
    Layer.effect(Sessions, make(protocol)).pipe(Layer.provide(Reactivity.layer))
}

const make = (protocol: Protocol): Effect.Effect<RunnerSessions, RunnerRefused, Needed> =>
  Effect.gen(function* () {
    const { config } = yield* PgClient.PgClient
    const name = nameOf(protocol)
    const sql = yield* PgClient.make({
      ...config,
      applicationName: name,
      maxConnections: CONNECTIONS,
      minConnections: 1
    })
    const aheadMillis = yield* clockOf(sql)
    yield* admitted(sql, protocol)
    return { sql, name, aheadMillis }
  }).pipe(Effect.catchTag("SqlError", (error) => refused(`The database: ${innermostMessage(error)}.`)))

type Needed = PgClient.PgClient | Scope.Scope | Reactivity.Reactivity

const refused = (message: string) => Effect.fail(new RunnerRefused({ message }))

const nameOf = ({ migration, records, requests }: Protocol): string => `${NAME} ${records}.${migration}.${requests}`

/** Reads the protocol in the name of a session; undefined if the name is another's. */
const protocolIn = (name: string): Protocol | undefined => {
  const [records, migration, requests] = name.startsWith(`${NAME} `) ? name.slice(NAME.length).split(".") : []
  return requests === undefined
    ? undefined
    : { records: Number(records), migration: Number(migration), requests: Number(requests) }
}

/** Negative if the first is the older one. */
export const compare = (a: Protocol, b: Protocol): number =>
  a.records - b.records || a.migration - b.migration || a.requests - b.requests

/** The runners that live on the database, this one included, by their protocols. */
const protocolsOf = (sql: PgClient.PgClient): Effect.Effect<ReadonlyArray<Protocol>, SqlError.SqlError> =>
  Effect.map(
    sql<{ name: string }>`SELECT DISTINCT application_name AS name FROM pg_stat_activity
      WHERE datname = current_database() AND application_name LIKE ${`${NAME} %`}`,
    (rows) => rows.flatMap(({ name }) => protocolIn(name) ?? [])
  )

const NEWER = "A newer Till serves this database, or waits to, which this one cannot work beside: start the newer one"
const OLDER = "An older Till serves this database, which this one cannot work beside: it waits until that one has ended"

/** Waits until no runner of an older protocol lives. Its own sessions are there by then, so nobody older starts. */
const admitted = (sql: PgClient.PgClient, own: Protocol) =>
  Effect.gen(function* () {
    const differences = Effect.map(protocolsOf(sql), (others) => others.map((other) => compare(other, own)))
    const requireNewest = Effect.filterOrElse(
      differences,
      (others) => others.every((difference) => difference <= 0),
      () => refused(NEWER)
    ).pipe(
      // A session that has just ended is still listed for a moment.
      Effect.retry({ schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo({ duration: "1 second" })) })
    )
    const isFree = Effect.map(requireNewest, (others) => others.every((difference) => difference === 0))
    if (yield* isFree) return
    yield* Effect.logWarning(OLDER)
    yield* Effect.repeat(isFree, { until: (free) => free, schedule: Schedule.spaced("500 millis") })
    yield* Effect.logInfo("No older Till serves this database any more")
  })

/** By how much this machine's clock is ahead of the database's, in milliseconds. */
const clockOf = Effect.fnUntraced(function* (
  sql: PgClient.PgClient
): Effect.fn.Return<number, SqlError.SqlError | RunnerRefused> {
  const max = yield* ClockOffMax
  yield* sql`SELECT`
  const before = yield* Clock.currentTimeMillis
  const [row] = yield* sql<{ now: number }>`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`
  const after = yield* Clock.currentTimeMillis
  const ahead = Math.round((before + after) / 2 - row!.now)
  // The answer may have been under way for all of the time that it took.
  if (Math.abs(ahead) - (after - before) / 2 <= max) return ahead
  const seconds = (Math.abs(ahead) / 1000).toFixed(1)
  return yield* refused(
    `This machine's clock is ${seconds} s ${ahead > 0 ? "ahead of" : "behind"} the database's; ` +
      `${max / 1000} s are allowed: synchronize both, by NTP for example.`
  )
})
