/** The views in Postgres: reading and clearing. `ProjectionPostgres.ts` applies projections. */
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { EVENT_PREFIX } from "../engine/actor/Transaction.ts"
import { ofCheckpoint } from "../engine/log/Checksum.ts"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import { idAt } from "../engine/log/Identifiers.ts"
import type { StorageFailure } from "../engine/log/Journal.ts"
import { changedRecord, type JournalCorrupt } from "../engine/log/Record.ts"
import type { EventRow, KeyRow } from "../engine/views/Projection.ts"
import { tallyId } from "../engine/log/Tallies.ts"
import {
  deliveryId,
  eventId,
  keyId,
  revisionId,
  type Standing,
  type TimerCount,
  type ViewRow,
  Views
} from "../engine/views/Views.ts"
import * as DeliveriesPostgres from "./DeliveriesPostgres.ts"
import * as ListsPostgres from "./ListsPostgres.ts"
import * as ProjectionPostgres from "./ProjectionPostgres.ts"
import { PRIME } from "./ProjectionPostgres.ts"
import * as RevisionsPostgres from "./RevisionsPostgres.ts"
import * as SearchPostgres from "./SearchPostgres.ts"
import * as TalliesPostgres from "./TalliesPostgres.ts"
import {
  bigint,
  cut,
  execute,
  ints,
  PARTITION,
  placed,
  type Sql,
  type SqlDocumentTexts,
  type SqlProjectedDocument,
  type SqlSubscription,
  type SqlTimer,
  storageFailure,
  texts,
  toDocumentTexts,
  toEvent,
  toKey,
  toProjectedDocument,
  toSubscription,
  toTimer
} from "./Rows.ts"
import { makeWithin } from "./StatementLimit.ts"
import { noting } from "./WritingPostgres.ts"

const TIMER_COLUMNS = `account, id, name, version, due_at, wake_at, checksum`

export const layer: Layer.Layer<Views, never, PgClient.PgClient> = Layer.effect(
  Views,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const { within } = yield* makeWithin
    const noted = noting(sql, "views")
    const single = { ...reads(sql), ...timerReads(sql) }
    const loaded = loads(sql)
    const numbers = numbersOf(sql)
    const listed = ListsPostgres.documents(sql)
    const deliveries = DeliveriesPostgres.reads(sql)
    const clock = yield* Clock.Clock
    const searchDepths = yield* SearchPostgres.SearchDepths
    const leases = DeliveriesPostgres.leases(sql)
    return Views.of({
      ...single,
      // The reads `within` the limit are those that commands, activations, permanent fibers or many requests wait for.
      // Other lists end with their requests; work on whole accounts has no limit.
      checkpoint: (account) => within(single.checkpoint(account)),
      documents: (addresses) => within(loaded.documents(addresses)),
      keys: (addresses) => within(loaded.keys(addresses)),
      timers: (account, limit) => within(single.timers(account, limit)),
      nextTimers: (limit, except, partitions) => within(single.nextTimers(limit, except, partitions)),
      timersNamed: (...options) => within(single.timersNamed(...options)),
      timerCounts: (name) => within(single.timerCounts(name)),
      subscriptions: (account) => within(single.subscriptions(account)),
      ...listed,
      search: SearchPostgres.search(sql, searchDepths),
      revisions: RevisionsPostgres.read(sql),
      tallies: TalliesPostgres.read(sql),
      newest: (queries) => within(listed.newest(queries)),
      ...ListsPostgres.events(sql),
      keepNumber: (account, number) => within(numbers.keepNumber(account, number)),
      accountsNumbered: (number) => within(numbers.accountsNumbered(number)),
      accountsUnnumbered: (limit) => within(numbers.accountsUnnumbered(limit)),
      ...deliveries,
      pendingDeliveries: (events) => within(deliveries.pendingDeliveries(events)),
      ...leases,
      takeDeliveries: (options) => within(leases.takeDeliveries(options)),
      nextDelivery: (busy, partitions) => within(leases.nextDelivery(busy, partitions)),
      apply: (projection, leasedUntil) => {
        const lease = { until: leasedUntil, now: clock.currentTimeMillisUnsafe() }
        const applied = ProjectionPostgres.apply(sql, projection, lease)
        return noted(projection.sweep === null ? within(applied) : applied)
      },
      runningTime: (now) => within(runningTime(sql, now)),
      keepRunningTime: (at) => within(keepRunningTime(sql, at)),
      expireKeys: (before, limit) => within(expireKeys(sql, before, limit)),
      expireEvents: (account, before, limit) => within(expireEvents(sql, account, before, limit)),
      clear: (account) =>
        storageFailure(
          sql`WITH start AS (${resetCheckpoint(sql, account)}) ${ProjectionPostgres.deleteRows(sql, account)} SELECT`
        ),
      clearOutdated: (account) =>
        storageFailure(
          sql`WITH start AS (${resetCheckpoint(sql, account)} AND outdated RETURNING account)
            ${ProjectionPostgres.deleteRows(sql, account, sql`EXISTS (SELECT FROM start)`)} SELECT`
        )
    })
  })
)

