/** The views in Postgres. A projection is one statement, and so one transaction and one round trip. */
import { PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, Millis } from "../engine/Document.ts"
import type { EventRow, KeyRow, Projection, SubscriptionRow, Sweep } from "../engine/Projection.ts"
import type { ViewRow } from "../engine/Views.ts"
import { deliveryId, keyId, Views } from "../engine/Views.ts"
import { bigints, ints, texts } from "./Arrays.ts"
import * as DeliveriesPostgres from "./DeliveriesPostgres.ts"
import { storageFailure } from "./JournalPostgres.ts"
import * as ListsPostgres from "./ListsPostgres.ts"
import type { Sql, SqlDocument, SqlDocumentTexts, SqlTimer } from "./Rows.ts"
import { labelsText, placed, toDocument, toDocumentTexts, toEvent, toKey, toSubscription, toTimer } from "./Rows.ts"
import { makeWithin } from "./StatementLimit.ts"

export const layer: Layer.Layer<Views, never, PgClient.PgClient> = Layer.effect(
  Views,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const within = yield* makeWithin
    const single = reads(sql)
    const loaded = loads(sql)
    const listed = ListsPostgres.documents(sql)
    const deliveries = DeliveriesPostgres.reads(sql)
    const leases = DeliveriesPostgres.leases(sql)
    return Views.of({
      ...single,
      // What commands, activations and the fibers that never end wait for, or many requests at once. Other lists end with
      // their requests; what works on whole accounts may take as long as it needs.
      checkpoint: (account) => within(single.checkpoint(account)),
      documents: (addresses) => within(loaded.documents(addresses)),
      keys: (addresses) => within(loaded.keys(addresses)),
      timer: (address) => within(single.timer(address)),
      nextTimers: (limit) => within(single.nextTimers(limit)),
      isTimerDue: (account, now) => within(single.isTimerDue(account, now)),
      subscriptions: (account) => within(single.subscriptions(account)),
      ...listed,
      newest: (queries) => within(listed.newest(queries)),
      ...ListsPostgres.events(sql),
      holder: (id) => within(holder(sql, id)),
      ...deliveries,
      pendingDeliveries: (events) => within(deliveries.pendingDeliveries(events)),
      ...leases,
      takeDeliveries: (options) => within(leases.takeDeliveries(options)),
      nextDelivery: (busy) => within(leases.nextDelivery(busy)),
      apply: (projection, leasedUntil) => {
        const applied = apply(sql, projection, leasedUntil)
        return projection.sweep === null ? within(applied) : applied
      },
      expireKeys: (before, limit) => within(expireKeys(sql, PgTypes.int8(BigInt(before)), limit)),
      clear: (account) =>
        storageFailure(
          sql`WITH start AS (UPDATE checkpoints SET version = 0 WHERE account = ${account})
            ${wiped(sql, account)} SELECT`
        )
    })
  })
)

/**
 * Events, keys and deliveries are inserted without asking whether they are there: the checkpoint lets each record in once,
 * and every record's rows have primary keys of their own.
 *
 * `IS TRUE` makes Postgres look accounts up in a hash; without it, it would join, and go through all of them per row.
 */
