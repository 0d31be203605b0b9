/** The journal in Postgres. A flush is one INSERT: one round trip and one commit. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { Fenced, firsts, Journal } from "../engine/log/Journal.ts"
import { READ_BYTES_MAX } from "../engine/process/Memory.ts"
import { type ChainedRow, GENESIS, type JournalRow, textOf } from "../engine/log/Record.ts"
import { bigint, bigints, byteStrings, cut, execute, failureOf, ints, placed, texts } from "./Rows.ts"
import { makeWithin } from "./StatementLimit.ts"
import { noting } from "./WritingPostgres.ts"

interface Row {
  readonly account: string
  readonly version: bigint
  readonly hash: Uint8Array
  readonly record: Uint8Array
  readonly erased: string | null
}

const toHash = ({ buffer, byteLength, byteOffset }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("hex")

const fromHash = (hash: string): Uint8Array => Buffer.from(hash, "hex")

const toRow = ({ account, erased, hash, record, version }: Row): JournalRow => ({
  account,
  version: Number(version),
  hash: toHash(hash),
  bytes: record,
  ...(erased !== null && { erased })
})

interface Chained extends Row {
  readonly previous: Uint8Array | null
}

const toChained = ({ previous, ...row }: Chained): ChainedRow => ({
  ...toRow(row),
  previous: previous === null ? GENESIS : toHash(previous)
})

/** Appends all rows, or none: each account's first row must follow the stored records. */
const append = (sql: PgClient.PgClient, rows: ReadonlyArray<ChainedRow>) => {
  const accounts = texts(rows.map((row) => row.account))
  const versions = bigints(rows.map((row) => row.version))
  const following = firsts(rows).filter(({ version }) => version > 1)
  const missing = sql`unnest(${texts(following.map((row) => row.account))},
      ${bigints(following.map((row) => row.version - 1))},
      ${byteStrings(following.map((row) => fromHash(row.previous)))})
    AS before (account, version, hash)
    WHERE NOT EXISTS (SELECT FROM journal j
      WHERE j.account = before.account AND j.version = before.version AND j.hash = before.hash)`
  // Only a restore appends erased rows.
  const erased = rows.some((row) => row.erased !== undefined)
    ? { column: sql`, erased`, values: sql`, ${texts(rows.map((row) => row.erased ?? null))}` }
    : { column: sql``, values: sql`` }
  const insert = sql`INSERT INTO journal (account, version, hash, record${erased.column})
    SELECT * FROM unnest(${accounts}, ${versions},
      ${byteStrings(rows.map((row) => fromHash(row.hash)))}, ${byteStrings(rows.map((row) => row.bytes))}
      ${erased.values})
    WHERE NOT EXISTS (SELECT FROM ${missing})`
  /** Finds the accounts of which another process has written the version, or the version before. */
  const fenced = Effect.suspend(() =>
    Effect.flatMap(
      sql<{ account: string }>`
        SELECT account FROM journal WHERE (account, version) IN (SELECT * FROM unnest(${accounts}, ${versions}))
        UNION SELECT account FROM ${missing}`,
      (lost) => Effect.fail(new Fenced({ accounts: lost.map(({ account }) => account) }))
    )
  )
  return Effect.flatMap(insert.raw, (result) =>
    (result as { readonly rowCount: number }).rowCount === rows.length ? Effect.void : fenced
  ).pipe(
    Effect.catchReason("SqlError", "UniqueViolation", () => fenced),
    Effect.catchTag("SqlError", (cause) => Effect.fail(failureOf(cause)))
  )
}

/** Skips from account to account along the primary key instead of reading the whole journal. */
const walk = (sql: PgClient.PgClient) =>
  sql.literal(`WITH RECURSIVE walk AS (
    (SELECT account FROM journal ORDER BY account LIMIT 1)
    UNION ALL
    SELECT (SELECT j.account FROM journal j WHERE j.account > walk.account ORDER BY j.account LIMIT 1)
    FROM walk WHERE walk.account IS NOT NULL
  )`)

export const layer: Layer.Layer<Journal, never, PgClient.PgClient> = Layer.effect(
  Journal,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const { isHanging, within } = yield* makeWithin
    const noted = noting(sql, "journal")

    return Journal.of({
      isHanging,
      append: (rows) => noted(within(append(sql, rows))),
      read: (account, after, limit) =>
        within(
          execute(
            sql<Row>`SELECT account, version, hash, record, erased
              FROM (SELECT *, sum(octet_length(record)) OVER (ORDER BY version) - octet_length(record) AS before
                FROM (SELECT * FROM journal
                  WHERE account = ${account} AND version > ${bigint(after)} ORDER BY version LIMIT ${limit}) AS page
              ) AS weighed
              WHERE before < ${bigint(READ_BYTES_MAX)} ORDER BY version`,
            (rows) => rows.map(toRow)
          )
        ),
      at: (places) =>
        within(
          execute(
            sql<Chained & { readonly position: bigint }>`SELECT position, j.account, j.version, j.hash, j.record,
                j.erased, before.hash AS previous
              FROM unnest(${texts(places.map((p) => p.account))}, ${bigints(places.map((p) => p.version))})
                WITH ORDINALITY AS wanted (account, version, position)
              JOIN journal j ON j.account = wanted.account AND j.version = wanted.version
              LEFT JOIN journal before ON before.account = wanted.account AND before.version = wanted.version - 1`,
            (rows) => placed(places.length, rows, toChained)
          )
        ),
      slices: (slices) =>
        within(
          execute(
            sql<{ readonly position: bigint; readonly part: Uint8Array | null }>`
              SELECT position, ${cut(sql, "at", "length")} AS part
              FROM unnest(${texts(slices.map((s) => s.account))}, ${bigints(slices.map((s) => s.version))},
                ${ints(slices.map((s) => s.span.at))}, ${ints(slices.map((s) => s.span.length))})
                WITH ORDINALITY AS wanted (account, version, at, length, position)
              JOIN journal USING (account, version)`,
            (rows) => placed(slices.length, rows, ({ part }) => (part === null ? undefined : textOf(part)))
          )
        ),
      versions: (accounts) =>
        within(
          execute(
            sql<{ account: string; version: bigint | null }>`SELECT account,
                (SELECT max(version) FROM journal j WHERE j.account = asked.account) AS version
              FROM unnest(${texts(accounts)}) AS asked (account)`,
            (rows) => new Map(rows.map(({ account, version }) => [account, Number(version ?? 0)]))
          )
        ),
      accounts: execute(
        sql<{ account: string }>`${walk(sql)} SELECT account FROM walk WHERE account IS NOT NULL`,
        (rows) => rows.map(({ account }) => account)
      ),
      erased: execute(
        sql<{ account: string; version: bigint; erased: string }>`SELECT account, version, erased FROM journal
          WHERE erased IS NOT NULL ORDER BY account, version`,
        (rows) => rows.map((row) => ({ ...row, version: Number(row.version) }))
      ),
      heads: execute(
        sql<{ account: string; version: bigint }>`${walk(sql)} SELECT account,
            (SELECT max(version) FROM journal j WHERE j.account = walk.account) AS version
          FROM walk WHERE account IS NOT NULL`,
        (rows) => new Map(rows.map(({ account, version }) => [account, Number(version)]))
      )
    })
  })
)
