/**
 * The tables. `journal` is the source of truth. All others are views of it and could be dropped and rebuilt, except
 * those of anchors, of erasures, of the request log and of the cluster.
 *
 * Every key starts with the account, which is the shard. Ids compare by byte (`COLLATE "C"`), so their order is the
 * order of creation. Records are bytes, not `jsonb`, because exactly these bytes are hashed and served: a row of
 * `objects` holds only the place of its document in a record.
 *
 * A released migration never changes. A change of the tables, or of the terms and tallies of documents, adds a
 * migration; the latter sets `checkpoints.outdated`, and the next start rebuilds those accounts' views.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { PgMigrator } from "@effect/sql-pg"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { innermostMessage } from "../engine/log/Journal.ts"
import { RESTORE_TABLE } from "./Database.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("postgres")

const statements = (...texts: ReadonlyArray<string>) =>
  SqlClient.SqlClient.use((sql) => Effect.forEach(texts, (text) => sql.unsafe(text), { discard: true }))

/**
 * Sets the statistics target of columns: `ANALYZE` keeps this many of a column's most frequent values, and as many
 * histogram buckets. 0 where no condition uses the column; low otherwise, because most of the work of `ANALYZE` is
 * sorting whole records and documents.
 */
const statistics = (relation: string, targets: Readonly<Record<string, number>>) =>
  `ALTER ${relation} ${Object.entries(targets)
    .map(([column, target]) => `ALTER COLUMN ${column} SET STATISTICS ${target}`)
    .join(", ")}`

/** The partition of a row's account, as in `Rows.ts`. A copy, because a released migration never changes. */
const PARTITION = String.raw`get_byte(sha256(decode(replace(account, '\', '\\'), 'escape')), 0) & 63`

/*
 * `autovacuum_vacuum_insert_threshold = -1`: otherwise Postgres vacuums the inserted rows again and again while a table
 * grows. That serves index-only scans, which these tables never see, and does not spare the freezing of rows.
 */

const journal = [
  // Records are stored in line and uncompressed up to 8 KB: they are written once. A slice of a record is read without
  // the bytes in front of it.
  `CREATE TABLE journal (
    account text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    hash bytea NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (account, version)
  ) WITH (toast_tuple_target = 8160, autovacuum_vacuum_insert_threshold = -1)`,
  `ALTER TABLE journal ALTER COLUMN record SET STORAGE EXTERNAL`,
  statistics("TABLE journal", { account: 10, version: 10, hash: 0, record: 0 })
]

const checkpoints = [
  // `number`: see `AccountNumbers`; null in a new row. `ids_ahead`: by how many seconds the account's ids were ahead of
  // its time, at most. `outdated`: the next start rebuilds the account's views.
  `CREATE TABLE checkpoints (
    account text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    number int,
    ids_ahead bigint NOT NULL DEFAULT 0,
    outdated boolean NOT NULL DEFAULT false,
    checksum int
  ) WITH (fillfactor = 50)`,
  `CREATE INDEX checkpoints_by_number ON checkpoints (number)`
]

/** Lists of a customer's or a product's objects, of which it may have any number, read these indexes in order. */
const objectsByOwner = ["customer", "product"].flatMap((owner) => [
  `CREATE INDEX objects_by_${owner} ON objects (((labels ->> '${owner}') COLLATE "C"), id)
    WHERE (labels ->> '${owner}') COLLATE "C" IS NOT NULL`,
  statistics(`INDEX objects_by_${owner}`, { 1: 0 })
])

const objects = [
  // The spans of the document and of its hidden part, in bytes of the record of `version`; null for a deleted document.
  // `terms` and `measure`: see `Search`; null for kinds without search. `tallies`: see `Tallies`.
  `CREATE TABLE objects (
    account text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    document_at int,
    document_length int,
    hidden_at int,
    hidden_length int,
    labels jsonb,
    format int NOT NULL,
    terms bigint[],
    measure bigint,
    checksum int,
    tallies text COLLATE "C",
    PRIMARY KEY (account, id)
  ) WITH (autovacuum_vacuum_insert_threshold = -1)`,
  // Every look-up reads the whole list of pending entries, so the list is kept short.
  `CREATE INDEX objects_by_label ON objects USING gin (labels jsonb_path_ops)
    WITH (gin_pending_list_limit = 64) WHERE labels IS NOT NULL`,
  ...objectsByOwner,
  // Many terms repeat, so entries cost least when many are inserted at a time.
  `CREATE INDEX objects_by_term ON objects USING gin (terms) WITH (gin_pending_list_limit = 256)
    WHERE terms IS NOT NULL`,
  statistics("TABLE objects", { account: 10, id: 10, kind: 10, version: 0, labels: 10, format: 0 }),
  statistics("TABLE objects", { document_at: 0, document_length: 0, hidden_at: 0, hidden_length: 0 }),
  statistics("TABLE objects", { terms: 0, measure: 0, checksum: 0, tallies: 0 }),
  // The records that wrote a document before the one in its row of `objects`.
  `CREATE TABLE revisions (
    account text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (account, id, version)
  ) WITH (autovacuum_vacuum_insert_threshold = -1)`,
  statistics("TABLE revisions", { account: 10, id: 10, version: 0 })
]

