/**
 * Search in Postgres, without statistics to choose by. What many documents have is found among the newest, so those are
 * looked through first, along the primary key. Only if they do not fill the page, the index of terms is asked: it gives
 * what it finds in no order, so that should not be much. What is in neither is walked to: where a query only says what
 * documents do not have, it reads until it has found enough of the others.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { Fragment } from "effect/sql/Statement"
import type { AccountId } from "../engine/Document.ts"
import type { SearchQuery } from "../engine/Search.ts"
import { bucketTerms, termNumber } from "../engine/Search.ts"
import type { Views } from "../engine/Views.ts"
import { boundsOf, COLUMNS } from "./ListsPostgres.ts"
import type { SqlDocument } from "./Rows.ts"
import { ask, bigint, bigints, toDocument } from "./Rows.ts"

/** Rows that are looked through first: they take Postgres about as long as the index of terms takes to find a few. */
const NEWEST_MAX = 1000
/** A range of more buckets says too little to be asked for beside something else. */
const BUCKETS_MAX = 64

export const search = (sql: PgClient.PgClient): Views["Service"]["search"] => {
  const columns = sql.literal(COLUMNS)

  const conditions = (account: AccountId, { filter: { all, any, id, measure, none } }: SearchQuery): Fragment => {
    const numbers = (terms: ReadonlyArray<string>) => bigints(terms.map((term) => termNumber(account, term)))
    return sql`AND terms IS NOT NULL
      ${all.length === 0 ? sql`` : sql`AND terms @> ${numbers(all)}::bigint[]`}
      ${joined(
        sql,
        any.map((group) => sql`AND terms && ${numbers(group)}::bigint[]`)
      )}
      ${none.length === 0 ? sql`` : sql`AND NOT terms && ${numbers(none)}::bigint[]`}
      ${measure === undefined ? sql`` : sql`AND measure BETWEEN ${bigint(measure.from)} AND ${bigint(measure.to)}`}
      ${id === undefined ? sql`` : sql`AND id = ${id}`}`
  }

  /** Along the primary key, all or the newest. */
  const walked = (account: AccountId, query: SearchQuery, most: Fragment) => {
    const [behind, before] = boundsOf(query)
    return sql<SqlDocument>`SELECT ${columns} FROM (
        SELECT * FROM objects
        WHERE account = ${account} AND id > ${behind} AND id < ${before} ORDER BY id DESC ${most}
      ) AS newest
      WHERE kind = ${query.kind} AND document_at IS NOT NULL ${conditions(account, query)}
      ORDER BY id DESC LIMIT ${query.limit}`
  }

  /** The empty strings keep the planner from the primary key. */
  const indexed = (account: AccountId, query: SearchQuery) => {
    const [behind, before] = boundsOf(query)
    return sql<SqlDocument>`SELECT * FROM (
        SELECT ${columns} FROM objects
        WHERE account || '' = ${account} AND kind = ${query.kind} AND document_at IS NOT NULL
          AND id || '' > ${behind} AND id || '' < ${before} ${conditions(account, query)} OFFSET 0
      ) AS found ORDER BY id DESC LIMIT ${query.limit}`
  }

  return Effect.fnUntraced(function* (account, query) {
    const { id } = query.filter
    if (id !== undefined && !isAmong(query, id)) return []
    if (id !== undefined) return yield* ask(byId(account, query, id), (rows) => rows.map(toDocument))
    const newest = yield* ask(walked(account, query, sql`LIMIT ${NEWEST_MAX}`), (rows) => rows.map(toDocument))
    if (newest.length >= query.limit) return newest
    const asked = withBuckets(query)
    const { all, any } = asked.filter
    const rest = all.length + any.length > 0 ? indexed(account, asked) : walked(account, query, sql``)
    return yield* ask(rest, (rows) => rows.map(toDocument))
  })

  function byId(account: AccountId, query: SearchQuery, id: string) {
    return sql<SqlDocument>`SELECT ${columns} FROM objects
      WHERE account = ${account} AND id = ${id} AND kind = ${query.kind} AND document_at IS NOT NULL
        ${conditions(account, query)}`
  }
}

const isAmong = (query: SearchQuery, id: string): boolean => {
  const [behind, before] = boundsOf(query)
  return id > behind && id < before
}

/** Asks for the buckets of a range as well, if they help to find what is in it. */
const withBuckets = (query: SearchQuery): SearchQuery => {
  const { filter } = query
  if (filter.measure === undefined) return query
  const buckets = bucketTerms(filter.measure)
  const isAlone = filter.all.length === 0 && filter.any.length === 0
  if (!isAlone && buckets.length > BUCKETS_MAX) return query
  return { ...query, filter: { ...filter, any: [...filter.any, buckets] } }
}

const joined = (sql: PgClient.PgClient, parts: ReadonlyArray<Fragment>): Fragment =>
  parts.reduce((all, part) => sql`${all} ${part}`, sql``)