/** Reads the running time. If it is missing or damaged, the newest key has it. */
const runningTime = (sql: PgClient.PgClient, now: Millis) =>
  execute(
    sql<{ at: bigint }>`SELECT coalesce((SELECT at FROM running_time WHERE complement = ~at),
      (SELECT max(at) FROM idempotency), ${bigint(now)}) AS at`,
    ([row]) => Number(row!.at)
  )

const keepRunningTime = (sql: PgClient.PgClient, at: Millis) =>
  execute(
    sql<{ at: bigint }>`INSERT INTO running_time (at, complement) VALUES (${bigint(at)}, ~${bigint(at)}::bigint)
      ON CONFLICT (single) DO UPDATE SET (at, complement) = (SELECT kept, ~kept FROM (VALUES (CASE
        WHEN running_time.complement = ~running_time.at THEN greatest(running_time.at, excluded.at)
        ELSE excluded.at END)) AS k (kept)) RETURNING at`,
    ([row]) => Number(row!.at)
  )

const expireKeys = (sql: PgClient.PgClient, before: Millis, limit: number) =>
  execute(
    sql<{ count: number }>`WITH expired AS (
        DELETE FROM idempotency
        WHERE ctid = ANY (ARRAY(SELECT ctid FROM idempotency WHERE at < ${bigint(before)} LIMIT ${limit}))
        RETURNING 1
      ) SELECT count(*)::int AS count FROM expired`,
    ([row]) => row?.count ?? 0
  )

/** Builds the statement that sets a checkpoint to 0, so that the views are rebuilt from there. */
/**
 * Deletes old events, type after type along the primary key. The checkpoint comes first, as in a projection: a wipe
 * that deletes the same rows has locked it, or waits for it. The range of one state: see `pendingDeliveries`.
 */
const expireEvents = (sql: PgClient.PgClient, account: AccountId, before: Millis, limit: number) =>
  execute(
    sql<{ count: number }>`WITH RECURSIVE types (type) AS (
        SELECT (SELECT type FROM events WHERE account = ${account} ORDER BY type LIMIT 1)
        UNION ALL
        SELECT (
          SELECT e.type FROM events e WHERE e.account = ${account} AND e.type > types.type ORDER BY e.type LIMIT 1
        ) FROM types WHERE types.type IS NOT NULL
      ), old AS MATERIALIZED (
        SELECT found.* FROM types, LATERAL (
          SELECT e.type, e.id FROM events e
          WHERE e.account = ${account} AND e.type = types.type AND e.id < ${idAt(EVENT_PREFIX, before)}
            AND NOT EXISTS (SELECT FROM deliveries d WHERE d.account = ${account} AND d.event = e.id
              AND d.state BETWEEN 'pending' AND 'pending')
          ORDER BY e.id LIMIT ${limit}
        ) AS found LIMIT ${limit}
      ), marked AS (
        UPDATE checkpoints SET events_from = greatest(events_from, ${bigint(before)}),
          checksum = checksum # (events_from % ${sql.literal(String(PRIME))})::int
            # (greatest(events_from, ${bigint(before)}) % ${sql.literal(String(PRIME))})::int
        WHERE account = ${account} AND EXISTS (SELECT FROM old) RETURNING account
      ), sent AS (
        DELETE FROM deliveries d USING old
        WHERE d.account = ${account} AND d.event = old.id AND EXISTS (SELECT FROM marked)
      ), expired AS (
        DELETE FROM events e USING old
        WHERE e.account = ${account} AND e.type = old.type AND e.id = old.id AND EXISTS (SELECT FROM marked)
        RETURNING e.id
      ) SELECT count(*)::int AS count FROM expired`,
    ([row]) => row?.count ?? 0
  )

