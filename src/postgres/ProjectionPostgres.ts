/** A projection in Postgres. It is one statement: one transaction and one round trip. */
import type { PgClient } from "@effect/sql-pg"
import type { Fragment } from "effect/sql/Statement"
import { ofCheckpoint } from "../engine/log/Checksum.ts"
import type { AccountId } from "../engine/log/Document.ts"
import type {
  EventRow,
  KeyRow,
  ProjectedDocument,
  Projection,
  SubscriptionRow,
  Sweep,
  TimerRow
} from "../engine/views/Projection.ts"
import { entriesText } from "../engine/log/Tallies.ts"
import * as DeliveriesPostgres from "./DeliveriesPostgres.ts"
import { bigint, bigints, execute, ints, labelsText, termsText, texts } from "./Rows.ts"
import * as RevisionsPostgres from "./RevisionsPostgres.ts"
import * as TalliesPostgres from "./TalliesPostgres.ts"

/** The checksum of a checkpoint includes `ids_ahead` and `events_from` modulo this prime. */
export const PRIME = 2_147_483_647

/**
 * Applies a projection. New documents, events, keys and deliveries are inserted without a check for existing rows: the
 * checkpoint admits each record once, and every record's rows have distinct primary keys. A part without rows is left
 * out, because Postgres would prepare it too.
 *
 * `IS TRUE` makes Postgres look accounts up in a hash table; without it, Postgres would join, and scan all accounts for
 * each row.
 */
export const apply = (sql: PgClient.PgClient, projection: Projection, lease: DeliveriesPostgres.Lease) => {
  const { checkpoints, sweep } = projection
  const part = <Row>(name: string, rows: ReadonlyArray<Row>, statement: Statement<Row>) =>
    rows.length === 0 ? sql`` : sql`, ${sql.literal(name)} AS (${statement(sql, rows)})`
  const ahead = sql`greatest(${sweep?.wiped === true ? sql`0` : sql`checkpoints.ids_ahead`}, step.ids_ahead)`
  const statement = sql<{ account: AccountId }>`
    WITH advanced AS (
      UPDATE checkpoints SET version = step.to_version, ids_ahead = ${ahead},
        checksum = step.checksum # (${ahead} % ${sql.literal(String(PRIME))})::int
          # (checkpoints.events_from % ${sql.literal(String(PRIME))})::int
      FROM unnest(${texts(checkpoints.map((c) => c.account))}, ${bigints(checkpoints.map((c) => c.from))},
        ${bigints(checkpoints.map((c) => c.to))}, ${bigints(checkpoints.map((c) => c.ahead))},
        ${ints(checkpoints.map((c) => ofCheckpoint(c.account, c.to)))})
        AS step (account, from_version, to_version, ids_ahead, checksum)
      WHERE checkpoints.account = step.account AND checkpoints.version = step.from_version
      RETURNING checkpoints.account
    )
    ${part("created", projection.documentsCreated, insertDocuments)}
    ${part("changed", projection.documentsChanged, upsertDocuments)}
    ${part("happened", projection.events, insertEvents)}
    ${part("answered", projection.keys, insertKeys)}
    ${part("timed", projection.timersSet, upsertTimers)}
    ${part("cleared", projection.timersCleared, deleteTimers)}
    ${part("subscribed", projection.subscriptionsSet, upsertSubscriptions)}
    ${part("delivered", projection.deliveriesMade, DeliveriesPostgres.insert(lease))}
    ${part("attempted", projection.deliverySteps, DeliveriesPostgres.move)}
    ${RevisionsPostgres.insert(sql, projection)}
    ${TalliesPostgres.update(sql, projection)}
    ${sweep === null ? sql`` : applySweep(sql, sweep)}
    SELECT account FROM advanced`
  return execute(statement, (rows) => {
    const advanced = new Set(rows.map(({ account }) => account))
    return checkpoints.map(({ account }) => account).filter((account) => !advanced.has(account))
  })
}

/** A statement for those rows of a projection whose accounts are in `advanced`. */
type Statement<Row> = (sql: PgClient.PgClient, rows: ReadonlyArray<Row>) => Fragment

const insertDocuments: Statement<ProjectedDocument> = (sql, rows) =>
  sql`INSERT INTO objects
      (account, id, kind, version, document_at, document_length, hidden_at, hidden_length,
        labels, format, term_numbers, measure, tallies, checksum)
    SELECT account, id, kind, version, document_at, document_length, hidden_at, hidden_length, labels::jsonb, format,
      terms::bigint[], measure, tallies, checksum
    FROM unnest(${texts(rows.map((d) => d.account))}, ${texts(rows.map((d) => d.id))},
      ${texts(rows.map((d) => d.kind))}, ${bigints(rows.map((d) => d.version))},
      ${ints(rows.map((d) => d.documentSpan?.at ?? null))}, ${ints(rows.map((d) => d.documentSpan?.length ?? null))},
      ${ints(rows.map((d) => d.hiddenSpan?.at ?? null))}, ${ints(rows.map((d) => d.hiddenSpan?.length ?? null))},
      ${texts(rows.map(labelsText))}, ${ints(rows.map((d) => d.format))},
      ${texts(rows.map(termsText))}, ${bigints(rows.map((d) => d.search?.measure ?? null))},
      ${texts(rows.map((d) => entriesText(d.tallies)))}, ${ints(rows.map((d) => d.checksum))})
      AS d (account, id, kind, version, document_at, document_length, hidden_at, hidden_length,
        labels, format, terms, measure, tallies, checksum)
    WHERE (account IN (SELECT account FROM advanced)) IS TRUE`

