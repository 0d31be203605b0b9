/** The view of deliveries in Postgres: its part of a projection, its lists, and the leases. */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import type { Fragment } from "effect/sql/Statement"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import type { DeliveryRow, DeliveryStep } from "../engine/views/Projection.ts"
import type { Attempt, DeliveryState } from "../engine/log/Record.ts"
import { deliveryId, type DueDelivery, type Views } from "../engine/views/Views.ts"
import { from } from "./ListsPostgres.ts"
import { bigint, bigints, execute, ints, PARTITION, placed, texts } from "./Rows.ts"

interface Row {
  readonly account: string
  readonly destination: string
  readonly id: string
  readonly event: string
  readonly event_version: bigint
  readonly version: bigint
  readonly at: bigint
  readonly state: DeliveryState
  readonly attempts: ReadonlyArray<Attempt>
  readonly next_attempt_at: bigint | null
  readonly due_at: bigint | null
}

const numberOrNull = (value: bigint | null): number | null => (value === null ? null : Number(value))

const toDelivery = (row: Row): DeliveryRow => ({
  account: row.account,
  destination: row.destination,
  id: row.id,
  event: row.event,
  eventVersion: Number(row.event_version),
  version: Number(row.version),
  at: Number(row.at),
  state: row.state,
  attempts: row.attempts,
  nextAttemptAt: numberOrNull(row.next_attempt_at),
  dueAt: numberOrNull(row.due_at)
})

/** The lease of new deliveries; `until` is 0 for none. */
export interface Lease {
  readonly until: Millis
  readonly now: Millis
}

/** Inserts new deliveries. A first attempt is due immediately, even if the clock has stepped back. */
export const insert =
  ({ now, until }: Lease) =>
  (sql: PgClient.PgClient, rows: ReadonlyArray<DeliveryRow>): Fragment =>
    sql`INSERT INTO deliveries (account, destination, id, event, event_version, version, at, state, attempts,
        next_attempt_at, due_at, wake_at)
      SELECT account, destination, id, event, event_version, version, at, state, attempts::jsonb,
        next_attempt_at, due_at,
        CASE WHEN attempts = '[]' THEN greatest(least(due_at, ${bigint(now)}), ${bigint(until)}) ELSE due_at END
      FROM unnest(${texts(rows.map((d) => d.account))}, ${texts(rows.map((d) => d.destination))},
        ${texts(rows.map((d) => d.id))}, ${texts(rows.map((d) => d.event))},
        ${bigints(rows.map((d) => d.eventVersion))}, ${bigints(rows.map((d) => d.version))},
        ${bigints(rows.map((d) => d.at))}, ${texts(rows.map((d) => d.state))},
        ${texts(rows.map((d) => JSON.stringify(d.attempts)))}, ${bigints(rows.map((d) => d.nextAttemptAt))},
        ${bigints(rows.map((d) => d.dueAt))})
        AS d (account, destination, id, event, event_version, version, at, state, attempts, next_attempt_at, due_at)
      WHERE (account IN (SELECT account FROM advanced)) IS TRUE`

/**
 * Updates rows whose state changes. If only the due time moves earlier, the lease stays. Rows are found by their keys:
 * `IS TRUE` keeps the planner off the partial indexes of pending rows, which it assumes to be empty until it has
 * statistics.
 */
export const move = (sql: PgClient.PgClient, steps: ReadonlyArray<DeliveryStep>): Fragment =>
  sql`UPDATE deliveries SET state = s.state, attempts = deliveries.attempts || s.attempt::jsonb,
      next_attempt_at = s.next_attempt_at, due_at = s.due_at,
      wake_at = CASE WHEN s.attempt = '[]' AND deliveries.wake_at > deliveries.due_at THEN deliveries.wake_at
        ELSE s.due_at END
    FROM unnest(${texts(steps.map((s) => s.account))}, ${texts(steps.map((s) => s.destination))},
      ${texts(steps.map((s) => s.id))}, ${bigints(steps.map((s) => s.after))},
      ${texts(steps.map((s) => JSON.stringify(s.attempt === null ? [] : [s.attempt])))},
      ${texts(steps.map((s) => s.state))},
      ${bigints(steps.map((s) => s.nextAttemptAt))}, ${bigints(steps.map((s) => s.dueAt))})
      AS s (account, destination, id, after, attempt, state, next_attempt_at, due_at)
    WHERE deliveries.account = s.account AND deliveries.destination = s.destination AND deliveries.id = s.id
      AND (deliveries.state = 'pending') IS TRUE AND jsonb_array_length(deliveries.attempts) = s.after
      AND (s.account IN (SELECT account FROM advanced)) IS TRUE`

