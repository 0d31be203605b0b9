/**
 * Metrics that are read at an interval, beside all requests. One statement reads those that only the database knows:
 * its size by table, webhooks and timers that are overdue, operations without an outcome, the newest anchor; while it
 * fails, they are absent. Backups and scrubs leave marks in the data folder.
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer } from "effect"
import { timeIn } from "../engine/log/Identifiers.ts"
import { innermostMessage } from "../engine/log/Journal.ts"
import { logOf } from "../engine/process/Log.ts"
import * as Loop from "../engine/process/Loop.ts"
import * as Metrics from "../engine/process/Metrics.ts"
import { findMark } from "./embedded/Marks.ts"
import { bigint, PARTITION } from "./Rows.ts"

const log = logOf("postgres")

const INTERVAL_MILLIS = 15_000
/** The longest wait for the database, in milliseconds. */
const READ_MILLIS_MAX = 5000
/** Rows that are counted; with more, the count is this number. */
const COUNTED_MAX = 10_000

const TABLE = { name: "till_database_table_bytes", description: "Disk space of a table with its indexes." }
const DELIVERIES = {
  name: "till_webhook_deliveries",
  description: `Pending deliveries: due now, or scheduled for later. Counted up to ${COUNTED_MAX}.`
}
const DELIVERY_AGE = {
  name: "till_webhook_oldest_due_seconds",
  description: "How long the delivery that is overdue the longest has been due; 0 without one."
}
const TIMERS = { name: "till_timers_overdue", description: `Timers that are due. Counted up to ${COUNTED_MAX}.` }
const TIMER_AGE = {
  name: "till_timer_oldest_due_seconds",
  description: "How long the timer that is overdue the longest has been due; 0 without one."
}
const OPERATIONS = {
  name: "till_operations_without_outcome",
  description: `Operations at payment processors without an outcome, by state. Counted up to ${COUNTED_MAX}.`
}
const OPERATION_AGE = {
  name: "till_operation_oldest_seconds",
  description: "How long ago the oldest operation without an outcome began, by state; 0 without one."
}
const ANCHOR = {
  name: "till_anchor_timestamp_seconds",
  description: "When the newest anchor was made, in Unix time. Absent before the first."
}
const BACKUP = {
  name: "till_backup_timestamp_seconds",
  description: "Until when the newest backup of this data folder goes, in Unix time. Absent before the first."
}
const SCRUB = {
  name: "till_scrub_completed_timestamp_seconds",
  description: "When the newest scrub of all accounts ended, in Unix time. Absent before the first."
}
const FAILED = {
  name: "till_storage_readings_failed_total",
  description: "How often the metrics that are read from the database could not be."
}

/** The states in which an operation has no outcome, or a person has to give it. The index has the same condition. */
const STATES = ["open", "unresolved", "decide"] as const

interface Operations {
  readonly state: string
  readonly mode: "live" | "test"
  readonly count: number
  /** The id of the oldest, which begins with its time. */
  readonly oldest: string
}

interface Standing {
  readonly operations: ReadonlyArray<Operations> | null
  readonly sizes: Readonly<Record<string, number>> | null
  readonly due: number
  readonly scheduled: number
  readonly delivery_wake_at: number | null
  readonly timers: number
  readonly timer_wake_at: number | null
  readonly anchor_at: number | null
}

const read = (sql: PgClient.PgClient, now: number) =>
  sql<Standing>`SELECT
    (SELECT json_object_agg(relname, pg_total_relation_size(oid)) FROM pg_class
      WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace) AS sizes,
    pending.due, pending.scheduled,
    (SELECT min(wake_at)::float8 FROM generate_series(0, 63) AS partition, LATERAL (
      SELECT wake_at FROM deliveries WHERE state = 'pending' AND ${sql.literal(PARTITION)} = partition
      ORDER BY wake_at LIMIT 1) AS first) AS delivery_wake_at,
    (SELECT count(*)::int FROM (SELECT FROM timers WHERE wake_at <= ${bigint(now)} LIMIT ${COUNTED_MAX}) AS overdue)
      AS timers,
    (SELECT wake_at::float8 FROM timers ORDER BY wake_at LIMIT 1) AS timer_wake_at,
    (SELECT json_agg(row_to_json(found)) FROM (
      SELECT state, mode, count(*)::int AS count, min(id) AS oldest
      FROM (SELECT id, labels ->> 'status' AS state, CASE WHEN account LIKE '%:live' THEN 'live' ELSE 'test' END AS mode
        FROM objects WHERE kind = 'operation' AND labels ->> 'status' IN ('open', 'unresolved', 'decide')
        ORDER BY id LIMIT ${COUNTED_MAX}) AS counted
      GROUP BY state, mode) AS found) AS operations,
    (SELECT at::float8 FROM anchors ORDER BY sequence DESC LIMIT 1) AS anchor_at
  FROM (SELECT (count(*) FILTER (WHERE wake_at <= ${bigint(now)}))::int AS due,
      (count(*) FILTER (WHERE wake_at > ${bigint(now)}))::int AS scheduled
    FROM (SELECT wake_at FROM deliveries WHERE state = 'pending' LIMIT ${COUNTED_MAX}) AS counted) AS pending`

const secondsSince = (at: number | null, now: number): number => (at === null ? 0 : Math.max(now - at, 0) / 1000)

/** The count and the time of the oldest for each mode and state. */
const operationsOf = ({ operations }: Standing) =>
  (["live", "test"] as const).flatMap((mode) =>
    STATES.map((state) => {
      const found = operations?.find((one) => one.mode === mode && one.state === state)
      return { mode, state, count: found?.count ?? 0, oldest: found === undefined ? null : timeIn(found.oldest) }
    })
  )

/** Reads the metrics as long as the layer lives. */
export const layer = (dataFolder: string): Layer.Layer<never, never, PgClient.PgClient> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const replace = yield* Metrics.readings()
      const countFailure = yield* Metrics.counter(FAILED)
      const fill = (standing: Standing | undefined, now: number) =>
        replace((set) => {
          const backup = findMark(dataFolder, "backup")
          if (backup !== undefined) set(BACKUP, {}, backup.at / 1000)
          const scrub = findMark(dataFolder, "scrub")
          if (scrub !== undefined) set(SCRUB, {}, scrub.at / 1000)
          if (standing === undefined) return
          for (const [table, bytes] of Object.entries(standing.sizes ?? {})) set(TABLE, { table }, bytes)
          set(DELIVERIES, { state: "due" }, standing.due)
          set(DELIVERIES, { state: "scheduled" }, standing.scheduled)
          set(DELIVERY_AGE, {}, secondsSince(standing.delivery_wake_at, now))
          set(TIMERS, {}, standing.timers)
          set(TIMER_AGE, {}, secondsSince(standing.timer_wake_at, now))
          for (const { count, mode, oldest, state } of operationsOf(standing)) {
            set(OPERATIONS, { mode, state }, count)
            set(OPERATION_AGE, { mode, state }, secondsSince(oldest, now))
          }
          if (standing.anchor_at !== null) set(ANCHOR, {}, standing.anchor_at / 1000)
        })
      const step = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const rows = yield* read(sql, now).pipe(
          Effect.timeout(READ_MILLIS_MAX),
          Effect.catch((error) => {
            countFailure()
            return Effect.as(log.warning("Metrics could not be read from the database", innermostMessage(error)), [])
          })
        )
        fill(rows[0], now)
      })
      yield* step
      yield* Effect.forkScoped(Loop.forever("reading of metrics", Effect.andThen(Effect.sleep(INTERVAL_MILLIS), step)))
    })
  )