const apply = (sql: PgClient.PgClient, projection: Projection, leasedUntil: Millis) => {
  const { checkpoints, documents, events, keys, subscriptionsSet, sweep, timersCleared, timersSet } = projection
  const statement = sql<{ account: AccountId }>`
    WITH advanced AS (
      UPDATE checkpoints SET version = step.to_version
      FROM unnest(${texts(checkpoints.map((c) => c.account))}, ${bigints(checkpoints.map((c) => c.from))},
        ${bigints(checkpoints.map((c) => c.to))}) AS step (account, from_version, to_version)
      WHERE checkpoints.account = step.account AND checkpoints.version = step.from_version
      RETURNING checkpoints.account
    ), documents AS (
      INSERT INTO objects (account, id, kind, version, document_at, document_length, hidden_at, hidden_length, labels)
      SELECT account, id, kind, version, document_at, document_length, hidden_at, hidden_length, labels::jsonb
      FROM unnest(${texts(documents.map((d) => d.account))}, ${texts(documents.map((d) => d.id))},
        ${texts(documents.map((d) => d.kind))}, ${bigints(documents.map((d) => d.version))},
        ${ints(documents.map((d) => d.documentSpan?.at ?? null))},
        ${ints(documents.map((d) => d.documentSpan?.length ?? null))},
        ${ints(documents.map((d) => d.hiddenSpan?.at ?? null))},
        ${ints(documents.map((d) => d.hiddenSpan?.length ?? null))},
        ${texts(documents.map(labelsText))})
        AS d (account, id, kind, version, document_at, document_length, hidden_at, hidden_length, labels)
      WHERE (account IN (SELECT account FROM advanced)) IS TRUE
      ON CONFLICT (account, id) DO UPDATE SET kind = excluded.kind, version = excluded.version,
        document_at = excluded.document_at, document_length = excluded.document_length,
        hidden_at = excluded.hidden_at, hidden_length = excluded.hidden_length, labels = excluded.labels
    ), happened AS (
      INSERT INTO events (account, id, type, version)
      SELECT * FROM unnest(${texts(events.map((e) => e.account))}, ${texts(events.map((e) => e.id))},
        ${texts(events.map((e) => e.type))}, ${bigints(events.map((e) => e.version))})
        AS e (account, id, type, version)
      WHERE (account IN (SELECT account FROM advanced)) IS TRUE
    ), answered AS (
      INSERT INTO idempotency (account, key, fingerprint, version, at)
      SELECT * FROM unnest(${texts(keys.map((k) => k.account))}, ${texts(keys.map((k) => k.key))},
        ${texts(keys.map((k) => k.fingerprint))}, ${bigints(keys.map((k) => k.version))},
        ${bigints(keys.map((k) => k.at))}) AS k (account, key, fingerprint, version, at)
      WHERE (account IN (SELECT account FROM advanced)) IS TRUE
    ), timed AS (
      INSERT INTO timers (account, id, name, version, due_at, wake_at)
      SELECT * FROM unnest(${texts(timersSet.map((t) => t.account))}, ${texts(timersSet.map((t) => t.id))},
        ${texts(timersSet.map((t) => t.name))}, ${bigints(timersSet.map((t) => t.version))},
        ${bigints(timersSet.map((t) => t.dueAt))}, ${bigints(timersSet.map((t) => t.wakeAt))})
        AS t (account, id, name, version, due_at, wake_at)
      WHERE (account IN (SELECT account FROM advanced)) IS TRUE
      ON CONFLICT (account, id) DO UPDATE SET name = excluded.name, version = excluded.version,
        due_at = excluded.due_at, wake_at = excluded.wake_at
    ), cleared AS (
      DELETE FROM timers USING unnest(${texts(timersCleared.map((t) => t.account))},
        ${texts(timersCleared.map((t) => t.id))}) AS t (account, id)
      WHERE timers.account = t.account AND timers.id = t.id AND (t.account IN (SELECT account FROM advanced)) IS TRUE
    )
    ${subscribed(sql, subscriptionsSet)} ${DeliveriesPostgres.applied(sql, projection, leasedUntil)}
    ${sweep === null ? sql`` : swept(sql, sweep)}
    SELECT account FROM advanced`
  return storageFailure(
    Effect.map(statement, (rows) => {
      const advanced = new Set(rows.map(({ account }) => account))
      return checkpoints.map(({ account }) => account).filter((account) => !advanced.has(account))
    })
  )
}

/** More parts of `apply`, for the projections that have them: most do not. */
const subscribed = (sql: PgClient.PgClient, rows: ReadonlyArray<SubscriptionRow>) =>
  rows.length === 0
    ? sql``
    : sql`, subscribed AS (
      INSERT INTO subscriptions (account, destination, types, version)
      SELECT account, destination, ARRAY(SELECT jsonb_array_elements_text(types::jsonb)), version
      FROM unnest(${texts(rows.map((s) => s.account))}, ${texts(rows.map((s) => s.destination))},
        ${texts(rows.map((s) => JSON.stringify(s.types)))}, ${bigints(rows.map((s) => s.version))})
        AS s (account, destination, types, version)
      WHERE (account IN (SELECT account FROM advanced)) IS TRUE
      ON CONFLICT (account, destination) DO UPDATE SET types = excluded.types, version = excluded.version
    )`