export const cancel = (
  sql: PgClient.PgClient,
  account: AccountId,
  destinations: ReadonlyArray<string>,
  accepted: Fragment
): Fragment =>
  sql`, canceled AS (
    UPDATE deliveries SET state = 'canceled', next_attempt_at = NULL, due_at = NULL, wake_at = NULL
    WHERE account = ${account} AND destination = ANY(${texts(destinations)}) AND state = 'pending' AND ${accepted}
  )`

/** Moves pending deliveries earlier by the wall clock after the account's clock has advanced. Leases stay. */
export const advanceClock = (
  sql: PgClient.PgClient,
  account: AccountId,
  clock: Millis,
  canceled: ReadonlyArray<string>,
  accepted: Fragment
): Fragment =>
  sql`, nearer AS (
    UPDATE deliveries SET due_at = next_attempt_at - ${bigint(clock)},
      wake_at = CASE WHEN wake_at > due_at THEN wake_at
        WHEN attempts = '[]' THEN least(wake_at, next_attempt_at - ${bigint(clock)})
        ELSE next_attempt_at - ${bigint(clock)} END
    WHERE account = ${account} AND state = 'pending' AND destination <> ALL(${texts(canceled)}) AND ${accepted}
  )`

const COLUMNS = `account, destination, id, event, event_version, version, at, state, attempts, next_attempt_at, due_at`

export const scan = (sql: PgClient.PgClient, account: AccountId, after: string, limit: number) => {
  const [destination = "", id = ""] = after.split("/")
  return Effect.map(
    sql<Row>`SELECT ${sql.literal(COLUMNS)} FROM deliveries
      WHERE account = ${account} AND (destination, id) > (${destination}, ${id})
      ORDER BY destination, id LIMIT ${limit}`,
    (rows) => rows.map(toDelivery)
  )
}

export const reads = (
  sql: PgClient.PgClient
): Pick<Views["Service"], "deliveries" | "delivery" | "eventDeliveries" | "pendingDeliveries"> => ({
  deliveries: (account, query) =>
    execute(
      sql<Row>`SELECT ${sql.literal(COLUMNS)} FROM deliveries
        WHERE account = ${account} AND destination = ${query.destination} ${from(sql, query)} LIMIT ${query.limit}`,
      (rows) => rows.map(toDelivery)
    ),
  delivery: (account, destination, id) =>
    execute(
      sql<Row>`SELECT ${sql.literal(COLUMNS)} FROM deliveries
        WHERE account = ${account} AND destination = ${destination} AND id = ${id}`,
      ([row]) => row && toDelivery(row)
    ),
  eventDeliveries: (events, limit) =>
    execute(
      sql<Row & { position: bigint }>`SELECT position, found.*
        FROM unnest(${texts(events.map((e) => e.account))}, ${texts(events.map((e) => e.id))})
          WITH ORDINALITY AS wanted (of_account, of_event, position),
        LATERAL (
          SELECT ${sql.literal(COLUMNS)} FROM deliveries
          WHERE account = of_account AND event = of_event ORDER BY id DESC LIMIT ${limit}
        ) AS found
        ORDER BY position, id DESC`,
      (rows) => {
        const answers = events.map((): Array<DeliveryRow> => [])
        for (const row of rows) answers[Number(row.position) - 1]!.push(toDelivery(row))
        return answers
      }
    ),
  // A range of one state keeps the planner off the partial index of all pending rows: see `move`.
  pendingDeliveries: (events) =>
    execute(
      sql<{ position: bigint; pending: bigint }>`SELECT position, count(*) AS pending
        FROM unnest(${texts(events.map((e) => e.account))}, ${texts(events.map((e) => e.id))})
          WITH ORDINALITY AS wanted (account, event, position)
        JOIN deliveries USING (account, event) WHERE state BETWEEN 'pending' AND 'pending' GROUP BY position`,
      (rows) => placed(events.length, rows, ({ pending }) => Number(pending)).map((pending) => pending ?? 0)
    )
})

