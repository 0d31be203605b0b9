/** A report of the runners, their partitions and the views' lag, read from the tables alone. */
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { type Partition, PARTITIONS } from "../engine/process/Placement.ts"

export interface RunnerReport {
  /** URL at which other runners reach it. */
  readonly url: string
  readonly version: string
  /** Start, in Unix milliseconds like all times here. */
  readonly since: number
  /** Time since its locks were last confirmed, in milliseconds; null after it has released them. */
  readonly confirmed_millis_ago: number | null
  readonly healthy: boolean
  readonly leaving: boolean
  /** Lead of its clock over the database's, in milliseconds. */
  readonly clock_ahead_millis: number
  readonly partitions: ReadonlyArray<Partition>
}

export interface PartitionReport {
  readonly id: Partition
  /** Null while the partition moves or no runner serves it. */
  readonly url: string | null
  /** How often the partition has been assigned. */
  readonly epoch: number
  readonly since: number | null
  /** Records that are not yet in the views. */
  readonly lag_records: number
}

export interface Report {
  readonly runners: ReadonlyArray<RunnerReport>
  readonly partitions: ReadonlyArray<PartitionReport>
}

/** Age of a runner's own row after which it counts as gone; the row is written every ten seconds. */
const GONE_SECONDS = 25

type RunnerRow = Omit<RunnerReport, "partitions">
type PartitionRow = Omit<PartitionReport, "lag_records">

export const runners: Effect.Effect<Report["runners"], SqlError.SqlError, PgClient.PgClient> = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  return withPartitions(yield* runnersOf(sql), yield* placedOf(sql))
})

export const report: Effect.Effect<Report, SqlError.SqlError, PgClient.PgClient> = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const runners = yield* runnersOf(sql)
  const placed = yield* placedOf(sql)
  const lags = yield* lagsOf(sql)
  const rows = new Map(placed.map((row) => [row.id, row]))
  const partitions = Array.from({ length: PARTITIONS }, (_, id): PartitionReport => ({
    ...(rows.get(id) ?? { id, url: null, epoch: 0, since: null }),
    lag_records: lags.get(id) ?? 0
  }))
  return { runners: withPartitions(runners, partitions), partitions }
})

const withPartitions = (
  runners: ReadonlyArray<RunnerRow>,
  partitions: ReadonlyArray<PartitionRow>
): Report["runners"] =>
  runners.map((runner) => ({
    ...runner,
    partitions: partitions.filter(({ url }) => url === runner.url).map(({ id }) => id)
  }))

const placedOf = (sql: PgClient.PgClient) => sql<PartitionRow>`SELECT id, url, epoch::int AS epoch,
    (extract(epoch FROM since) * 1000)::float8 AS since FROM partitions ORDER BY id`

/** The library's addresses have no brackets around IPv6 addresses. */
const runnersOf = (sql: PgClient.PgClient) => sql<RunnerRow>`SELECT url, version,
    (extract(epoch FROM since) * 1000)::float8 AS since,
    (extract(epoch FROM now() - last_heartbeat::timestamp AT TIME ZONE 'UTC') * 1000)::float8 AS confirmed_millis_ago,
    coalesce(healthy, false) AS healthy, is_leaving AS leaving, ahead_millis AS clock_ahead_millis
  FROM runners LEFT JOIN cluster_runners ON 'https://' || address = translate(url, '[]', '')
  WHERE seen_at > now() - make_interval(secs => ${GONE_SECONDS}) ORDER BY url`

/** Lags by partition, computed in SQL like `partitionOf`. */
const lagsOf = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<{ id: number; lag: number }>`SELECT
        get_byte(sha256(convert_to(account, 'UTF8')), 0) & ${sql.literal(String(PARTITIONS - 1))} AS id,
        sum(newest - version)::float8 AS lag
      FROM (SELECT account, version, (
        SELECT j.version FROM journal j WHERE j.account = c.account ORDER BY j.version DESC LIMIT 1
      ) AS newest FROM checkpoints c) AS standing
      WHERE newest > version GROUP BY 1`,
    (rows) => new Map(rows.map(({ id, lag }) => [id, lag]))
  )