/** A sweep stands alone in its projection: no other part touches the same rows. */
const swept = (sql: PgClient.PgClient, { account, clock, unsubscribed, wiped: isWiped }: Sweep) => {
  const accepted = sql`${account} IN (SELECT account FROM advanced)`
  if (isWiped) return wiped(sql, account, accepted)
  const ended =
    unsubscribed.length === 0
      ? sql``
      : sql`, unsubscribed AS (
        DELETE FROM subscriptions
        WHERE account = ${account} AND destination = ANY(${texts(unsubscribed)}) AND ${accepted}
      ) ${DeliveriesPostgres.canceled(sql, account, unsubscribed, accepted)}`
  const moved =
    clock === null
      ? sql``
      : sql`, woken AS (
        UPDATE timers SET wake_at = due_at - ${PgTypes.int8(BigInt(clock))} WHERE account = ${account} AND ${accepted}
      ) ${DeliveriesPostgres.clockMoved(sql, account, clock, unsubscribed, accepted)}`
  return sql`${ended} ${moved}`
}

const expireKeys = (sql: PgClient.PgClient, before: PgTypes.Parameter, limit: number) =>
  storageFailure(
    Effect.map(
      sql<{ count: number }>`WITH expired AS (
          DELETE FROM idempotency
          WHERE ctid = ANY (ARRAY(SELECT ctid FROM idempotency WHERE at < ${before} LIMIT ${limit}))
          RETURNING 1
        ) SELECT count(*)::int AS count FROM expired`,
      ([row]) => row?.count ?? 0
    )
  )

/** Deletes all rows of an account. */
const wiped = (sql: PgClient.PgClient, account: AccountId, accepted = sql`true`) =>
  sql`, o AS (DELETE FROM objects WHERE account = ${account} AND ${accepted}),
      e AS (DELETE FROM events WHERE account = ${account} AND ${accepted}),
      t AS (DELETE FROM timers WHERE account = ${account} AND ${accepted}),
      i AS (DELETE FROM idempotency WHERE account = ${account} AND ${accepted}),
      s AS (DELETE FROM subscriptions WHERE account = ${account} AND ${accepted}),
      d AS (DELETE FROM deliveries WHERE account = ${account} AND ${accepted})`

/**
 * One look into the primary key per account: an index on the id alone would cost every write of every object. `EXISTS`
 * would be a join, and that may read all objects.
 */
const holder = (sql: PgClient.PgClient, id: string) =>
  storageFailure(
    Effect.map(
      sql<{ account: string }>`SELECT account FROM checkpoints c
        WHERE (SELECT true FROM objects o WHERE o.account = c.account AND o.id = ${id}) LIMIT 1`,
      ([row]) => row?.account
    )
  )

const reads = (
  sql: PgClient.PgClient
): Pick<
  Views["Service"],
  "checkpoint" | "behind" | "accounts" | "timer" | "nextTimers" | "isTimerDue" | "event" | "subscriptions" | "scan"
> => ({
  checkpoint: (account) =>
    storageFailure(
      Effect.map(
        sql<{ version: bigint }>`WITH made AS (
            INSERT INTO checkpoints (account, version) VALUES (${account}, 0) ON CONFLICT DO NOTHING RETURNING version
          ) SELECT version FROM made UNION ALL SELECT version FROM checkpoints WHERE account = ${account}`,
        ([row]) => Number(row?.version ?? 0)
      )
    ),
  behind: storageFailure(
    Effect.map(
      sql<{ account: string }>`SELECT account FROM checkpoints c WHERE EXISTS (
        SELECT FROM journal j WHERE j.account = c.account AND j.version > c.version)`,
      (rows) => rows.map(({ account }) => account)
    )
  ),
  timer: ({ account, id }) =>
    storageFailure(
      Effect.map(
        sql<SqlTimer>`SELECT account, id, name, version, due_at, wake_at FROM timers
          WHERE account = ${account} AND id = ${id}`,
        ([row]) => row && toTimer(row)
      )
    ),
  nextTimers: (limit) =>
    storageFailure(
      Effect.map(
        sql<SqlTimer>`SELECT account, id, name, version, due_at, wake_at FROM timers ORDER BY wake_at, id LIMIT ${limit}`,
        (rows) => rows.map(toTimer)
      )
    ),
  // In due order, so that what is not due is not read, however many timers there are.
  isTimerDue: (account, now) =>
    storageFailure(
      Effect.map(
        sql`SELECT 1 FROM timers WHERE account = ${account} AND wake_at <= ${PgTypes.int8(BigInt(now))}
          ORDER BY wake_at, id LIMIT 1`,
        (rows) => rows.length > 0
      )
    ),
  event: ({ account, id }) =>
    storageFailure(
      Effect.map(
        sql<Sql<EventRow>>`SELECT account, id, type, version FROM events WHERE account = ${account} AND id = ${id}`,
        ([row]) => row && toEvent(row)
      )
    ),
  subscriptions: (account) =>
    storageFailure(
      Effect.map(
        sql<Sql<SubscriptionRow>>`SELECT account, destination, types, version FROM subscriptions
          WHERE account = ${account}`,
        (rows) => rows.map(toSubscription)
      )
    ),
  accounts: storageFailure(
    Effect.map(sql<{ account: string }>`SELECT account FROM checkpoints WHERE version > 0`, (rows) =>
      rows.map(({ account }) => account)
    )
  ),
  scan: (account, table, after, limit) => storageFailure(scans(sql)[table](account, after, limit))
})

