/** Tallies in Postgres: a projection adds its documents' new tallies and subtracts the previous ones. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { AccountId } from "../engine/log/Document.ts"
import type { Projection } from "../engine/views/Projection.ts"
import {
  ENTRIES_PATTERN,
  piecesOf,
  SPANS,
  type Sum,
  type TalliesOfStep,
  tallyAt,
  type TallyQuery,
  type TallyRow
} from "../engine/log/Tallies.ts"
import { bigints, execute, ints, type Sql, texts } from "./Rows.ts"

/**
 * Builds the part of a projection's statement that updates sums. The documents' previous tallies are read as they were
 * when the statement began, which is the state of the checkpoint that admits it: a projection is applied only after the
 * one before it is committed. A row whose tallies were edited by hand counts as nothing, and does not fail the
 * projection.
 */
export const update = (sql: PgClient.PgClient, { documentsChanged, documentsCreated }: Projection) => {
  const recounted = documentsChanged.filter(({ tallies }) => tallies !== null)
  const added = [...documentsCreated, ...recounted].flatMap(({ account, tallies }) =>
    (tallies ?? []).map((entry) => ({ account, ...entry }))
  )
  if (added.length === 0 && recounted.length === 0) return sql``
  return sql`, tallied AS (
    INSERT INTO tallies (account, hours, hour, key, count, amount)
    SELECT account, hours, hour - hour % hours, key, sum(count), sum(amount) FROM (
      SELECT account, hour, key, count, amount
      FROM unnest(${texts(added.map((t) => t.account))}, ${ints(added.map((t) => t.hour))},
        ${texts(added.map((t) => t.key))}, ${bigints(added.map((t) => t.count))},
        ${bigints(added.map((t) => t.amount))}) AS a (account, hour, key, count, amount)
      UNION ALL
      SELECT account, (entry ->> 0)::int, entry ->> 1, -(entry ->> 2)::bigint, -(entry ->> 3)::bigint
      FROM unnest(${texts(recounted.map((r) => r.account))}, ${texts(recounted.map((r) => r.id))}) AS r (account, id)
        JOIN objects USING (account, id),
        jsonb_array_elements(CASE WHEN tallies ~ ${ENTRIES_PATTERN} THEN tallies::jsonb ELSE '[]' END) AS e (entry)
    ) AS t, unnest(${ints(SPANS)}) AS s (hours)
    WHERE (account IN (SELECT account FROM advanced)) IS TRUE
    GROUP BY 1, 2, 3, 4 HAVING sum(count) <> 0 OR sum(amount) <> 0
    ON CONFLICT (account, hours, hour, key) DO UPDATE
      SET count = tallies.count + excluded.count, amount = tallies.amount + excluded.amount
  )`
}

export const read = (sql: PgClient.PgClient) => (account: AccountId, query: TallyQuery) => {
  const pieces = piecesOf(query)
  return execute(
    sql<Sql<TalliesOfStep>>`SELECT step, key, sum(count)::bigint AS count, sum(amount)::bigint AS amount
      FROM unnest(${ints(pieces.map((p) => p.step))}, ${ints(pieces.map((p) => p.hours))},
          ${ints(pieces.map((p) => p.from))}, ${ints(pieces.map((p) => p.until))}) AS p (step, hours, first, past),
        LATERAL (
          SELECT key, count, amount FROM tallies t
          WHERE account = ${account} AND t.hours = p.hours AND hour >= first AND hour < past
        ) AS t
      GROUP BY 1, 2 HAVING sum(count) <> 0 OR sum(amount) <> 0`,
    (rows) =>
      rows.map(({ amount, count, key, step }): TalliesOfStep => ({
        step: Number(step),
        key,
        count: Number(count),
        amount: Number(amount)
      }))
  )
}

const BEFORE_ALL: Pick<Sum, "hour" | "hours" | "key"> = { hours: 0, hour: 0, key: "" }

export const scan = (sql: PgClient.PgClient, account: AccountId, after: string, limit: number) => {
  const { hour, hours, key } = after === "" ? BEFORE_ALL : tallyAt(after)
  return Effect.map(
    sql<Sql<TallyRow>>`SELECT account, hours, hour, key, count, amount FROM tallies
      WHERE account = ${account} AND (hours, hour, key) > (${hours}::int, ${hour}::int, ${key}::text)
        AND (count <> 0 OR amount <> 0) ORDER BY hours, hour, key LIMIT ${limit}`,
    (rows) =>
      rows.map((row): TallyRow => ({
        account: row.account,
        hours: Number(row.hours),
        hour: Number(row.hour),
        key: row.key,
        count: Number(row.count),
        amount: Number(row.amount)
      }))
  )
}
