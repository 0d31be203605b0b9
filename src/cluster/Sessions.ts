/**
 * A runner's own sessions with Postgres, and the checks before its first change of the database.
 *
 * The sessions are separate from the pool of requests, because a runner that waits for a connection could not send its
 * heartbeat. Their name contains the runner's protocol, and names the secrets that it has read. Postgres notices ended
 * sessions at once, so its list of sessions shows the living runners, for any version of the tables.
 *
 * Runners with the same protocol work side by side. A runner with a newer protocol waits, before it changes anything,
 * until no older one is left; an older one does not start beside it (semantics runners.compatibility).
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, Schedule, Schema, type Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlError } from "effect/sql"
import { innermostMessage } from "../engine/log/Journal.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("cluster")

/** The formats that runners must agree on. Numbers only grow; the first differing one decides which is newer. */
export interface Protocol {
  readonly records: number
  readonly migration: number
  /** Version of the requests between runners. */
  readonly requests: number
}

/** The runner may not start on this database. The message is one line. */
export class RunnerRefused extends Schema.TaggedError<RunnerRefused>()("RunnerRefused", { message: Schema.String }) {}

/** One connection holds the locks, the other runs queries. */
const CONNECTIONS = 2
const NAME = "till runner"
/** Allowed difference between a runner's clock and the database's, in milliseconds. */
export const CLOCK_OFF_MILLIS_MAX = 2000
/** The allowed difference at the start. Tests that give the service a different clock raise it. */
export const ClockOffMax: Context.Reference<number> = Context.Reference("till/cluster/ClockOffMax", {
  defaultValue: () => CLOCK_OFF_MILLIS_MAX
})

export interface RunnerSessions {
  readonly sql: PgClient.PgClient
  readonly name: string
  /** Lead of this machine's clock over the database's at the start, in milliseconds. */
  readonly aheadMillis: number
}

/** Null in a process that has the database to itself. */
export class Sessions extends Context.Service<Sessions, RunnerSessions | null>()("till/cluster/Sessions") {
  static readonly layerNone: Layer.Layer<Sessions> = Layer.succeed(Sessions, null)
  /** Waits until this runner may begin. Fails if it may not. */
  static readonly layer = (
    protocol: Protocol,
    secrets: ReadonlyArray<string>
  ): Layer.Layer<Sessions, RunnerRefused, PgClient.PgClient> =>
    Layer.effect(Sessions, make(protocol, secrets)).pipe(Layer.provide(Reactivity.layer))
}

const make = (
  protocol: Protocol,
  secrets: ReadonlyArray<string>
): Effect.Effect<RunnerSessions, RunnerRefused, Needed> =>
  Effect.gen(function* () {
    const { config } = yield* PgClient.PgClient
    const name = nameOf(protocol, secrets)
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

/** Characters of a secret's fingerprint in a session's name, which Postgres cuts at 63 bytes. */
const PRINT_LENGTH = 8

const nameOf = ({ migration, records, requests }: Protocol, secrets: ReadonlyArray<string>): string =>
  [`${NAME} ${records}.${migration}.${requests}`, ...secrets.map((print) => print.slice(0, PRINT_LENGTH))].join(" ")

/** Parses the name of a runner's session; undefined for other sessions. */
const parseName = (
  name: string
): { readonly protocol: Protocol; readonly secrets: ReadonlyArray<string> } | undefined => {
  if (!name.startsWith(`${NAME} `)) return undefined
  const [numbers = "", ...secrets] = name.slice(NAME.length + 1).split(" ")
  const [records, migration, requests] = numbers.split(".").map(Number)
  if (records === undefined || migration === undefined || requests === undefined) return undefined
  return { protocol: { records, migration, requests }, secrets }
}

/** Negative if the first protocol is older. */
export const compare = (a: Protocol, b: Protocol): number =>
  a.records - b.records || a.migration - b.migration || a.requests - b.requests

/** The different names of the runners on the database, including this one's. */
const namesOf = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<{ name: string }>`SELECT DISTINCT application_name AS name FROM pg_stat_activity
      WHERE datname = current_database() AND application_name LIKE ${`${NAME} %`}`,
    (rows) => rows.flatMap(({ name }) => parseName(name) ?? [])
  )

/** Returns whether all runners on the database, if any, have read the secret with this fingerprint. */
export const haveSecret = (print: string): Effect.Effect<boolean, SqlError.SqlError, PgClient.PgClient> =>
  Effect.map(Effect.flatMap(PgClient.PgClient, namesOf), (names) =>
    names.every(({ secrets }) => secrets.includes(print.slice(0, PRINT_LENGTH)))
  )

const NEWER = "A newer Till serves this database, or waits to, which this one cannot work beside: start the newer one"
const OLDER = "An older Till serves this database, which this one cannot work beside: it waits until that one has ended"

/** Waits until no runner has an older protocol. This runner's sessions already exist, so no older one can start. */
const admitted = (sql: PgClient.PgClient, own: Protocol) =>
  Effect.gen(function* () {
    const differences = Effect.map(namesOf(sql), (others) => others.map(({ protocol }) => compare(protocol, own)))
    const requireNewest = Effect.filterOrElse(
      differences,
      (others) => others.every((difference) => difference <= 0),
      () => refused(NEWER)
    ).pipe(
      // A session that has just ended is listed for a short time.
      Effect.retry({ schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo({ duration: "1 second" })) })
    )
    const isFree = Effect.map(requireNewest, (others) => others.every((difference) => difference === 0))
    if (yield* isFree) return
    yield* log.warning(OLDER)
    yield* Effect.repeat(isFree, { until: (free) => free, schedule: Schedule.spaced("500 millis") })
    yield* log.info("No older Till serves this database now")
  })

/** Measures the lead of this machine's clock over the database's, in milliseconds. Fails if it is too large. */
const clockOf = Effect.fnUntraced(function* (
  sql: PgClient.PgClient
): Effect.fn.Return<number, SqlError.SqlError | RunnerRefused> {
  const max = yield* ClockOffMax
  yield* sql`SELECT`
  const before = yield* Clock.currentTimeMillis
  const [row] = yield* sql<{ now: number }>`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`
  const after = yield* Clock.currentTimeMillis
  const ahead = Math.round((before + after) / 2 - row!.now)
  // The database may have read its clock at any time between query and answer.
  if (Math.abs(ahead) - (after - before) / 2 <= max) return ahead
  const seconds = (Math.abs(ahead) / 1000).toFixed(1)
  return yield* refused(
    `This machine's clock is ${seconds} s ${ahead > 0 ? "ahead of" : "behind"} the database's; ` +
      `${max / 1000} s are allowed: synchronize both, by NTP for example.`
  )
})