const upsertDocuments: Statement<ProjectedDocument> = (sql, rows) =>
  sql`${insertDocuments(sql, rows)}
    ON CONFLICT (account, id) DO UPDATE SET kind = excluded.kind, version = excluded.version,
      document_at = excluded.document_at, document_length = excluded.document_length,
      hidden_at = excluded.hidden_at, hidden_length = excluded.hidden_length,
      labels = excluded.labels, format = excluded.format, term_numbers = excluded.term_numbers,
      measure = excluded.measure, tallies = excluded.tallies, checksum = excluded.checksum`

const insertEvents: Statement<EventRow> = (sql, rows) =>
  sql`INSERT INTO events (account, id, type, version)
    SELECT * FROM unnest(${texts(rows.map((e) => e.account))}, ${texts(rows.map((e) => e.id))},
      ${texts(rows.map((e) => e.type))}, ${bigints(rows.map((e) => e.version))}) AS e (account, id, type, version)
    WHERE (account IN (SELECT account FROM advanced)) IS TRUE`

const insertKeys: Statement<KeyRow> = (sql, rows) =>
  sql`INSERT INTO idempotency (account, key, version, at)
    SELECT * FROM unnest(${texts(rows.map((k) => k.account))}, ${texts(rows.map((k) => k.key))},
      ${bigints(rows.map((k) => k.version))}, ${bigints(rows.map((k) => k.at))}) AS k (account, key, version, at)
    WHERE (account IN (SELECT account FROM advanced)) IS TRUE`

const upsertTimers: Statement<TimerRow> = (sql, rows) =>
  sql`INSERT INTO timers (account, id, name, version, due_at, wake_at, checksum)
    SELECT * FROM unnest(${texts(rows.map((t) => t.account))}, ${texts(rows.map((t) => t.id))},
      ${texts(rows.map((t) => t.name))}, ${bigints(rows.map((t) => t.version))},
      ${bigints(rows.map((t) => t.dueAt))}, ${bigints(rows.map((t) => t.wakeAt))}, ${ints(rows.map((t) => t.checksum))})
      AS t (account, id, name, version, due_at, wake_at, checksum)
    WHERE (account IN (SELECT account FROM advanced)) IS TRUE
    ON CONFLICT (account, id) DO UPDATE SET name = excluded.name, version = excluded.version,
      due_at = excluded.due_at, wake_at = excluded.wake_at, checksum = excluded.checksum`

const deleteTimers: Statement<Projection["timersCleared"][number]> = (sql, rows) =>
  sql`DELETE FROM timers USING unnest(${texts(rows.map((t) => t.account))}, ${texts(rows.map((t) => t.id))})
      AS t (account, id)
    WHERE timers.account = t.account AND timers.id = t.id AND (t.account IN (SELECT account FROM advanced)) IS TRUE`

const upsertSubscriptions: Statement<SubscriptionRow> = (sql, rows) =>
  sql`INSERT INTO subscriptions (account, destination, types, version, checksum)
    SELECT account, destination, ARRAY(SELECT jsonb_array_elements_text(types::jsonb)), version, checksum
    FROM unnest(${texts(rows.map((s) => s.account))}, ${texts(rows.map((s) => s.destination))},
      ${texts(rows.map((s) => JSON.stringify(s.types)))}, ${bigints(rows.map((s) => s.version))},
      ${ints(rows.map((s) => s.checksum))})
      AS s (account, destination, types, version, checksum)
    WHERE (account IN (SELECT account FROM advanced)) IS TRUE
    ON CONFLICT (account, destination) DO UPDATE SET types = excluded.types, version = excluded.version,
      checksum = excluded.checksum`

/** Builds the statements of a sweep, which is alone in its projection: no other part touches the same rows. */
const applySweep = (sql: PgClient.PgClient, { account, clock, unsubscribed, wiped }: Sweep) => {
  const accepted = sql`${account} IN (SELECT account FROM advanced)`
  if (wiped) return deleteRows(sql, account, accepted)
  const ended =
    unsubscribed.length === 0
      ? sql``
      : sql`, unsubscribed AS (
        DELETE FROM subscriptions
        WHERE account = ${account} AND destination = ANY(${texts(unsubscribed)}) AND ${accepted}
      ) ${DeliveriesPostgres.cancel(sql, account, unsubscribed, accepted)}`
  const advanced =
    clock === null
      ? sql``
      : sql`, woken AS (
        UPDATE timers SET wake_at = due_at - ${bigint(clock)} WHERE account = ${account} AND ${accepted}
      ) ${DeliveriesPostgres.advanceClock(sql, account, clock, unsubscribed, accepted)}`
  return sql`${ended} ${advanced}`
}

export const deleteRows = (sql: PgClient.PgClient, account: AccountId, accepted = sql`true`) =>
  sql`, o AS (DELETE FROM objects WHERE account = ${account} AND ${accepted}),
      r AS (DELETE FROM revisions WHERE account = ${account} AND ${accepted}),
      e AS (DELETE FROM events WHERE account = ${account} AND ${accepted}),
      t AS (DELETE FROM timers WHERE account = ${account} AND ${accepted}),
      i AS (DELETE FROM idempotency WHERE account = ${account} AND ${accepted}),
      s AS (DELETE FROM subscriptions WHERE account = ${account} AND ${accepted}),
      d AS (DELETE FROM deliveries WHERE account = ${account} AND ${accepted}),
      n AS (DELETE FROM tallies WHERE account = ${account} AND ${accepted})`
