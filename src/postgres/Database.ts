/**
 * The connection to Postgres: the server that `DATABASE_URL` names, or the embedded one.
 *
 * Guarantees: the layer is built only if the server answers and Till can work on it; otherwise it fails with one line,
 * without the password. Sessions run in UTC under the name `till service`, and their commits wait for the server's
 * disk. A warning is logged for a server that runs without `fsync` or `full_page_writes`.
 */
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted, Schedule, Schema, Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlClient } from "effect/sql"
import { innermostMessage } from "../engine/log/Journal.ts"
import { isMade } from "./embedded/Cluster.ts"
import { make as makeEmbedded, reach, type EmbeddedPostgresError } from "./embedded/EmbeddedPostgres.ts"
import { texts } from "./Rows.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("postgres")

/** Postgres does not answer, refuses the connection, is too old, or serves another Till. The message is one line. */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()("DatabaseUnavailable", {
  message: Schema.String
}) {}

export interface DatabaseServer {
  /** Contains the password. */
  readonly url: Redacted.Redacted
  /** The name in messages. */
  readonly name: string
}

export class Database extends Context.Service<Database, DatabaseServer>()("till/Database") {}

const versionMinimum = 15
export const connectionsMax = 8
/** A runner's further connections: for its locks, for queries about other runners, and for notifications. */
const connectionsOfRunner = 3
/** The name of sessions that may write. */
const APPLICATION = "till service"
/** The name of sessions that only read: they do not count as a Till that runs on the database. */
const APPLICATION_READING = "till reading"
const KEEP_ALIVE = "30 seconds"

/** The marker table of a restore that has not completed. */
export const RESTORE_TABLE = "unfinished_restore"

export const sessionSettings = {
  timezone: "UTC",
  // Two processes on one database may race. The loser reads the winner's rows, instead of being refused.
  default_transaction_isolation: "read committed",
  // Every statement of Till looks rows up by key. A plan made for an empty table would scan the table, and prepared
  // statements keep their plans.
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  // Pages of lists are read in the order of the keys. Without statistics the planner prefers to read all rows and sort.
  enable_sort: "off",
  // Before version 18, a plan step that is off and cannot be avoided has such a high cost that Postgres would compile
  // every such statement, which left a tenth of the throughput.
  jit: "off"
}

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
          yield* log.warning(
            `${name} runs without ${server.off.join(" and ")}: a crash of its machine may lose or damage what ` +
              "was acknowledged",
            undefined,
            { cause: "unsafe" }
          )
        }
        const settings = server.commitsLater ? { ...sessionSettings, synchronous_commit: "on" } : sessionSettings
        const sql = yield* PgClient.make({
          url,
          applicationName: readsOnly ? APPLICATION_READING : APPLICATION,
          // A server may allow fewer connections; then two remain free for commands such as `till verify`.
          maxConnections: readsOnly
            ? 1
            : Math.max(1, Math.min(connectionsMax, (server.most ?? Infinity) - connectionsOfRunner - 2)),
          minConnections: 1,
          // Ends statements without a limit of their own when the server has vanished.
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

interface Server {
  readonly version: number
  readonly encoding: string
  readonly isReadOnly: boolean
  readonly most: number | null
  readonly process: number
  /** True if `synchronous_commit` is off. Its other values choose among servers, and Till leaves them unchanged. */
  readonly commitsLater: boolean
  /** The durability settings that are off and that no session can change. */
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

/** Returns why Till cannot work on a server; undefined if it can. */
const obstacleOf = ({ encoding, isReadOnly, most, version }: Server, readsOnly: boolean): string | undefined => {
  if (version < versionMinimum) return `is version ${version}; Till needs Postgres ${versionMinimum} or newer`
  // The journal stores bytes, but the views store text: a name in Japanese would stop the projection permanently.
  if (encoding !== "UTF8") return `keeps this database in ${encoding}; Till needs one with the encoding UTF8`
  if (isReadOnly && !readsOnly) return "is read-only, as a standby is; Till has to write"
  if (most !== null && most <= connectionsOfRunner) {
    const wanted = `Till needs ${connectionsOfRunner + 1} and uses up to ${connectionsMax + connectionsOfRunner + 2}`
    return `allows ${most} connection${most === 1 ? "" : "s"} at once here; ${wanted}`
  }
  return undefined
}

interface Session {
  /** The requested settings that are not in force. */
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

/** Returns the problem with a pooler in front of Postgres, given the server process of another connection. */
const strangenessOf = ({ lost, process }: Session, processOfAnother: number): string | undefined => {
  if (lost.length > 0) return `keeps back what Till asks for: set ${lost.join(", ")} there for the database`
  // Commands detect a running service by the name of its sessions.
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

export class NothingThere extends Schema.TaggedError<NothingThere>()("NothingThere", {}) {
  override get message() {
    return "There is no installation: do TILL_DATA_DIR and DATABASE_URL name the one that you mean?"
  }
}

/** The same for an existing installation: fails if no Till was ever started there, and creates nothing. */
export const layerOfExisting = (location: Location) =>
  location.databaseUrl === undefined && !isMade(location.dataFolder)
    ? Layer.effectContext(Effect.fail(new NothingThere()))
    : Layer.provideMerge(Layer.effectDiscard(requireTables), layer(location))

/** The server in use; the embedded one may be run by another process. */
const layerServerReached = ({ databaseUrl, dataFolder }: Location): Layer.Layer<Database, EmbeddedPostgresError> =>
  databaseUrl !== undefined
    ? layerServer({ databaseUrl, dataFolder })
    : Layer.effect(
        Database,
        Effect.map(reach({ dataFolder }), ({ url }) => ({ url, name: `The Postgres in ${dataFolder}` }))
      )

/** One connection for commands that only read. Fails if no Till was ever started there. */
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

/** Fails if another Till that may write is connected to the database. */
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
  // A session that has just ended remains listed for a moment.
  Effect.retry({ schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo({ duration: "1 second" })) })
)

/** Parses a URL as libpq does: parameters take precedence, and a host may be the folder of a socket. */
const placeOf = (url: Redacted.Redacted) => {
  const { hostname, pathname, port, searchParams } = new URL(Redacted.value(url))
  const host = searchParams.get("host") ?? decodeLenient(hostname)
  return {
    server: `${host === "" ? "localhost" : host}:${searchParams.get("port") ?? (port === "" ? 5432 : port)}`,
    database: searchParams.get("dbname") ?? decodeLenient(pathname.slice(1))
  }
}

/** Returns a database's name for messages and files, without the password. */
export const nameOf = (url: Redacted.Redacted): string => {
  const { database, server } = placeOf(url)
  return `${server}/${database}`
}

export const serverAt = (url: Redacted.Redacted): DatabaseServer => ({
  url,
  name: `DATABASE_URL: Postgres at ${placeOf(url).server}`
})

// Messages of the driver and of the server contain no passwords, as far as known. This is a safeguard.
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