const resetCheckpoint = (sql: PgClient.PgClient, account: AccountId) =>
  sql`UPDATE checkpoints SET version = 0, ids_ahead = 0, events_from = 0, checksum = NULL, outdated = false
    WHERE account = ${account}`

/** Numbers of accounts. No statement locks more than one account, so there are no deadlocks. */
const numbersOf = (
  sql: PgClient.PgClient
): Pick<Views["Service"], "keepNumber" | "accountsNumbered" | "accountsUnnumbered"> => ({
  keepNumber: (account, number) =>
    execute(
      sql`UPDATE checkpoints SET number = ${number} WHERE account = ${account} AND number IS DISTINCT FROM ${number}`,
      () => undefined
    ),
  accountsNumbered: (number) =>
    execute(sql<{ account: string }>`SELECT account FROM checkpoints WHERE number = ${number}`, accountsOf),
  accountsUnnumbered: (limit) =>
    execute(sql<{ account: string }>`SELECT account FROM checkpoints WHERE number IS NULL LIMIT ${limit}`, accountsOf)
})

const accountsOf = (rows: ReadonlyArray<{ readonly account: string }>) => rows.map(({ account }) => account)

interface Checkpoint {
  readonly version: bigint
  readonly ids_ahead: bigint
  readonly events_from: bigint
  /** Null where nothing is projected. */
  readonly checksum: number | null
  readonly outdated: boolean
}

/** Reads a checkpoint and checks its checksum. An outdated one is not checked: the next start resets it. */
const standingOf = (
  account: AccountId,
  checkpoint: Effect.Effect<ReadonlyArray<Checkpoint>, SqlError.SqlError>
): Effect.Effect<Standing, StorageFailure | JournalCorrupt> =>
  Effect.flatMap(storageFailure(checkpoint), ([row]) => {
    if (row === undefined) return Effect.succeed({ projected: 0, ahead: 0, eventsFrom: 0 })
    const [projected, ahead, eventsFrom] = [Number(row.version), Number(row.ids_ahead), Number(row.events_from)]
    const checksum = projected === 0 ? null : ofCheckpoint(account, projected) ^ (ahead % PRIME) ^ (eventsFrom % PRIME)
    const isIntact = row.checksum === checksum && ahead >= 0 && eventsFrom >= 0
    if (row.outdated || isIntact) return Effect.succeed({ projected, ahead, eventsFrom })
    return Effect.fail(changedRecord(account, projected, "how far they are"))
  })

const reads = (
  sql: PgClient.PgClient
): Pick<
  Views["Service"],
  "checkpoint" | "standing" | "outdated" | "behind" | "accounts" | "subscriptions" | "scan"
