/**
 * The connection to Postgres: the server that `DATABASE_URL` names, or the embedded one.
 *
 * Guarantees: the layer is built only if the server answers and is recent enough; what stands in the way is one line, without
 * the password. Sessions run in UTC under the name `till`, and their commits wait for the server's disk; of a server that
 * does not wait for it itself, whoever starts Till is warned.
 */
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted, Schedule, Schema, type Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlClient } from "effect/sql"
import { innermostMessage } from "../engine/Causes.ts"
import { isMade } from "./Cluster.ts"
import { make as makeEmbedded, type EmbeddedPostgres, type EmbeddedPostgresError } from "./EmbeddedPostgres.ts"

/** The configured Postgres does not answer, refuses us, is too old, or busy with another Till. The message is one line. */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()("DatabaseUnavailable", {
  message: Schema.String
}) {}

export interface DatabaseServer {
  /** Where it is; with the password in it. */
  readonly url: Redacted.Redacted
  /** The server's handle if it is the embedded one. */
  readonly embedded: EmbeddedPostgres | undefined
}

/** Which Postgres is in use. */
export class Database extends Context.Service<Database, DatabaseServer>()("till/Database") {}

const versionMinimum = 15
const connectionsMax = 8
/** The name of Till's sessions. */
const APPLICATION = "till"
/** Silence after which the other side is asked for a sign of life. */
const KEEP_ALIVE = "30 seconds"

/** What every session of Till's asks of Postgres. */
export const sessionSettings = {
  timezone: "UTC",
  // Every statement of Till looks rows up by key. A plan made while a table was still empty would read the whole
  // table, and prepared statements keep their plans.
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  // Pages are read in the order of the keys. Without statistics the planner would rather read all and sort.
  enable_sort: "off",
  // Before version 18, what is off and cannot be avoided counts as so costly that every such statement would be compiled
  // first, and a tenth of the throughput was left.
  jit: "off"
}

/** Where an installation's data is. */
export interface Location {
  /** The Postgres to use; undefined means the embedded one. */
  readonly databaseUrl: Redacted.Redacted | undefined
  /** Absolute path of the folder that holds the embedded Postgres. */
  readonly dataFolder: string
}

/** Starts the embedded server if no other is named. It stops when the layer's scope closes. */
export const layerServer = ({ databaseUrl, dataFolder }: Location): Layer.Layer<Database, EmbeddedPostgresError> =>
  Layer.effect(
    Database,
    databaseUrl !== undefined
      ? Effect.succeed({ url: databaseUrl, embedded: undefined })
      : Effect.map(makeEmbedded({ dataFolder }), (embedded) => ({ url: embedded.url, embedded }))
  )

/** A pool of connections to `url`; fails if the server does not answer now. */
export const connect = (
  url: Redacted.Redacted
): Effect.Effect<PgClient.PgClient, DatabaseUnavailable, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const server = yield* ask(url)
    if (server.version < versionMinimum) {
      return yield* new DatabaseUnavailable({
        message: `${whereabouts(url)} is version ${server.version}; Till needs Postgres ${versionMinimum} or newer.`
      })
    }
    if (server.off.length > 0) {
      yield* Effect.logWarning(
        `${whereabouts(url)} runs without ${server.off.join(" and ")}: a crash of its machine may lose or damage what ` +
          "was acknowledged"
      )
    }
    return yield* PgClient.make({
      url,
      applicationName: APPLICATION,
      maxConnections: connectionsMax,
      minConnections: 1,
      // What has no limit of its own ends when the other side is gone without a word.
      keepAlive: KEEP_ALIVE,
      startupParameters: server.commitsLater ? { ...sessionSettings, synchronous_commit: "on" } : sessionSettings
    })
  }).pipe(
    Effect.mapError((error) =>
      error instanceof DatabaseUnavailable
        ? error
        : new DatabaseUnavailable({ message: `${whereabouts(url)}: ${withoutSecret(error, url)}.` })
    )
  )

/** What has to be known of a server first. */
const ask = (url: Redacted.Redacted) =>
  Effect.scoped(
    Effect.gen(function* () {
      const connection = yield* PgConnection.make({ url, applicationName: `${APPLICATION} start` })
      const [row] = yield* connection.queryValues(`SELECT current_setting('server_version_num')::int,
        current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes')`)
      const [version, commit, fsync, fullPageWrites] = row as [number, string, string, string]
      return {
        version: Math.floor(version / 10_000),
        // Other settings than `off` say which servers have to have a commit, and leave that to whoever runs them.
        commitsLater: commit === "off",
        // No session can ask for these.
        off: Object.entries({ fsync, full_page_writes: fullPageWrites }).flatMap(([name, value]) =>
          value === "off" ? [name] : []
        )
      }
    })
  )

/** `PgClient` and `SqlClient` on the server in use. */
export const layerClient: Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, DatabaseUnavailable, Database> =
  PgClient.layerFrom(Effect.flatMap(Database, (database) => connect(database.url)))

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

const requireTables = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const [table] = yield* Effect.mapError(
    sql<{ found: boolean }>`SELECT to_regclass('effect_sql_migrations') IS NOT NULL AS found`,
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

const whereabouts = (url: Redacted.Redacted): string => {
  const { hostname, port } = new URL(Redacted.value(url))
  return `DATABASE_URL: Postgres at ${hostname === "" ? "localhost" : hostname}:${port === "" ? 5432 : port}`
}

// Messages of the driver and of the server do not repeat passwords, as far as known; this makes sure of it.
const withoutSecret = (error: Error, url: Redacted.Redacted): string => {
  const text = innermostMessage(error).replaceAll(/\s+/g, " ").replace(/\.$/, "")
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
