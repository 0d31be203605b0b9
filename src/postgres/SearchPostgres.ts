/**
 * Search in Postgres, which has no statistics to choose a plan by. Instead, up to four reads are tried in turn:
 *
 * 1. The newest documents, along the primary key: common terms fill the page from these.
 * 2. The index of terms, for a limited number of matches. It collects all matches, unordered, before it returns any. A
 *    filter with more matches than that is remembered as common, and later searches skip this read.
 * 3. More of the newest documents, if the index has too many matches.
 * 4. The index of terms, without a limit.
 *
 * A query without terms to require, which only excludes terms, reads along the primary key until the page is full.
 */
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect } from "effect"
import type { Fragment } from "effect/sql/Statement"
import type { AccountId } from "../engine/log/Document.ts"
import { bucketTerms, type SearchQuery, termNumbers } from "../engine/log/Search.ts"
import type { Views } from "../engine/views/Views.ts"
import { boundsOf, COLUMNS } from "./ListsPostgres.ts"
import { bigint, bigints, execute, type SqlDocument, toDocument } from "./Rows.ts"

export interface SearchDepths {
  /** Rows of the first read: it costs about as much as finding a few matches in the index of terms. */
  readonly newest: number
  /** Rows from the index of terms, each of which costs ten times as much as one along the primary key. */
  readonly few: number
  /** Rows of the third read, for common filters. */
  readonly many: number
}

export const SearchDepths: Context.Reference<SearchDepths> = Context.Reference("till/postgres/SearchDepths", {
  defaultValue: () => ({ newest: 1000, few: 2000, many: 20_000 })
})

/** A range of more buckets is too unselective to be combined with other terms. */
const BUCKETS_MAX = 64

/** A match in the index of terms; null if there is none. `looked` counts all matches, up to the limit. */
type Found = (SqlDocument | { readonly [K in keyof SqlDocument]: null }) & { readonly looked: bigint }

const allOf = (rows: ReadonlyArray<Found>, most: number) =>
  Number(rows[0]!.looked) > most ? undefined : rows.flatMap((row) => (row.id === null ? [] : toDocument(row)))

const numbersOf = (account: AccountId, { kind }: SearchQuery, terms: ReadonlyArray<string>) =>
  bigints(terms.map(termNumbers(account, kind)))

const indexable = (sql: PgClient.PgClient, account: AccountId, query: SearchQuery): Fragment => {
  const { all, any } = query.filter
  return sql`AND term_numbers IS NOT NULL
    ${all.length === 0 ? sql`` : sql`AND term_numbers @> ${numbersOf(account, query, all)}::bigint[]`}
    ${joined(
      sql,
      any.map((group) => sql`AND term_numbers && ${numbersOf(account, query, group)}::bigint[]`)
    )}`
}

const others = (sql: PgClient.PgClient, account: AccountId, query: SearchQuery): Fragment => {
  const { id, measure, none } = query.filter
  return sql`${none.length === 0 ? sql`` : sql`AND NOT term_numbers && ${numbersOf(account, query, none)}::bigint[]`}
    ${measure === undefined ? sql`` : sql`AND measure BETWEEN ${bigint(measure.from)} AND ${bigint(measure.to)}`}
    ${id === undefined ? sql`` : sql`AND id = ${id}`}`
}

const conditions = (sql: PgClient.PgClient, account: AccountId, query: SearchQuery): Fragment =>
  sql`${indexable(sql, account, query)} ${others(sql, account, query)}`

const statements = (sql: PgClient.PgClient) => {
  const columns = sql.literal(COLUMNS)

  const byId = (account: AccountId, query: SearchQuery, id: string) =>
    sql<SqlDocument>`SELECT ${columns} FROM objects
      WHERE account = ${account} AND id = ${id} AND kind = ${query.kind} AND document_at IS NOT NULL
        ${conditions(sql, account, query)}`

  /** Reads along the primary key, all documents or the newest `most`. */
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

  /** Reads a row if there are more than `rows` rows between the bounds, whatever their content. */
  const hasMore = (account: AccountId, query: SearchQuery, rows: number) => {
    const [behind, before] = boundsOf(query)
    return sql<{ id: string }>`SELECT id FROM objects
      WHERE account = ${account} AND id > ${behind} AND id < ${before} ORDER BY id DESC OFFSET ${rows} LIMIT 1`
  }

  /** Reads up to `most` matches of the index of terms, and counts them before the other conditions apply. */
  const few = (account: AccountId, query: SearchQuery, most: number) => {
    const [behind, before] = boundsOf(query)
    return sql<Found>`WITH few AS MATERIALIZED (
        SELECT ${columns}, term_numbers, measure FROM objects
        WHERE account || '' = ${account} AND kind = ${query.kind} AND document_at IS NOT NULL
          ${indexable(sql, account, query)} LIMIT ${most + 1}
      )
      SELECT ${columns}, looked FROM (SELECT count(*) AS looked FROM few) AS counted LEFT JOIN (
        SELECT ${columns} FROM few WHERE id > ${behind} AND id < ${before} ${others(sql, account, query)}
        ORDER BY id DESC LIMIT ${query.limit}
      ) AS found ON true ORDER BY id DESC`
  }

  /** Reads all matches of the index of terms. The empty strings keep the planner off the primary key. */
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

const COMMON_MAX = 256

export const search = (sql: PgClient.PgClient, depths: SearchDepths): Views["Service"]["search"] => {
  const { byId, few, hasMore, indexed, walked } = statements(sql)
  const common = new Set<string>()
  const documents = (rows: ReadonlyArray<SqlDocument>) => rows.map(toDocument)
  return Effect.fnUntraced(function* (account, query) {
    const { id } = query.filter
    if (id !== undefined && !isAmong(query, id)) return []
    if (id !== undefined) return yield* execute(byId(account, query, id), documents)
    const newest = yield* execute(walked(account, query, depths.newest), documents)
    if (newest.length >= query.limit) return newest
    const asked = withBuckets(query)
    const { all, any } = asked.filter
    if (all.length + any.length === 0) return yield* execute(walked(account, query), documents)
    const wanted = JSON.stringify([account, query.kind, all, any])
    if (!common.has(wanted)) {
      const found = yield* execute(few(account, asked, depths.few), (rows) => allOf(rows, depths.few))
      if (found !== undefined) return found
      if (common.size === COMMON_MAX) common.delete(common.values().next().value!)
      common.add(wanted)
    }
    const more = yield* execute(walked(account, query, depths.many), documents)
    if (more.length >= query.limit) return more
    // The filter may have become rare: most matches are gone.
    common.delete(wanted)
    const isAll = yield* execute(hasMore(account, query, depths.many), (rows) => rows.length === 0)
    return isAll ? more : yield* execute(indexed(account, asked), documents)
  })
}

const isAmong = (query: SearchQuery, id: string): boolean => {
  const [behind, before] = boundsOf(query)
  return id > behind && id < before
}

/** Adds the buckets of a range to the filter, if they are selective enough. */
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