> => ({
  checkpoint: (account) =>
    Effect.map(
      standingOf(
        account,
        sql<Checkpoint>`WITH made AS (
          INSERT INTO checkpoints (account, version) VALUES (${account}, 0) ON CONFLICT DO NOTHING RETURNING version
        ) SELECT version, 0::bigint AS ids_ahead, 0::bigint AS events_from, NULL::int AS checksum, false AS outdated
          FROM made
          UNION ALL SELECT version, ids_ahead, events_from, checksum, outdated FROM checkpoints WHERE account = ${account}`
      ),
      ({ projected }) => projected
    ),
  standing: (account) =>
    standingOf(
      account,
      sql<Checkpoint>`SELECT version, ids_ahead, events_from, checksum, outdated FROM checkpoints
        WHERE account = ${account}`
    ),
  outdated: execute(sql<{ account: string }>`SELECT account FROM checkpoints WHERE outdated`, accountsOf),
  behind: execute(
    sql<{ account: string }>`SELECT account FROM checkpoints c WHERE EXISTS (
      SELECT FROM journal j WHERE j.account = c.account AND j.version > c.version)`,
    (rows) => rows.map(({ account }) => account)
  ),
  subscriptions: (account) =>
    execute(
      sql<SqlSubscription>`SELECT account, destination, types, version, checksum FROM subscriptions
        WHERE account = ${account}`,
      (rows) => rows.map(toSubscription)
    ),
  accounts: execute(sql<{ account: string }>`SELECT account FROM checkpoints WHERE version > 0`, (rows) =>
    rows.map(({ account }) => account)
  ),
  scan: (account, table, after, limit) => storageFailure(scans(sql)[table](account, after, limit))
})

const timerReads = (
  sql: PgClient.PgClient
): Pick<Views["Service"], "timers" | "nextTimers" | "timersNamed" | "timerCounts"> => ({
  timers: (account, limit) =>
    execute(
      sql<SqlTimer>`SELECT ${sql.literal(TIMER_COLUMNS)} FROM timers
        WHERE account = ${account} ORDER BY due_at, id LIMIT ${limit}`,
      (rows) => rows.map(toTimer)
    ),
  // Reads each partition by itself, unless all are wanted, so that timers of other partitions cost nothing.
  nextTimers: (limit, except, partitions) =>
    execute(
      partitions === null
        ? sql<SqlTimer>`SELECT ${sql.literal(TIMER_COLUMNS)} FROM timers
            WHERE account <> ALL (${texts(except)}) ORDER BY wake_at, id LIMIT ${limit}`
        : sql<SqlTimer>`SELECT ${sql.literal(TIMER_COLUMNS)} FROM unnest(${ints(partitions)}) AS p (partition), LATERAL (
            SELECT * FROM timers WHERE ${sql.literal(PARTITION)} = p.partition AND account <> ALL (${texts(except)})
            ORDER BY wake_at, id LIMIT ${limit}
          ) AS t ORDER BY wake_at, id LIMIT ${limit}`,
      (rows) => rows.map(toTimer)
    ),
  timersNamed: (name, partitions, before) =>
    execute(
      partitions === null
        ? sql<SqlTimer>`SELECT ${sql.literal(TIMER_COLUMNS)} FROM timers
            WHERE wake_at < ${bigint(before)} AND name = ${name} ORDER BY wake_at, id`
        : sql<SqlTimer>`SELECT ${sql.literal(TIMER_COLUMNS)} FROM timers
            WHERE ${sql.literal(PARTITION)} = ANY (${ints(partitions)}) AND wake_at < ${bigint(before)}
            AND name = ${name} ORDER BY wake_at, id`,
      (rows) => rows.map(toTimer)
    ),
  timerCounts: (name) =>
    execute(
      sql<TimerCount>`SELECT account, count(*)::int AS count FROM timers WHERE name = ${name} GROUP BY account`,
      (rows) => rows
    )
})

