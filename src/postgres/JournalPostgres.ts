/** The journal in Postgres: one INSERT, and so one round trip and one commit, per flush. */
import { PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { SqlError } from "effect/sql"
import { Fenced, Journal, StorageFailure } from "../engine/Journal.ts"
import type { JournalRow } from "../engine/Record.ts"
import { textOf } from "../engine/Record.ts"
import { bigints, byteStrings, ints, texts } from "./Arrays.ts"
import { placed } from "./Rows.ts"
import { makeWithin } from "./StatementLimit.ts"

interface Row {
  readonly account: string
  readonly version: bigint
  readonly hash: string
  readonly record: Uint8Array
}

const toRow = ({ account, hash, record, version }: Row): JournalRow => ({
  account,
  version: Number(version),
  hash,
  bytes: record
})

/** Whatever goes wrong with SQL is a storage failure to the engine. */
export const storageFailure = Effect.mapError((cause: SqlError.SqlError) => new StorageFailure({ cause }))

export const layer: Layer.Layer<Journal, never, PgClient.PgClient> = Layer.effect(
  Journal,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const within = yield* makeWithin

    const insert = (rows: ReadonlyArray<JournalRow>) =>
      sql`INSERT INTO journal (account, version, hash, record)
        SELECT * FROM unnest(
          ${texts(rows.map((row) => row.account))}, ${bigints(rows.map((row) => row.version))},
          ${texts(rows.map((row) => row.hash))}, ${byteStrings(rows.map((row) => row.bytes))})`

    /** Which of the accounts have lost a version to somebody else. */
    const takenAccounts = (rows: ReadonlyArray<JournalRow>) =>
      sql<{ account: string }>`SELECT DISTINCT account FROM journal WHERE (account, version) IN (
        SELECT * FROM unnest(
          ${texts(rows.map((row) => row.account))}, ${bigints(rows.map((row) => row.version))}))`

    return Journal.of({
      append: (rows) =>
        within(
          Effect.asVoid(insert(rows)).pipe(
            Effect.catchReason("SqlError", "UniqueViolation", () =>
              Effect.flatMap(takenAccounts(rows), (taken) =>
                Effect.fail(new Fenced({ accounts: taken.map(({ account }) => account) }))
              )
            ),
            Effect.catchTag("SqlError", (cause) => Effect.fail(new StorageFailure({ cause })))
          )
        ),
      read: (account, after, limit) =>
        within(
          storageFailure(
            Effect.map(
              sql<Row>`SELECT account, version, hash, record FROM journal
                WHERE account = ${account} AND version > ${PgTypes.int8(BigInt(after))} ORDER BY version LIMIT ${limit}`,
              (rows) => rows.map(toRow)
            )
          )
        ),
      at: (places) =>
        within(
          storageFailure(
            Effect.map(
              sql<Row & { readonly position: bigint }>`SELECT position, account, version, hash, record
                FROM unnest(${texts(places.map((p) => p.account))}, ${bigints(places.map((p) => p.version))})
                  WITH ORDINALITY AS wanted (account, version, position)
                JOIN journal USING (account, version)`,
              (rows) => placed(places.length, rows, toRow)
            )
          )
        ),
      slices: (slices) =>
        within(
          storageFailure(
            Effect.map(
              sql<{ readonly position: bigint; readonly part: Uint8Array }>`
                SELECT position, substring(record FROM at + 1 FOR length) AS part
                FROM unnest(${texts(slices.map((s) => s.account))}, ${bigints(slices.map((s) => s.version))},
                  ${ints(slices.map((s) => s.span.at))}, ${ints(slices.map((s) => s.span.length))})
                  WITH ORDINALITY AS wanted (account, version, at, length, position)
                JOIN journal USING (account, version)`,
              (rows) => placed(slices.length, rows, ({ part }) => textOf(part))
            )
          )
        ),
      // Skips from account to account along the primary key instead of reading the whole journal.
      accounts: storageFailure(
        Effect.map(
          sql<{ account: string }>`WITH RECURSIVE walk AS (
              (SELECT account FROM journal ORDER BY account LIMIT 1)
              UNION ALL
              SELECT (SELECT j.account FROM journal j WHERE j.account > walk.account ORDER BY j.account LIMIT 1)
              FROM walk WHERE walk.account IS NOT NULL
            ) SELECT account FROM walk WHERE account IS NOT NULL`,
          (rows) => rows.map(({ account }) => account)
        )
      )
    })
  })
)
