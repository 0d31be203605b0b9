/**
 * Search in Postgres, without statistics to choose by. What many documents have is found among the newest, so those
 * are looked through first, along the primary key. If they do not fill the page, the index of terms is asked. It
 * gathers all that it has before it gives the first, in no order, so that must not be much: if it is, more of the
 * newest are looked through, and only if they do not fill the page either, the index is asked for all. That it is much
 * is remembered, so the next page, and whoever asks again, need not find out. What is in neither is walked to: where a
 * query only says what documents do not have, it reads until it has found enough of the others.
 */
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect } from "effect"
import type { Fragment } from "effect/sql/Statement"
import type { AccountId } from "../engine/log/Document.ts"
import type { SearchQuery } from "../engine/log/Search.ts"
import { bucketTerms, termNumber } from "../engine/log/Search.ts"
import type { Views } from "../engine/views/Views.ts"
import { boundsOf, COLUMNS } from "./ListsPostgres.ts"
import type { SqlDocument } from "./Rows.ts"
import { ask, bigint, bigints, toDocument } from "./Rows.ts"

/** How far each way of finding goes, in rows. */
export interface SearchDepths {
  /** Looked through first: they take Postgres about as long as the index of terms takes to find a few. */
  readonly newest: number
  /** Taken from the index of terms, in any order: each takes it ten times as long as one along the key. */
  readonly few: number
  /** Looked through if the index has more. */
  readonly many: number
}

export const SearchDepths: Context.Reference<SearchDepths> = Context.Reference("till/postgres/SearchDepths", {
  defaultValue: () => ({ newest: 1000, few: 2000, many: 20_000 })
})

/** A range of more buckets says too little to be asked for beside something else. */
const BUCKETS_MAX = 64

/** A row of what the index of terms has found: none, if the document is null. */
type Found = (SqlDocument | { readonly [K in keyof SqlDocument]: null }) & { readonly looked: bigint }

/** Undefined if there may be more. */
const allOf = (rows: ReadonlyArray<Found>, most: number) =>
  Number(rows[0]!.looked) > most ? undefined : rows.flatMap((row) => (row.id === null ? [] : toDocument(row)))

const numbersOf = (account: AccountId, terms: ReadonlyArray<string>) =>
  bigints(terms.map((term) => termNumber(account, term)))

/** What the index of terms knows. */
const indexable = (sql: PgClient.PgClient, account: AccountId, { filter: { all, any } }: SearchQuery): Fragment =>
  sql`AND terms IS NOT NULL
    ${all.length === 0 ? sql`` : sql`AND terms @> ${numbersOf(account, all)}::bigint[]`}
    ${joined(
      sql,
      any.map((group) => sql`AND terms && ${numbersOf(account, group)}::bigint[]`)
    )}`

const others = (sql: PgClient.PgClient, account: AccountId, { filter: { id, measure, none } }: SearchQuery): Fragment =>
  sql`${none.length === 0 ? sql`` : sql`AND NOT terms && ${numbersOf(account, none)}::bigint[]`}
    ${measure === undefined ? sql`` : sql`AND measure BETWEEN ${bigint(measure.from)} AND ${bigint(measure.to)}`}
    ${id === undefined ? sql`` : sql`AND id = ${id}`}`

const conditions = (sql: PgClient.PgClient, account: AccountId, query: SearchQuery): Fragment =>
  sql`${indexable(sql, account, query)} ${others(sql, account, query)}`

