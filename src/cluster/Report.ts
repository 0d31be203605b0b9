/**
 * What the tables say of an installation's runners, for whoever runs it: who lives, what each serves, and how far the
 * views are behind the journal. It is read beside the runners and asks none of them.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Partition } from "../engine/process/Placement.ts"
import { PARTITIONS } from "../engine/process/Placement.ts"

export interface RunnerReport {
  /** Where other runners reach it. */
  readonly url: string
  readonly version: string
  /** Unix milliseconds, as all times here. */
  readonly since: number
  /** So long ago its locks were last confirmed, in milliseconds; null once it has left them. */
  readonly confirmed_millis_ago: number | null
  readonly healthy: boolean
  readonly leaving: boolean
  /** By so much its clock was ahead of the database's, in milliseconds. */
  readonly clock_ahead_millis: number
  readonly partitions: ReadonlyArray<Partition>
}

export interface PartitionReport {
  readonly id: Partition
  /** Null while it moves, or nobody serves it. */
  readonly url: string | null
  /** So many times it has come to a runner. */
  readonly epoch: number
  readonly since: number | null
  /** Records that are not in the views yet. */
  readonly lag_records: number
}

export interface Report {
  readonly runners: ReadonlyArray<RunnerReport>
  readonly partitions: ReadonlyArray<PartitionReport>
}

/** A runner writes of itself every ten seconds; one that has not for so long is gone. */
const GONE_SECONDS = 25

type RunnerRow = Omit<RunnerReport, "partitions">
type PartitionRow = Omit<PartitionReport, "lag_records">

/** The runners that live, with what each serves. */
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

/** The library's addresses have no brackets around those of version 6. */
const runnersOf = (sql: PgClient.PgClient) => sql<RunnerRow>`SELECT url, version,
    (extract(epoch FROM since) * 1000)::float8 AS since,
    (extract(epoch FROM now() - last_heartbeat::timestamp AT TIME ZONE 'UTC') * 1000)::float8 AS confirmed_millis_ago,
    coalesce(healthy, false) AS healthy, is_leaving AS leaving, ahead_millis AS clock_ahead_millis
  FROM runners LEFT JOIN cluster_runners ON 'https://' || address = translate(url, '[]', '')
  WHERE seen_at > now() - make_interval(secs => ${GONE_SECONDS}) ORDER BY url`

/** By the partition as `partitionOf` says it. */
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