/** Asked by many requests at once. */
const loads = (sql: PgClient.PgClient): Pick<Views["Service"], "documents" | "keys"> => ({
  documents: (addresses) =>
    storageFailure(
      Effect.map(
        sql<SqlDocumentTexts & { position: bigint }>`
          SELECT position, objects.*,
            substring(record FROM document_at + 1 FOR document_length) AS document,
            substring(record FROM hidden_at + 1 FOR hidden_length) AS hidden
          FROM unnest(${texts(addresses.map((a) => a.account))}, ${texts(addresses.map((a) => a.id))})
            WITH ORDINALITY AS wanted (account, id, position)
          JOIN objects USING (account, id) LEFT JOIN journal USING (account, version)`,
        (rows) => placed(addresses.length, rows, toDocumentTexts)
      )
    ),
  keys: (addresses) =>
    storageFailure(
      Effect.map(
        // Written so that no index but the one by key fits. Of rows for one place, `placed` keeps the last.
        sql<Sql<KeyRow> & { position: bigint }>`SELECT position, i.account, i.key, fingerprint, version, at
          FROM unnest(${texts(addresses.map((a) => a.account))}, ${texts(addresses.map((a) => a.id))})
            WITH ORDINALITY AS wanted (account, key, position)
          JOIN idempotency i ON i.account || i.key = wanted.account || wanted.key AND i.key = wanted.key`,
        (rows) => placed(addresses.length, rows.toSorted(ascending), toKey)
      )
    )
})

const rowsOf = <Raw, Row extends ViewRow["row"]>(
  rows: Effect.Effect<ReadonlyArray<Raw>, SqlError.SqlError>,
  toRow: (raw: Raw) => Row,
  idOf: (row: Row) => string
) => Effect.map(rows, (raws) => raws.map(toRow).map((row): ViewRow => ({ id: idOf(row), row })))

/** Each table of the views in ascending order of id. */
const scans = (sql: PgClient.PgClient) => {
  return {
    documents: (account: AccountId, after: string, limit: number) =>
      rowsOf(
        sql<SqlDocument>`SELECT * FROM objects
          WHERE account = ${account} AND id > ${after} ORDER BY id LIMIT ${limit}`,
        toDocument,
        ({ id }) => id
      ),
    events: (account: AccountId, after: string, limit: number) =>
      rowsOf(
        sql<Sql<EventRow>>`SELECT account, id, type, version FROM events
          WHERE account = ${account} AND id > ${after} ORDER BY id LIMIT ${limit}`,
        toEvent,
        ({ id }) => id
      ),
    timers: (account: AccountId, after: string, limit: number) =>
      rowsOf(
        sql<SqlTimer>`SELECT account, id, name, version, due_at, wake_at FROM timers
          WHERE account = ${account} AND id > ${after} ORDER BY id LIMIT ${limit}`,
        toTimer,
        ({ id }) => id
      ),
    subscriptions: (account: AccountId, after: string, limit: number) =>
      rowsOf(
        sql<Sql<SubscriptionRow>>`SELECT account, destination, types, version FROM subscriptions
          WHERE account = ${account} AND destination > ${after} ORDER BY destination LIMIT ${limit}`,
        toSubscription,
        ({ destination }) => destination
      ),
    deliveries: (account: AccountId, after: string, limit: number) =>
      Effect.map(DeliveriesPostgres.scan(sql, account, after, limit), (rows) =>
        rows.map((row): ViewRow => ({ id: deliveryId(row), row }))
      ),
    keys: (account: AccountId, after: string, limit: number) =>
      rowsOf(
        sql<Sql<KeyRow>>`SELECT account, key, fingerprint, version, at FROM idempotency
          WHERE account = ${account} AND version > ${PgTypes.int8(BigInt(after))} ORDER BY version LIMIT ${limit}`,
        toKey,
        keyId
      )
  }
}

const ascending = (a: { readonly version: bigint }, b: { readonly version: bigint }) => Number(a.version - b.version)