const statements = (sql: PgClient.PgClient) => {
  const columns = sql.literal(COLUMNS)

  const byId = (account: AccountId, query: SearchQuery, id: string) =>
    sql<SqlDocument>`SELECT ${columns} FROM objects
      WHERE account = ${account} AND id = ${id} AND kind = ${query.kind} AND document_at IS NOT NULL
        ${conditions(sql, account, query)}`

  /** Along the primary key, all or the newest. */
  const walked = (account: AccountId, query: SearchQuery, most?: number) => {
    const [behind, before] = boundsOf(query)
    const newest = most === undefined ? sql`` : sql`LIMIT ${most}`
    return sql<SqlDocument>`SELECT ${columns} FROM (
        SELECT * FROM objects
        WHERE account = ${account} AND id > ${behind} AND id < ${before} ORDER BY id DESC ${newest}
      ) AS newest
      WHERE kind = ${query.kind} AND document_at IS NOT NULL ${conditions(sql, account, query)}
      ORDER BY id DESC LIMIT ${query.limit}`
  }

  /** Says that there are more rows than so many between the bounds, whatever they have. */
  const hasMore = (account: AccountId, query: SearchQuery, rows: number) => {
    const [behind, before] = boundsOf(query)
    return sql<{ id: string }>`SELECT id FROM objects
      WHERE account = ${account} AND id > ${behind} AND id < ${before} ORDER BY id DESC OFFSET ${rows} LIMIT 1`
  }

  /** What the index of terms finds, with how much that was before anything else was asked of it. */
  const few = (account: AccountId, query: SearchQuery, most: number) => {
    const [behind, before] = boundsOf(query)
    return sql<Found>`WITH few AS MATERIALIZED (
        SELECT ${columns}, terms, measure FROM objects
        WHERE account || '' = ${account} AND kind = ${query.kind} AND document_at IS NOT NULL
          ${indexable(sql, account, query)} LIMIT ${most + 1}
      )
      SELECT ${columns}, looked FROM (SELECT count(*) AS looked FROM few) AS counted LEFT JOIN (
        SELECT ${columns} FROM few WHERE id > ${behind} AND id < ${before} ${others(sql, account, query)}
        ORDER BY id DESC LIMIT ${query.limit}
      ) AS found ON true ORDER BY id DESC`
  }

  /** The empty strings keep the planner from the primary key. */
  const indexed = (account: AccountId, query: SearchQuery) => {
    const [behind, before] = boundsOf(query)
    return sql<SqlDocument>`SELECT * FROM (
        SELECT ${columns} FROM objects
        WHERE account || '' = ${account} AND kind = ${query.kind} AND document_at IS NOT NULL
          AND id || '' > ${behind} AND id || '' < ${before} ${conditions(sql, account, query)} OFFSET 0
      ) AS found ORDER BY id DESC LIMIT ${query.limit}`
  }

  return { byId, few, hasMore, indexed, walked }
}

/** Of so many filters it is remembered that the index of terms has found more than a few. */
const COMMON_MAX = 256

export const search = (sql: PgClient.PgClient, depths: SearchDepths): Views["Service"]["search"] => {
  const { byId, few, hasMore, indexed, walked } = statements(sql)
  const common = new Set<string>()
  const documents = (rows: ReadonlyArray<SqlDocument>) => rows.map(toDocument)
  return Effect.fnUntraced(function* (account, query) {
    const { id } = query.filter
    if (id !== undefined && !isAmong(query, id)) return []
    if (id !== undefined) return yield* ask(byId(account, query, id), documents)
    const newest = yield* ask(walked(account, query, depths.newest), documents)
    if (newest.length >= query.limit) return newest
    const asked = withBuckets(query)
    const { all, any } = asked.filter
    if (all.length + any.length === 0) return yield* ask(walked(account, query), documents)
    const wanted = JSON.stringify([account, query.kind, all, any])
    if (!common.has(wanted)) {
      const found = yield* ask(few(account, asked, depths.few), (rows) => allOf(rows, depths.few))
      if (found !== undefined) return found
      if (common.size === COMMON_MAX) common.delete(common.values().next().value!)
      common.add(wanted)
    }
    const more = yield* ask(walked(account, query, depths.many), documents)
    if (more.length >= query.limit) return more
    // There may be few by now.
    common.delete(wanted)
    const isAll = yield* ask(hasMore(account, query, depths.many), (rows) => rows.length === 0)
    return isAll ? more : yield* ask(indexed(account, asked), documents)
  })
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