const events = [
  // One index serves lists of all types and of one type: events are written far more often than they are listed.
  `CREATE TABLE events (
    account text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (account, type, id)
  )`,
  statistics("TABLE events", { account: 10, id: 10, type: 10, version: 0 })
]

const timers = [
  // `due_at` is by the account's clock, which may be ahead; `wake_at` by the wall clock.
  `CREATE TABLE timers (
    account text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    due_at bigint NOT NULL,
    wake_at bigint NOT NULL,
    checksum int,
    PRIMARY KEY (account, id)
  )`,
  // An actor holds its account's next timers in memory. The account may have a million of them.
  `CREATE INDEX timers_by_account ON timers (account, due_at, id)`,
  // The first for a process that serves some of the partitions, the second for one that serves all.
  `CREATE INDEX timers_by_partition ON timers ((${PARTITION}), wake_at, id)`,
  `CREATE INDEX timers_by_wake_at ON timers (wake_at, id)`,
  statistics("INDEX timers_by_partition", { 1: 10 })
]

const idempotency = [
  `CREATE TABLE idempotency (
    account text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (account, version)
  )`,
  `CREATE INDEX idempotency_by_at ON idempotency USING brin (at)`,
  // Clients choose keys at random: in a sorted index of whole keys, every insert would touch a page of its own, and
  // every checkpoint log it. A hash index is a quarter as large, and versions ascend.
  `CREATE INDEX idempotency_by_key ON idempotency USING hash ((account || key))`,
  statistics("TABLE idempotency", { account: 10, key: 0, version: 10, at: 10 }),
  statistics("INDEX idempotency_by_key", { 1: 0 }),
  // One row at most, with the time and its complement: a damaged time would delete all keys.
  `CREATE TABLE running_time (single boolean PRIMARY KEY DEFAULT true CHECK (single), at bigint NOT NULL,
    complement bigint NOT NULL)`
]

const deliveries = [
  `CREATE TABLE subscriptions (
    account text COLLATE "C" NOT NULL,
    destination text COLLATE "C" NOT NULL,
    types text[] NOT NULL,
    version bigint NOT NULL,
    checksum int,
    PRIMARY KEY (account, destination)
  )`,
  // `wake_at` is the later of `due_at` and the end of the lease. Leases are no part of the fold.
  `CREATE TABLE deliveries (
    account text COLLATE "C" NOT NULL,
    destination text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    event text COLLATE "C" NOT NULL,
    event_version bigint NOT NULL,
    version bigint NOT NULL,
    at bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    attempts jsonb NOT NULL,
    next_attempt_at bigint,
    due_at bigint,
    wake_at bigint,
    PRIMARY KEY (account, destination, id)
  ) WITH (fillfactor = 85)`,
  // The owner of a partition looks for the deliveries due in it, without the pending ones of all others.
  `CREATE INDEX deliveries_pending_by_partition ON deliveries ((${PARTITION}), wake_at, id) WHERE state = 'pending'`,
  // An event's pending deliveries are counted without reading its others.
  `CREATE INDEX deliveries_by_event ON deliveries (account, event, state)`,
  statistics("TABLE deliveries", { version: 0, event_version: 0, attempts: 0 }),
  statistics("INDEX deliveries_pending_by_partition", { 1: 10 })
]

const tallies = [
  // The same few rows are updated again and again, in place. `hours` is the length of the step: an hour or a day.
  `CREATE TABLE tallies (
    account text COLLATE "C" NOT NULL,
    hour int NOT NULL,
    key text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    amount bigint NOT NULL,
    hours int NOT NULL,
    PRIMARY KEY (account, hours, hour, key)
  ) WITH (fillfactor = 50)`
]

const anchors = [
  // Signed heads of the journals: see `engine/verify/Anchors.ts`.
  `CREATE TABLE anchors (
    sequence bigint PRIMARY KEY,
    at bigint NOT NULL,
    heads text COLLATE "C" NOT NULL,
    signature text COLLATE "C" NOT NULL
  )`
]

