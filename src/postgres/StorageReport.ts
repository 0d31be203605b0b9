/** A report on an account's storage. It reads a bounded number of rows, and of other accounts only the size. */
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import { bigint } from "./Rows.ts"

interface Row {
  readonly version: string
  readonly database_bytes: number
  readonly records: number
  /** Average size of the newest records. */
  readonly average: number
  readonly lag_records: number
  readonly pending: number
  readonly due: number
  readonly due_since: Millis | null
}

/** Pending deliveries are counted up to this number. */
const PENDING_MAX = 10_000
/** How many of the newest records the average size is of. */
const MEASURED_MAX = 1000

export const storageReport = (account: AccountId, now: Millis) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const [row] = yield* sql<Row>`SELECT
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
