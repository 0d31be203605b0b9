/** Revisions in Postgres: the records that wrote a document, except the newest, which is in the document's row. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { AccountId } from "../engine/log/Document.ts"
import type { Projection, RevisionRow } from "../engine/views/Projection.ts"
import { recordId, type Revision, revisionAt, type RevisionQuery } from "../engine/views/Views.ts"
import { bigint, bigints, execute, labelsText, type Sql, texts } from "./Rows.ts"

/**
 * Builds the part of a projection's statement that inserts revisions. The rows of changed documents are read as they
 * were before the statement; new documents have none. `ON CONFLICT DO NOTHING`: a row that was edited by hand must not
 * fail the projection.
 */
export const insert = (sql: PgClient.PgClient, { documentsChanged, revisions }: Projection) => {
  if (documentsChanged.length === 0 && revisions.length === 0) return sql``
  return sql`, revised AS (
    INSERT INTO revisions (account, id, version)
    SELECT account, id, version FROM (
      SELECT * FROM unnest(${texts(revisions.map((r) => r.account))}, ${texts(revisions.map((r) => r.id))},
        ${bigints(revisions.map((r) => r.version))}) AS r (account, id, version)
      UNION ALL
      SELECT account, id, version
      FROM unnest(${texts(documentsChanged.map((d) => d.account))}, ${texts(documentsChanged.map((d) => d.id))})
        AS d (account, id) JOIN objects USING (account, id)
    ) AS r
    WHERE (account IN (SELECT account FROM advanced)) IS TRUE
    ON CONFLICT DO NOTHING
  )`
}

/** Reads `limit` records of each document: the nearest `limit` of all are among them. */
export const read =
  (sql: PgClient.PgClient) =>
  (account: AccountId, { ids, labels, limit, newerThan, olderThan }: RevisionQuery) => {
    const [behind, before] = [Number(newerThan ?? 0), Number(olderThan ?? Number.MAX_SAFE_INTEGER)]
    const between = sql`version > ${bigint(behind)} AND version < ${bigint(before)}`
    const nearest = sql`ORDER BY version ${sql.literal(newerThan === undefined ? "DESC" : "ASC")} LIMIT ${limit}`
    const labelled = labelsText({ labels: labels ?? {} })
    // By the same index as lists with rare labels.
    const alike =
      labelled === null
        ? sql``
        : sql`UNION SELECT id FROM objects WHERE account || '' = ${account} AND labels @> ${labelled}::jsonb`
    return execute(
      sql<{ version: bigint; documents: ReadonlyArray<string> }>`
        WITH wanted (id) AS (SELECT unnest(${texts(ids)}) ${alike})
        SELECT version, array_agg(id ORDER BY id) AS documents FROM (
          SELECT id, version FROM wanted JOIN objects USING (id) WHERE account = ${account} AND ${between}
          UNION ALL
          SELECT wanted.id, version FROM wanted, LATERAL (
            SELECT version FROM revisions r WHERE account = ${account} AND r.id = wanted.id AND ${between} ${nearest}
          ) AS earlier
        ) AS found GROUP BY version ${nearest}`,
      (rows) => rows.map(({ documents, version }): Revision => ({ id: recordId(Number(version)), documents }))
    )
  }

export const scan = (sql: PgClient.PgClient, account: AccountId, after: string, limit: number) => {
  const { id, version } = revisionAt(after)
  return Effect.map(
    sql<Sql<RevisionRow>>`SELECT account, id, version FROM revisions
      WHERE account = ${account} AND (id, version) > (${id}, ${bigint(version)}) ORDER BY id, version LIMIT ${limit}`,
    (rows) => rows.map((row): RevisionRow => ({ ...row, version: Number(row.version) }))
  )
}
