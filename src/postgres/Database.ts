/**
 * The connection to Postgres: the server that `DATABASE_URL` names, or the embedded one.
 *
 * Guarantees: the layer is built only if the server answers and Till can work on it; what stands in the way is one
 * line, without the password. Sessions run in UTC under the name `till service`, and their commits wait for the
 * server's disk; of a server that does not wait for it itself, whoever starts Till is warned.
 */
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted, Schedule, Schema, Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlClient } from "effect/sql"
import { innermostMessage } from "../engine/log/Journal.ts"
import { isMade } from "./embedded/Cluster.ts"
import { make as makeEmbedded, reach, type EmbeddedPostgresError } from "./embedded/EmbeddedPostgres.ts"
import { texts } from "./Rows.ts"

/**
 * The configured Postgres does not answer, refuses us, is too old, or busy with another Till. The message is one line.
 */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()("DatabaseUnavailable", {
  message: Schema.String
}) {}

export interface DatabaseServer {
  /** It has the password in it. */
  readonly url: Redacted.Redacted
  /** Messages call it by this name. */
  readonly name: string
}

/** The Postgres in use. */
export class Database extends Context.Service<Database, DatabaseServer>()("till/Database") {}

const versionMinimum = 15
/** Of the pool. */
export const connectionsMax = 8
/** A runner has so many besides: for its locks, to ask who else runs, and to be told. */
const connectionsOfRunner = 3
/** The name of the sessions of a Till that may write. */
const APPLICATION = "till service"
/** Sessions that only read do not count as a Till that is running on the database. */
const APPLICATION_READING = "till reading"
/** Silence after which the other side is asked for a sign of life. */
const KEEP_ALIVE = "30 seconds"

/** A table of this name is there as long as a restore into the database goes on. */
export const RESTORE_TABLE = "unfinished_restore"

/** Every session of Till's asks this of Postgres. */
export const sessionSettings = {
  timezone: "UTC",
  // Two processes on one database may race. The loser reads what the winner has written, instead of being refused.
  default_transaction_isolation: "read committed",
  // Every statement of Till looks rows up by key. A plan made while a table was still empty would read the whole
  // table, and prepared statements keep their plans.
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  // Pages are read in the order of the keys. Without statistics the planner would rather read all and sort.
  enable_sort: "off",
  // Before version 18, what is off and cannot be avoided counts as so costly that every such statement would be
  // compiled first, and a tenth of the throughput was left.
  jit: "off"
}

/** The place of an installation's data. */
export interface Location {
  /** The Postgres to use; undefined means the embedded one. */
  readonly databaseUrl: Redacted.Redacted | undefined
  /** Absolute path of the folder that holds the embedded Postgres. */
  readonly dataFolder: string
}

/** Starts the embedded server if no other is named. It stops when the layer's scope closes. */
const layerServer = ({ databaseUrl, dataFolder }: Location): Layer.Layer<Database, EmbeddedPostgresError> =>
  Layer.effect(
    Database,
    databaseUrl !== undefined
      ? Effect.succeed(serverAt(databaseUrl))
      : Effect.map(makeEmbedded({ dataFolder }), ({ url }) => ({ url, name: `The Postgres in ${dataFolder}` }))
  )

/** A pool of connections to a server; fails if it does not answer now, or not as Till needs it. */
export const connect = (
  { name, url }: DatabaseServer,
  readsOnly = false
): Effect.Effect<PgClient.PgClient, DatabaseUnavailable, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    return yield* Effect.scoped(
      Effect.gen(function* () {
        const first = yield* PgConnection.make({ url, applicationName: "till start" })
        const server = yield* serverOf(first)
        const obstacle = obstacleOf(server, readsOnly)
        if (obstacle !== undefined) return yield* unavailable(name, obstacle)
        if (server.off.length > 0 && !readsOnly) {
          yield* Effect.logWarning(
            `${name} runs without ${server.off.join(" and ")}: a crash of its machine may lose or damage what ` +
              "was acknowledged"
          )
        }
        const settings = server.commitsLater ? { ...sessionSettings, synchronous_commit: "on" } : sessionSettings
        const sql = yield* PgClient.make({
          url,
          applicationName: readsOnly ? APPLICATION_READING : APPLICATION,
          // A server may allow fewer; then two stay free for `till verify` and its like.
          maxConnections: readsOnly
            ? 1
            : Math.max(1, Math.min(connectionsMax, (server.most ?? Infinity) - connectionsOfRunner - 2)),
          minConnections: 1,
          // This ends statements without a limit of their own when the other side is gone without a word.
          keepAlive: KEEP_ALIVE,
          startupParameters: settings
        }).pipe(Scope.provide(scope))
        const strange = strangenessOf(yield* sessionOf(sql, settings), server.process)
        return strange === undefined ? sql : yield* unavailable(name, `is behind a pooler that ${strange}`)
      })
    )
  }).pipe(
    Effect.mapError((error) =>
      error instanceof DatabaseUnavailable
        ? error
        : new DatabaseUnavailable({ message: `${name}: ${withoutSecret(error, url)}.` })
    )
  )