const requestLogs = [
  `CREATE TABLE request_logs (
    account text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    method text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    status int NOT NULL,
    micros bigint NOT NULL,
    api_key text COLLATE "C" NOT NULL,
    api_version text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C",
    original_request text COLLATE "C",
    error_type text COLLATE "C",
    error_code text COLLATE "C",
    error_param text COLLATE "C",
    error_message text COLLATE "C",
    objects text[] COLLATE "C" NOT NULL,
    sent text COLLATE "C",
    PRIMARY KEY (account, id)
  ) WITH (autovacuum_vacuum_insert_threshold = -1)`,
  // Every query reads along the primary key, whatever it filters by.
  statistics("TABLE request_logs", { account: 10, id: 10, at: 0, method: 0, path: 0, status: 0, micros: 0 }),
  statistics("TABLE request_logs", { api_key: 0, api_version: 0, idempotency_key: 0, original_request: 0 }),
  statistics("TABLE request_logs", { error_type: 0, error_code: 0, error_param: 0, error_message: 0 }),
  statistics("TABLE request_logs", { objects: 0, sent: 0 })
]

const cluster = [
  // `url` is the owner's, and null while the partition moves. It serves display and forwarding: locks decide ownership.
  `CREATE TABLE partitions (
    id int PRIMARY KEY,
    url text,
    epoch bigint NOT NULL,
    since timestamptz NOT NULL
  )`,
  `CREATE TABLE runners (
    url text PRIMARY KEY,
    version text NOT NULL,
    since timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    ahead_millis int NOT NULL,
    is_leaving boolean NOT NULL
  )`,
  // As `SqlRunnerStorage` of `effect/cluster` would create them, which would do so at every start, in several processes
  // at the same time.
  `CREATE TABLE cluster_runners (
    machine_id SERIAL PRIMARY KEY,
    address VARCHAR(255) NOT NULL,
    runner TEXT NOT NULL,
    healthy BOOLEAN NOT NULL DEFAULT TRUE,
    last_heartbeat TIMESTAMP NOT NULL DEFAULT NOW(),
    UNIQUE(address)
  )`,
  `CREATE TABLE cluster_locks (
    shard_id VARCHAR(50) PRIMARY KEY,
    address VARCHAR(255) NOT NULL,
    acquired_at TIMESTAMP NOT NULL
  )`
]

export const migrations = {
  "0001_tables": statements(
    ...journal,
    ...checkpoints,
    ...objects,
    ...events,
    ...timers,
    ...idempotency,
    ...deliveries,
    ...tallies,
    ...anchors,
    ...requestLogs,
    ...cluster
  ),
  // Words of texts are terms, and kinds of documents do not share terms. By the new name of the column, projections of
  // a runner fail that was cut off during the upgrade and still has the other terms.
  "0002_search_words": statements(
    "ALTER TABLE objects RENAME COLUMN terms TO term_numbers",
    "UPDATE checkpoints SET outdated = true"
  ),
  // `erased`: the digest of a row whose text was replaced; see `Erasures`. The index lists these rows for backups.
  "0003_erasures": statements(
    `ALTER TABLE journal ADD COLUMN erased text COLLATE "C"`,
    statistics("TABLE journal", { erased: 0 }),
    "CREATE INDEX journal_erased ON journal (account, version) WHERE erased IS NOT NULL",
    // Ids only: a restored backup of before is erased again. `ended_at` is null until an erasure has come to its end.
    `CREATE TABLE erasures (
      account text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      begun_at bigint NOT NULL,
      ended_at bigint,
      PRIMARY KEY (account, id)
    )`
  ),
  // `events_from`: events with ids from before this time, in milliseconds, may have been deleted; see `OldEvents`.
  "0004_retention": statements("ALTER TABLE checkpoints ADD COLUMN events_from bigint NOT NULL DEFAULT 0"),
  // Few rows have an entry: an operation leaves the index with its outcome. Metrics count them. The version before does
  // not know operations that a processor has carried out by itself, nor processors of a restored installation.
  "0005_operations": statements(
    `CREATE INDEX objects_without_outcome ON objects (id)
      WHERE kind = 'operation' AND labels ->> 'status' IN ('open', 'unresolved', 'decide')`
  )
}

export class NewerDatabase extends Schema.TaggedError<NewerDatabase>()("NewerDatabase", { migration: Schema.Int }) {
  override get message() {
    return `The database was written by a newer Till (migration ${this.migration}; this one knows ${newest}).`
  }
}

/** A Till from before the first release has migrated the database. */
export class UnreleasedDatabase extends Schema.TaggedError<UnreleasedDatabase>()("UnreleasedDatabase", {}) {
  override get message() {
    return (
      "The database was made by a Till from before its first release, which no release can read: " +
      "start anew with an empty database, or without DATABASE_URL with an empty TILL_DATA_DIR."
    )
  }
}