/** Reads that combine the addresses of many requests. */
const loads = (sql: PgClient.PgClient): Pick<Views["Service"], "documents" | "keys"> => ({
  documents: (addresses) =>
    execute(
      sql<SqlDocumentTexts & { position: bigint }>`
        SELECT position, ${sql.literal(ListsPostgres.COLUMNS)},
          ${cut(sql, "document_at", "document_length")} AS document,
          ${cut(sql, "hidden_at", "hidden_length")} AS hidden
        FROM unnest(${texts(addresses.map((a) => a.account))}, ${texts(addresses.map((a) => a.id))})
          WITH ORDINALITY AS wanted (account, id, position)
        JOIN objects USING (account, id) LEFT JOIN journal USING (account, version)`,
      (rows) => placed(addresses.length, rows, toDocumentTexts)
    ),
  keys: (addresses) =>
    execute(
      // Written so that only the index by key fits. `placed` keeps the last of several rows of a key.
      sql<Sql<KeyRow> & { position: bigint }>`SELECT position, i.account, i.key, version, at
        FROM unnest(${texts(addresses.map((a) => a.account))}, ${texts(addresses.map((a) => a.id))})
          WITH ORDINALITY AS wanted (account, key, position)
        JOIN idempotency i ON i.account || i.key = wanted.account || wanted.key AND i.key = wanted.key`,
      (rows) => placed(addresses.length, rows.toSorted(ascending), toKey)
    )
})

const rowsOf = <Raw, Row extends ViewRow["row"]>(
  rows: Effect.Effect<ReadonlyArray<Raw>, SqlError.SqlError>,
  toRow: (raw: Raw) => Row,
  idOf: (row: Row) => string
) => Effect.map(rows, (raws) => raws.map(toRow).map((row): ViewRow => ({ id: idOf(row), row })))

const scans = (sql: PgClient.PgClient) => {
  return {
    documents: (account: AccountId, after: string, limit: number) =>
      rowsOf(
        sql<SqlProjectedDocument>`SELECT * FROM objects
          WHERE account = ${account} AND id > ${after} ORDER BY id LIMIT ${limit}`,
        toProjectedDocument,
        ({ id }) => id
      ),
    revisions: (account: AccountId, after: string, limit: number) =>
      Effect.map(RevisionsPostgres.scan(sql, account, after, limit), (rows) =>
        rows.map((row): ViewRow => ({ id: revisionId(row), row }))
      ),
    events: (account: AccountId, after: string, limit: number) => {
      const end = Math.max(after.lastIndexOf(" "), 0)
      const [type, id] = [after.slice(0, end), after.slice(end + 1)]
      return rowsOf(
        sql<Sql<EventRow>>`SELECT account, id, type, version FROM events
          WHERE account = ${account} AND (type, id) > (${type}, ${id}) ORDER BY type, id LIMIT ${limit}`,
        toEvent,
        eventId
      )
    },
    timers: (account: AccountId, after: string, limit: number) =>
      rowsOf(
        sql<SqlTimer>`SELECT account, id, name, version, due_at, wake_at, checksum FROM timers
          WHERE account = ${account} AND id > ${after} ORDER BY id LIMIT ${limit}`,
        toTimer,
        ({ id }) => id
      ),
    subscriptions: (account: AccountId, after: string, limit: number) =>
      rowsOf(
        sql<SqlSubscription>`SELECT account, destination, types, version, checksum FROM subscriptions
          WHERE account = ${account} AND destination > ${after} ORDER BY destination LIMIT ${limit}`,
        toSubscription,
        ({ destination }) => destination
      ),
    deliveries: (account: AccountId, after: string, limit: number) =>
      Effect.map(DeliveriesPostgres.scan(sql, account, after, limit), (rows) =>
        rows.map((row): ViewRow => ({ id: deliveryId(row), row }))
      ),
    tallies: (account: AccountId, after: string, limit: number) =>
      Effect.map(TalliesPostgres.scan(sql, account, after, limit), (rows) =>
        rows.map((row): ViewRow => ({ id: tallyId(row), row }))
      ),
    // From version 0 on, which no key has: a row that was changed to it must be found too.
    keys: (account: AccountId, after: string, limit: number) =>
      rowsOf(
        sql<Sql<KeyRow>>`SELECT account, key, version, at FROM idempotency
          WHERE account = ${account} AND version > ${bigint(after === "" ? -1 : Number(after))} ORDER BY version LIMIT ${limit}`,
        toKey,
        keyId
      )
  }
}

const ascending = (a: { readonly version: bigint }, b: { readonly version: bigint }) => Number(a.version - b.version)
