/**
 * The tables. `journal` is the truth; all others are views of it and could be dropped and rebuilt.
 *
 * Every key starts with the account, which is the shard. Ids compare by byte (`COLLATE "C"`): their order is the order
 * of creation. Records are bytes, not `jsonb`, because exactly they are hashed, and served: of a document, `objects`
 * only says where in a record it lies.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { PgMigrator } from "@effect/sql-pg"
import { Clock, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { innermostMessage } from "../engine/log/Journal.ts"
import { idOf, nextSequence } from "../engine/log/Identifiers.ts"
import { requireNoOlder, RESTORE_TABLE } from "./Database.ts"

const statements = (...texts: ReadonlyArray<string>) =>
  SqlClient.SqlClient.use((sql) => Effect.forEach(texts, (text) => sql.unsafe(text), { discard: true }))

/** `ANALYZE` keeps so many of a column's most frequent values, and as many again to tell how they spread. */
const statistics = (relation: string, targets: Readonly<Record<string, number>>) =>
  `ALTER ${relation} ${Object.entries(targets)
    .map(([column, target]) => `ALTER COLUMN ${column} SET STATISTICS ${target}`)
    .join(", ")}`

/**
 * Any number of objects may belong to a customer or a product, so lists of those need them in order. No two accounts
 * have an owner of the same id.
 */
const objectsByOwner = ["customer", "product"].flatMap((owner) => [
  `CREATE INDEX objects_by_${owner} ON objects (((labels ->> '${owner}') COLLATE "C"), id)
    WHERE (labels ->> '${owner}') COLLATE "C" IS NOT NULL`,
  statistics(`INDEX objects_by_${owner}`, { 1: 0 })
])

/** Every look-up reads the list of pending entries from end to end, so it is kept short. */
const objectsByLabel = `CREATE INDEX objects_by_label ON objects USING gin (labels jsonb_path_ops)
  WITH (gin_pending_list_limit = 64) WHERE labels IS NOT NULL`

/** Ids that are made by an account's clock so long after a migration count as made before it: clocks may disagree. */
const CLOCKS_DISAGREE_MILLIS = 24 * 3600 * 1000

const LINK = `left(id, 3) IN ('cs_', 'pi_') AND length(id) = 27`

const isOlderLink = (end: string): string =>
  `CREATE OR REPLACE FUNCTION is_older_link(id text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT ${LINK} AND right(id, 24) COLLATE "C" <= '${end}' $$`

/**
 * Ids up to this one are found without the number of their account. A backup takes it along: no record says it, and a
 * new database would take none of them for older.
 */
export const olderLinks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ source: string }>`SELECT prosrc AS source FROM pg_proc
    WHERE proname = 'is_older_link' AND pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())`
  return /<= '([0-9A-Za-z]*)'/.exec(row?.source ?? "")?.[1] ?? ""
})

/** Says it to a database that has no objects yet. */
export const setOlderLinks = (end: string) => SqlClient.SqlClient.use((sql) => sql.unsafe(isOlderLink(end)))

/**
 * Indexes by their ids alone the sessions and PaymentIntents whose ids carry no number. They are told by the time in
 * their ids, up to now or to the latest of them: the clock of a test environment may be ahead. A new database has none:
 * there, what is made on its first day would be indexed for nothing.
 */
const indexOlderLinks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [latest] = yield* sql.unsafe<{ id: string | null }>(
    `SELECT max(right(id, 24)) AS id FROM objects WHERE ${LINK}`
  )
  const now = idOf("", nextSequence(0, (yield* Clock.currentTimeMillis) + CLOCKS_DISAGREE_MILLIS)).slice(1)
  const accounts = yield* sql.unsafe(`SELECT FROM checkpoints LIMIT 1`)
  const end = accounts.length === 0 ? "" : [now, latest?.id ?? ""].toSorted().at(-1)!
  yield* sql.unsafe(isOlderLink(end))
  yield* sql.unsafe(`CREATE INDEX objects_older_links ON objects (id) WHERE is_older_link(id)`)
})