const unavailable = (name: string, problem: string) => new DatabaseUnavailable({ message: `${name} ${problem}.` })

/** Till has to know this of a server first. */
interface Server {
  readonly version: number
  readonly encoding: string
  readonly isReadOnly: boolean
  /** The role or the database may have so many connections at once; null if there is no limit. */
  readonly most: number | null
  /** Id of the process that has answered. */
  readonly process: number
  /** Other settings than `off` say which servers have to have a commit, and leave that to whoever runs them. */
  readonly commitsLater: boolean
  /** No session can ask for these. */
  readonly off: ReadonlyArray<string>
}

const serverOf = (connection: PgConnection.PgConnection) =>
  Effect.map(
    connection.query(`SELECT current_setting('server_version_num')::int / 10000 AS version,
      current_setting('server_encoding') AS encoding, current_setting('transaction_read_only')::bool AS "isReadOnly",
      (SELECT least(nullif(rolconnlimit, -1), nullif(datconnlimit, -1)) FROM pg_roles, pg_database
        WHERE rolname = session_user AND datname = current_database()) AS most,
      pg_backend_pid() AS process, current_setting('synchronous_commit') = 'off' AS "commitsLater",
      ARRAY(SELECT name FROM unnest(ARRAY['fsync', 'full_page_writes']) AS s (name)
        WHERE current_setting(name) = 'off') AS off`),
    ({ rows }) => rows[0] as unknown as Server
  )

/** Says why Till cannot work on a server; undefined if it can. */
const obstacleOf = ({ encoding, isReadOnly, most, version }: Server, readsOnly: boolean): string | undefined => {
  if (version < versionMinimum) return `is version ${version}; Till needs Postgres ${versionMinimum} or newer`
  // The journal would take what the views cannot: a name in Japanese would stop the projection for good.
  if (encoding !== "UTF8") return `keeps this database in ${encoding}; Till needs one with the encoding UTF8`
  if (isReadOnly && !readsOnly) return "is read-only, as a standby is; Till has to write"
  if (most !== null && most <= connectionsOfRunner) {
    const wanted = `Till needs ${connectionsOfRunner + 1} and uses up to ${connectionsMax + connectionsOfRunner + 2}`
    return `allows ${most} connection${most === 1 ? "" : "s"} at once here; ${wanted}`
  }
  return undefined
}

interface Session {
  /** The settings that were asked for and are not in force. */
  readonly lost: ReadonlyArray<string>
  readonly process: number
}

const sessionOf = (sql: PgClient.PgClient, settings: Readonly<Record<string, string>>) =>
  Effect.map(
    sql<Session>`SELECT pg_backend_pid() AS process, ARRAY(SELECT name || ' = ' || quote_literal(asked)
      FROM unnest(${texts(Object.keys(settings))}, ${texts(Object.values(settings))}) AS s (name, asked)
      WHERE current_setting(name) <> asked) AS lost`,
    ([row]) => row!
  )

/** Says what is wrong with a pooler between Till and Postgres, given the process of another connection. */
const strangenessOf = ({ lost, process }: Session, processOfAnother: number): string | undefined => {
  if (lost.length > 0) return `keeps back what Till asks for: set ${lost.join(", ")} there for the database`
  // A command knows a service that it must not meet by the name of its sessions.
  if (process === processOfAnother) return "shares sessions: Till needs it in session mode"
  return undefined
}

/** `PgClient` and `SqlClient` on the server in use. */
const layerClient: Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, DatabaseUnavailable, Database> =
  PgClient.layerFrom(Effect.flatMap(Database, connect))

