/** A report on an account's storage. It reads a bounded number of rows, and of other accounts only the size. */
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import { bigint } from "./Rows.ts"

export interface StorageReport {
  readonly version: string
  /** The database on the server's disk, with all accounts. */
  readonly database_bytes: number
  readonly records: number
  /** An estimate: the number of records times the average size of the newest ones. */
  readonly record_bytes: number
  /** Records that are not in the views yet. */
  readonly lag_records: number
  /** Pending deliveries, `PENDING_MAX` at most, and those of them that are due. */
  readonly pending: number
  readonly due: number
  /** When the first of the due ones became due, by the wall clock; null if none is due. */
  readonly due_since: Millis | null
}

export const PENDING_MAX = 10_000
/** How many of the newest records the average size is of. */
const MEASURED_MAX = 1000

export const storageReport = (
  account: AccountId,
  now: Millis
): Effect.Effect<StorageReport, SqlError.SqlError, PgClient.PgClient> =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const [row] = yield* sql<Omit<StorageReport, "record_bytes"> & { readonly average: number }>`SELECT
        current_setting('server_version') AS version,
        pg_database_size(current_database())::float8 AS database_bytes,
        coalesce(newest, 0)::float8 AS records,
        (coalesce(newest, 0) - coalesce(projected, 0))::float8 AS lag_records,
        average, pending, due, due_since
      FROM
        (SELECT (SELECT version FROM journal WHERE account = ${account} ORDER BY version DESC LIMIT 1) AS newest,
          (SELECT version FROM checkpoints WHERE account = ${account}) AS projected) AS standing,
        (SELECT coalesce(avg(octet_length(record)), 0)::float8 AS average FROM (
          SELECT record FROM journal WHERE account = ${account} ORDER BY version DESC LIMIT ${MEASURED_MAX}
        ) AS measured) AS sizes,
        (SELECT count(*)::int AS pending, (count(*) FILTER (WHERE due_at <= ${bigint(now)}))::int AS due,
          (min(due_at) FILTER (WHERE due_at <= ${bigint(now)}))::float8 AS due_since FROM (
          SELECT due_at FROM deliveries WHERE account = ${account} AND state = 'pending' LIMIT ${PENDING_MAX}
        ) AS waiting) AS queue`
    const { average, ...standing } = row!
    return { ...standing, record_bytes: Math.round(average * standing.records) }
  })