export const migrations = {
  "0001_engine": statements(
    // Records stay in line and uncompressed up to 8 KB: they are written once.
    `CREATE TABLE journal (
      account text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      hash text COLLATE "C" NOT NULL,
      record text COLLATE "C" NOT NULL,
      PRIMARY KEY (account, version)
    ) WITH (toast_tuple_target = 8160)`,
    `ALTER TABLE journal ALTER COLUMN record SET STORAGE EXTERNAL`,
    `CREATE TABLE checkpoints (
      account text COLLATE "C" PRIMARY KEY,
      version bigint NOT NULL
    ) WITH (fillfactor = 50)`,
    `CREATE TABLE objects (
      account text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      kind text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      document text COLLATE "C",
      hidden text COLLATE "C",
      labels jsonb,
      PRIMARY KEY (account, id)
    ) WITH (fillfactor = 85, toast_tuple_target = 8160)`,
    objectsByLabel,
    `CREATE TABLE events (
      account text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      type text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      PRIMARY KEY (account, id)
    )`,
    `CREATE INDEX events_by_type ON events (account, type, id)`,
    `CREATE TABLE timers (
      account text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      name text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      due_at bigint NOT NULL,
      PRIMARY KEY (account, id)
    )`,
    `CREATE INDEX timers_by_due_at ON timers (due_at, id)`,
    `CREATE TABLE idempotency (
      account text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL,
      fingerprint text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      at bigint NOT NULL,
      PRIMARY KEY (account, key)
    )`,
    `CREATE INDEX idempotency_by_at ON idempotency USING brin (at)`
  ),
  "0002_deliveries": statements(
    // The column says when a timer is due by the wall clock: its account's own clock may be ahead.
    `ALTER TABLE timers ADD COLUMN wake_at bigint`,
    `UPDATE timers SET wake_at = due_at`,
    `ALTER TABLE timers ALTER COLUMN wake_at SET NOT NULL`,
    `DROP INDEX timers_by_due_at`,
    `CREATE INDEX timers_by_wake_at ON timers (wake_at, id)`,
    `CREATE TABLE subscriptions (
      account text COLLATE "C" NOT NULL,
      destination text COLLATE "C" NOT NULL,
      types text[] NOT NULL,
      version bigint NOT NULL,
      PRIMARY KEY (account, destination)
    )`,
    // `wake_at` is `due_at`, or the end of a lease, whichever is later. Leases are no part of the fold.
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
    `CREATE INDEX deliveries_pending ON deliveries (wake_at, id) WHERE state = 'pending'`,
    `CREATE INDEX deliveries_pending_by_event ON deliveries (account, event) WHERE state = 'pending'`
  ),
  "0003_keys_by_version": statements(
    // Clients choose keys at random: in a sorted index of whole keys, every insert would touch, and every checkpoint
    // log, a page of its own. A hash index of them is a quarter as large, and versions ascend.
    `ALTER TABLE idempotency DROP CONSTRAINT idempotency_pkey`,
    `ALTER TABLE idempotency ADD PRIMARY KEY (account, version)`,
    `CREATE INDEX idempotency_by_key ON idempotency USING hash ((account || key))`
  ),
  "0004_less_upkeep": statements(
    // Postgres would go over the whole of what was inserted since the last time, again and again while a table grows.
    // That serves scans of indexes alone, of which these tables see none, and spares the freezing of old rows nothing.
    ...["journal", "objects"].map((table) => `ALTER TABLE ${table} SET (autovacuum_vacuum_insert_threshold = -1)`),
    // Statistics only of what conditions ask for, and rough ones: most of the work is sorting whole records and
    // documents.
    statistics("TABLE journal", { account: 10, version: 10, hash: 0, record: 0 }),
    statistics("TABLE objects", { account: 10, id: 10, kind: 10, version: 0, document: 0, hidden: 0, labels: 10 }),
    statistics("TABLE events", { account: 10, id: 10, type: 10, version: 0 }),
    statistics("TABLE idempotency", { account: 10, key: 0, fingerprint: 0, version: 10, at: 10 }),
    statistics("INDEX idempotency_by_key", { 1: 0 }),
    statistics("TABLE deliveries", { version: 0, event_version: 0, attempts: 0 })
  ),
  "0005_by_owner": statements(...objectsByOwner),
  "0006_documents_in_journal": statements(
    // Bytes, because a slice of them is cut out without reading what is before it.
    `ALTER TABLE journal ALTER COLUMN record TYPE bytea USING convert_to(record, 'UTF8'),
      ALTER COLUMN record SET STORAGE EXTERNAL`,
    // A row says where in the record of its version the document lies, in bytes; nowhere, if it is deleted.
    `CREATE TABLE located WITH (fillfactor = 85, autovacuum_vacuum_insert_threshold = -1) AS
      SELECT account, id, kind, o.version,
        CASE WHEN document IS NOT NULL THEN start END AS document_at,
        length(convert_to(document, 'UTF8')) AS document_length,
        CASE WHEN hidden IS NOT NULL
          THEN start + length(convert_to(coalesce(document, 'null') || ',"hidden":', 'UTF8')) END AS hidden_at,
        length(convert_to(hidden, 'UTF8')) AS hidden_length,
        labels
      FROM objects o JOIN journal USING (account, version),
        LATERAL (
        SELECT convert_to('{"id":' || to_json(id) || ',"kind":"' || kind || '","document":', 'UTF8')
      ) AS h (head),
        LATERAL (SELECT position(head IN record) - 1 + length(head)) AS s (start)`,
    `DROP TABLE objects`,
    `ALTER TABLE located RENAME TO objects`,
    `ALTER TABLE objects ADD PRIMARY KEY (account, id),
      ALTER COLUMN kind SET NOT NULL, ALTER COLUMN version SET NOT NULL`,
    objectsByLabel,
    ...objectsByOwner,
    statistics("TABLE objects", { account: 10, id: 10, kind: 10, version: 0, labels: 10 }),
    statistics("TABLE objects", { document_at: 0, document_length: 0, hidden_at: 0, hidden_length: 0 })
  ),
  "0007_events_by_type": statements(
    // One index for all: events are written far more often than they are listed.
    `DROP INDEX events_by_type`,
    `ALTER TABLE events DROP CONSTRAINT events_pkey, ADD PRIMARY KEY (account, type, id)`
  ),
  "0008_formats": statements(
    // Documents that were written before there were formats are in the first.
    `ALTER TABLE objects ADD COLUMN format int NOT NULL DEFAULT 1`,
    statistics("TABLE objects", { format: 0 })
  ),
  "0009_timers_by_account": statements(
    // An actor knows the timers that its account has next. The account may have a million of them.
    `CREATE INDEX timers_by_account ON timers (account, due_at, id)`
  ),
  "0010_account_numbers": Effect.andThen(
    // Ids that are found by themselves alone carry the number of their account. An account gets it when it is used.
    statements(
      `ALTER TABLE checkpoints ADD COLUMN number int`,
      `CREATE INDEX checkpoints_by_number ON checkpoints (number)`
    ),
    indexOlderLinks
  ),
  "0011_search": statements(
    `ALTER TABLE checkpoints ADD COLUMN ahead bigint NOT NULL DEFAULT 0`,
    // What a document is found by, as numbers of terms; null for what nobody searches.
    `ALTER TABLE objects ADD COLUMN terms bigint[], ADD COLUMN measure bigint`,
    statistics("TABLE objects", { terms: 0, measure: 0 }),
    // Of the terms many repeat, so entries are cheapest many at a time. Every look-up reads those that are pending.
    `CREATE INDEX objects_by_term ON objects USING gin (terms) WITH (gin_pending_list_limit = 256)
      WHERE terms IS NOT NULL`,
    // Postgres does not know what documents are found by: the start makes such views anew from the journal.
    `ALTER TABLE checkpoints ADD COLUMN outdated boolean NOT NULL DEFAULT false`,
    `UPDATE checkpoints SET outdated = true`
  ),
  "0012_less_disk": statements(
    // What is no hash cannot be read, and stays a hash that does not match.
    `ALTER TABLE journal ALTER COLUMN hash TYPE bytea
      USING CASE WHEN hash ~ '^([0-9a-f]{2})*$' THEN decode(hash, 'hex') ELSE '' END`,
    // The record of a key says which request it was used for.
    `ALTER TABLE idempotency DROP COLUMN fingerprint`,
    // What changes in an object is in the index of terms, so a new row gains nothing by lying beside the old one.
    `ALTER TABLE objects RESET (fillfactor)`
  ),
  "0013_lease_holders": statements(
    // Who holds a lease, by the number of a process; null is nobody who could be asked.
    `ALTER TABLE deliveries ADD COLUMN holder int`,
    statistics("TABLE deliveries", { holder: 0 }),
    `CREATE TABLE lease_holders (holder int PRIMARY KEY)`
  ),
  "0014_anchors": statements(
    // Signed statements of how far the journals were: see `engine/verify/Anchors.ts`.
    `CREATE TABLE anchors (
      sequence bigint PRIMARY KEY,
      at bigint NOT NULL,
      heads text COLLATE "C" NOT NULL,
      signature text COLLATE "C" NOT NULL
    )`
  ),
  "0016_running_time": Effect.flatMap(Clock.currentTimeMillis, (now) =>
    statements(
      // One row at most. It has all bits of the time twice: one that was damaged would have Till forget all keys.
      `CREATE TABLE running_time (single boolean PRIMARY KEY DEFAULT true CHECK (single), at bigint NOT NULL,
        complement bigint NOT NULL)`,
      // Until now keys were remembered, and forgotten, by the wall clock.
      `INSERT INTO running_time (at, complement)
        SELECT at, ~at FROM (VALUES (${now}::bigint)) AS n (at) WHERE EXISTS (SELECT FROM checkpoints)`
    )
  ),
  "0017_checksums": statements(
    // Postgres does not know what a row was when it was written: the start makes the views anew from the journal.
    `ALTER TABLE objects ADD COLUMN checksum int`,
    ...["checkpoints", "timers", "subscriptions"].map((table) => `ALTER TABLE ${table} ADD COLUMN checksum int`),
    statistics("TABLE objects", { checksum: 0 }),
    `UPDATE checkpoints SET outdated = true`
  ),
  "0018_cluster": statements(
    // Where a partition is served; null while it moves. Owners write it, and it decides nothing: locks do.
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
    // As `SqlRunnerStorage` of `effect/cluster` would make them: it would do so at every start, and several at once.
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
  ),
  "0019_deliveries_by_partition": statements(
    // Whoever owns a partition looks for what is due in it, and must not meet what is pending in all others.
    String.raw`CREATE INDEX deliveries_pending_by_partition
      ON deliveries ((get_byte(sha256(decode(replace(account, '\', '\\'), 'escape')), 0) & 63), wake_at, id)
      WHERE state = 'pending'`,
    `DROP INDEX deliveries_pending`,
    // Leases are over when a partition is taken over, whoever has held them.
    `ALTER TABLE deliveries DROP COLUMN holder`,
    `DROP TABLE lease_holders`,
    statistics("INDEX deliveries_pending_by_partition", { 1: 10 })
  ),
  "0021_request_logs": statements(
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
    )`
  ),
  "0023_timers_by_partition": statements(
    // As 0019 for deliveries. Whoever serves all partitions goes on to find what is next in all of them at once.
    String.raw`CREATE INDEX timers_by_partition
      ON timers ((get_byte(sha256(decode(replace(account, '\', '\\'), 'escape')), 0) & 63), wake_at, id)`,
    statistics("INDEX timers_by_partition", { 1: 10 })
  ),
  "0024_tallies": statements(
    // The same few rows are changed again and again, in their places.
    `CREATE TABLE tallies (
      account text COLLATE "C" NOT NULL,
      hour int NOT NULL,
      key text COLLATE "C" NOT NULL,
      count bigint NOT NULL,
      amount bigint NOT NULL,
      PRIMARY KEY (account, hour, key)
    ) WITH (fillfactor = 50)`,
    // What the document counts as in them.
    `ALTER TABLE objects ADD COLUMN tallies text COLLATE "C"`,
    statistics("TABLE objects", { tallies: 0 }),
    // An older Till that was cut off meanwhile, and comes back, fails where it would move views without the sums.
    `ALTER TABLE checkpoints RENAME COLUMN ahead TO ids_ahead`,
    // Postgres does not know what documents count as: the start makes the views anew from the journal.
    `UPDATE checkpoints SET outdated = true`
  ),
  "0026_request_log_upkeep": statements(
    // Whoever asks for requests goes along the primary key, whatever else they are to be like. Most of an upkeep that
    // comes every minute went to what no plan looks at.
    `ALTER TABLE request_logs SET (autovacuum_vacuum_insert_threshold = -1)`,
    statistics("TABLE request_logs", { account: 10, id: 10, at: 0, method: 0, path: 0, status: 0, micros: 0 }),
    statistics("TABLE request_logs", { api_key: 0, api_version: 0, idempotency_key: 0, original_request: 0 }),
    statistics("TABLE request_logs", { error_type: 0, error_code: 0, error_param: 0, error_message: 0 }),
    statistics("TABLE request_logs", { objects: 0, sent: 0 })
  ),
  "0027_revisions": statements(
    // Which records have written a document before the one that its row names.
    `CREATE TABLE revisions (
      account text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      PRIMARY KEY (account, id, version)
    ) WITH (autovacuum_vacuum_insert_threshold = -1)`,
    statistics("TABLE revisions", { account: 10, id: 10, version: 0 }),
    // An event's deliveries in any state, of which the pending ones are counted without looking at the others.
    `CREATE INDEX deliveries_by_event ON deliveries (account, event, state)`,
    `DROP INDEX deliveries_pending_by_event`,
    // The rows do not say what was before them: the start makes the views anew from the journal.
    `UPDATE checkpoints SET outdated = true`
  ),
  "0028_declines_searched": statements(
    // Payments are found by why they were declined as well, which is for the journal to say.
    `UPDATE checkpoints SET outdated = true`
  ),
  "0029_payers_searched": statements(
    // The same of their payers' emails.
    `UPDATE checkpoints SET outdated = true`
  ),
  "0030_tallies_by_day": statements(
    // Sums of days beside those of hours: the start makes them anew, with all other views.
    `TRUNCATE tallies`,
    `ALTER TABLE tallies DROP CONSTRAINT tallies_pkey, ADD COLUMN hours int NOT NULL,
      ADD PRIMARY KEY (account, hours, hour, key)`,
    `UPDATE checkpoints SET outdated = true`
  )
}

/** The database was written by a newer Till. */
export class NewerDatabase extends Schema.TaggedError<NewerDatabase>()("NewerDatabase", { migration: Schema.Int }) {
  override get message() {
    return `The database was written by a newer Till (migration ${this.migration}; this one knows ${newest}).`
  }
}

/** The database is somebody else's. */
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

/** The newest migration that this Till knows. */
export const newest = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))

/** A message names so many of somebody else's tables. */
const NAMED_MAX = 3

/**
 * Refuses what is somebody else's, and changes nothing there: shops have a `DATABASE_URL` as well, and Till's tables
 * would be among theirs. Extensions may have brought tables along, and another process may be about to make Till's. A
 * journal is Till's by its columns: others have one of what they sell.
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

/** A restore into the database was begun and has not come to its end. */
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

/** The newest migration that the database has had; undefined for a new one. */
const migrationOf = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [table] = yield* sql<{ found: boolean }>`SELECT to_regclass('effect_sql_migrations') IS NOT NULL AS found`
  if (table?.found !== true) return undefined
  const [row] = yield* sql<{ id: number | null }>`SELECT max(migration_id)::int AS id FROM effect_sql_migrations`
  return row?.id ?? 0
})

/** A Till that knows no newer migration serves a database alone. */
const OLDER_ALONE = 18

/** Refuses what is too new, or in use by an older Till, and says why the start takes longer than others. */
const inspect = Effect.gen(function* () {
  const migration = yield* migrationOf
  if (migration === undefined) return
  if (migration > newest) return yield* new NewerDatabase({ migration })
  if (migration < OLDER_ALONE) yield* requireNoOlder
  if (migration < newest) yield* Effect.logInfo("The database is of an older Till; its tables are brought up to date")
})

/** The database is of an older Till, and who asks may not change it. */
export class OlderDatabase extends Schema.TaggedError<OlderDatabase>()("OlderDatabase", { migration: Schema.Int }) {
  override get message() {
    return (
      `The database is of an older Till (migration ${this.migration}; this one works on ${newest}): ` +
      "start this Till on it first, or use that one."
    )
  }
}

/** The tables cannot be made, or brought up to date: the role may not, or a setting is in the way. */
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

/** Brings the tables up to date, once, however many processes start at the same time. */
export const layer = migrated.pipe(
  Layer.provide(Layer.effectDiscard(Effect.andThen(refuseUnfinished, refuseForeign))),
  Layer.catchTag(["SqlError", "MigrationError"], (cause) => Layer.effectContext(unavailable(cause)))
)

/** The same for a database that a restore has made its own. */
export const layerRestoring = migrated.pipe(
  Layer.catchTag(["SqlError", "MigrationError"], (cause) => Layer.effectContext(unavailable(cause)))
)

/**
 * For whoever only reads: fails unless the tables are as this Till has them, and says which migration that is. Nothing
 * is changed; another Till may be serving them.
 */
export const requireToday = Effect.gen(function* () {
  yield* refuseUnfinished
  const migration = (yield* migrationOf) ?? 0
  if (migration > newest) return yield* new NewerDatabase({ migration })
  if (migration < newest) return yield* new OlderDatabase({ migration })
  return migration
}).pipe(Effect.catchTag("SqlError", unavailable))