/** `PgClient`, `SqlClient` and `Database` at a location. */
export const layer = (
  location: Location
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient | Database, EmbeddedPostgresError | DatabaseUnavailable> =>
  Layer.provideMerge(layerClient, layerServer(location))

/** There is no installation where one is looked for. */
export class NothingThere extends Schema.TaggedError<NothingThere>()("NothingThere", {}) {
  override get message() {
    return "there is no installation: do TILL_DATA_DIR and DATABASE_URL name the one that you mean?"
  }
}

/** The same, and nothing is made there: it fails if no Till was ever started on it. */
export const layerOfExisting = (location: Location) =>
  location.databaseUrl === undefined && !isMade(location.dataFolder)
    ? Layer.effectContext(Effect.fail(new NothingThere()))
    : Layer.provideMerge(Layer.effectDiscard(requireTables), layer(location))

/** The server in use, whoever runs the embedded one. */
const layerServerReached = ({ databaseUrl, dataFolder }: Location): Layer.Layer<Database, EmbeddedPostgresError> =>
  databaseUrl !== undefined
    ? layerServer({ databaseUrl, dataFolder })
    : Layer.effect(
        Database,
        Effect.map(reach({ dataFolder }), ({ url }) => ({ url, name: `The Postgres in ${dataFolder}` }))
      )

/**
 * One connection for work that only reads, and may go on beside whoever serves the installation. It fails if no Till
 * was ever started there. What tries to write fails.
 */
export const layerReading = (location: Location) =>
  location.databaseUrl === undefined && !isMade(location.dataFolder)
    ? Layer.effectContext(Effect.fail(new NothingThere()))
    : Layer.provideMerge(
        Layer.effectDiscard(Effect.andThen(readOnly, requireTables)),
        Layer.provideMerge(
          PgClient.layerFrom(Effect.flatMap(Database, (server) => connect(server, true))),
          layerServerReached(location)
        )
      )

const readOnly = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* Effect.mapError(
    sql`SET default_transaction_read_only = on`,
    (error) => new DatabaseUnavailable({ message: innermostMessage(error) })
  )
})

const requireTables = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const [table] = yield* Effect.mapError(
    sql<{ found: boolean }>`SELECT to_regclass('effect_sql_migrations') IS NOT NULL
      OR to_regclass(${RESTORE_TABLE}) IS NOT NULL AS found`,
    (error) => new DatabaseUnavailable({ message: innermostMessage(error) })
  )
  if (table?.found !== true) return yield* new NothingThere()
})

/** Fails if another process of Till's is connected to the database. */
export const requireAlone = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const [others] = yield* Effect.mapError(
    sql<{ count: number }>`SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = ${APPLICATION} AND pid <> pg_backend_pid()`,
    (error) => new DatabaseUnavailable({ message: innermostMessage(error) })
  )
  if (others !== undefined && others.count > 0) {
    return yield* new DatabaseUnavailable({ message: "Till is running on this database: stop it first." })
  }
}).pipe(
  // A session that has just ended is still listed for a moment.
  Effect.retry({ schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo({ duration: "1 second" })) })
)

/** Reads a URL as libpq does: its parameters count more, and a host may be the folder of a socket. */
const placeOf = (url: Redacted.Redacted) => {
  const { hostname, pathname, port, searchParams } = new URL(Redacted.value(url))
  const host = searchParams.get("host") ?? decodeLenient(hostname)
  return {
    server: `${host === "" ? "localhost" : host}:${searchParams.get("port") ?? (port === "" ? 5432 : port)}`,
    database: searchParams.get("dbname") ?? decodeLenient(pathname.slice(1))
  }
}

/** A database's name in messages and files: without the password. */
export const nameOf = (url: Redacted.Redacted): string => {
  const { database, server } = placeOf(url)
  return `${server}/${database}`
}

/** The server that `DATABASE_URL` names. */
export const serverAt = (url: Redacted.Redacted): DatabaseServer => ({
  url,
  name: `DATABASE_URL: Postgres at ${placeOf(url).server}`
})

// Messages of the driver and of the server do not repeat passwords, as far as known; this makes sure of it.
const withoutSecret = (error: Error, url: Redacted.Redacted): string => {
  const text = innermostMessage(error)
  const raw = Redacted.value(url)
  const { password } = new URL(raw)
  return [raw, password, decodeLenient(password)].reduce(
    (message, secret) => (secret === "" ? message : message.replaceAll(secret, "…")),
    text
  )
}

const decodeLenient = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