export class ForeignDatabase extends Schema.TaggedError<ForeignDatabase>()("ForeignDatabase", {
  tables: Schema.Array(Schema.String)
}) {
  override get message() {
    return (
      `DATABASE_URL: the database has tables that are not Till's (${this.tables.join(", ")}). ` +
      "Till needs a database of its own; without DATABASE_URL it brings one along."
    )
  }
}

export const newest = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))

/** How many foreign tables a message names, at most. */
const NAMED_MAX = 3

/**
 * Refuses a database with tables of another application, and changes nothing there: shops have a `DATABASE_URL` too,
 * and Till's tables would be created among theirs. Tables of extensions do not count. A journal is Till's if it has the
 * column `record`: another process may be creating Till's tables, and another application may have a table of that
 * name.
 */
const refuseForeign = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql<{ name: string }>`SELECT relname::text AS name FROM pg_class
    WHERE relkind IN ('r', 'p') AND relname <> 'effect_sql_migrations'
      AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
      AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('journal') AND attname = 'record')
      AND NOT EXISTS (SELECT FROM pg_depend
        WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')
    ORDER BY relname LIMIT ${NAMED_MAX}`
  if (found.length > 0) return yield* new ForeignDatabase({ tables: found.map(({ name }) => name) })
})

/** A restore into the database has begun and has not completed. */
export class UnfinishedRestore extends Schema.TaggedError<UnfinishedRestore>()("UnfinishedRestore", {}) {
  override get message() {
    return "A restore into this database has not come to its end: run `till restore` again."
  }
}

const refuseUnfinished = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [table] = yield* sql<{ found: boolean }>`SELECT to_regclass(${RESTORE_TABLE}) IS NOT NULL AS found`
  if (table?.found === true) return yield* new UnfinishedRestore()
})

/** Returns the newest migration's number; undefined for a new database. Refuses an unreleased one. */
const migrationOf = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [table] = yield* sql<{ found: boolean }>`SELECT to_regclass('effect_sql_migrations') IS NOT NULL AS found`
  if (table?.found !== true) return undefined
  const [row] = yield* sql<{ id: number | null; isUnreleased: boolean | null }>`SELECT max(migration_id)::int AS id,
    bool_or(migration_id = 1 AND name <> 'tables') AS "isUnreleased" FROM effect_sql_migrations`
  if (row?.isUnreleased === true) return yield* new UnreleasedDatabase()
  return row?.id ?? 0
})

/** Refuses a database that is too new, and logs why this start takes longer than others. */
const inspect = Effect.gen(function* () {
  const migration = yield* migrationOf
  if (migration === undefined) return
  if (migration > newest) return yield* new NewerDatabase({ migration })
  if (migration < newest) yield* log.info("The database is of an older Till; its tables are brought up to date")
})

/** The database needs a migration, and a command that only reads must not run it. */
export class OlderDatabase extends Schema.TaggedError<OlderDatabase>()("OlderDatabase", { migration: Schema.Int }) {
  override get message() {
    return (
      `The database is of an older Till (migration ${this.migration}; this one works on ${newest}): ` +
      "start this Till on it first, or use that one."
    )
  }
}

/** The tables cannot be created or migrated: the role lacks a privilege, or a setting prevents it. */
export class TablesUnavailable extends Schema.TaggedError<TablesUnavailable>()("TablesUnavailable", {
  cause: Schema.Defect()
}) {
  override get message() {
    return `The tables of the database cannot be made or brought up to date: ${innermostMessage(this.cause)}.`
  }
}

const migrated = PgMigrator.layer({ loader: PgMigrator.fromRecord(migrations) }).pipe(
  Layer.provide([Layer.effectDiscard(inspect), NodeServices.layer])
)

const unavailable = (cause: unknown) => Effect.fail(new TablesUnavailable({ cause }))

/** Migrates the tables, once, even if several processes start at the same time. */
export const layer = migrated.pipe(
  Layer.provide(Layer.effectDiscard(Effect.andThen(refuseUnfinished, refuseForeign))),
  Layer.catchTag(["SqlError", "MigrationError"], (cause) => Layer.effectContext(unavailable(cause)))
)

/** The same for a database that a restore has claimed. */
export const layerRestoring = migrated.pipe(
  Layer.catchTag(["SqlError", "MigrationError"], (cause) => Layer.effectContext(unavailable(cause)))
)

/** Returns the number of the newest migration; fails unless the tables are this Till's. Changes nothing. */
export const requireToday = Effect.gen(function* () {
  yield* refuseUnfinished
  const migration = (yield* migrationOf) ?? 0
  if (migration > newest) return yield* new NewerDatabase({ migration })
  if (migration < newest) return yield* new OlderDatabase({ migration })
  return migration
}).pipe(Effect.catchTag("SqlError", unavailable))