/** Each partition contributes up to this many times its share of the limit, if enough of its deliveries are due. */
const SHARES_MAX = 8

type Taken = Pick<Row, "account" | "destination" | "id" | "event" | "event_version" | "attempts">

export const leases = (
  sql: PgClient.PgClient
): Pick<Views["Service"], "takeDeliveries" | "nextDelivery" | "freeDeliveries"> => ({
  // Reads each partition by itself, so that pending deliveries of other partitions cost nothing.
  takeDeliveries: ({ busy, leasedUntil, limit, now, partitions }) =>
    execute(
      sql<Taken & { readonly due_at: bigint }>`WITH due AS MATERIALIZED (
          SELECT account, destination, id FROM unnest(${ints(partitions)}) AS p (partition), LATERAL (
            SELECT account, destination, id, wake_at FROM deliveries
            WHERE state = 'pending' AND ${sql.literal(PARTITION)} = p.partition AND wake_at <= ${bigint(now)}
              AND destination <> ALL(${texts(busy)})
            ORDER BY wake_at, id LIMIT ${Math.min(limit, SHARES_MAX * Math.ceil(limit / partitions.length))}
          ) AS d ORDER BY wake_at, id LIMIT ${limit}
        ), free AS MATERIALIZED (
          SELECT account, destination, id FROM due JOIN deliveries USING (account, destination, id)
          WHERE (state = 'pending') IS TRUE AND (wake_at <= ${bigint(now)}) IS TRUE
          FOR UPDATE OF deliveries SKIP LOCKED
        )
        UPDATE deliveries SET wake_at = ${bigint(leasedUntil)} FROM free
        WHERE deliveries.account = free.account AND deliveries.destination = free.destination
          AND deliveries.id = free.id
        RETURNING deliveries.account, deliveries.destination, deliveries.id, deliveries.event,
          deliveries.event_version, deliveries.attempts, deliveries.due_at`,
      (rows) =>
        rows
          .toSorted((a, b) => Number(a.due_at - b.due_at) || (deliveryId(a) < deliveryId(b) ? -1 : 1))
          .map(({ account, attempts, destination, event, event_version, id }): DueDelivery => ({
            account,
            id,
            destination,
            event,
            eventVersion: Number(event_version),
            attempt: attempts.length + 1
          }))
    ),
  nextDelivery: (busy, partitions) =>
    execute(
      sql<{ wake_at: bigint | null }>`SELECT min(wake_at) AS wake_at
        FROM unnest(${ints(partitions)}) AS p (partition), LATERAL (
          SELECT wake_at FROM deliveries
          WHERE state = 'pending' AND ${sql.literal(PARTITION)} = p.partition AND destination <> ALL(${texts(busy)})
          ORDER BY wake_at, id LIMIT 1
        ) AS d`,
      ([row]) => Number(row?.wake_at ?? Infinity)
    ),
  freeDeliveries: (partitions) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      // A first attempt is due immediately, even if the clock has stepped back since.
      const free = sql`CASE WHEN attempts = '[]' THEN least(due_at, ${bigint(now)}) ELSE due_at END`
      return execute(
        sql`UPDATE deliveries SET wake_at = ${free}
            WHERE state = 'pending' AND ${sql.literal(PARTITION)} = ANY(${ints(partitions)}) AND wake_at > ${free}`,
        () => undefined
      )
    })
})
