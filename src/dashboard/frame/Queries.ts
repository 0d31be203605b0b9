/** Reads of pages: one object, or a page of a list. */
import { Effect } from "effect"
import { matches, type SearchQuery } from "../../domain/SearchQuery.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId, Document, Identified, Labels } from "../../engine/log/Document.ts"
import type { Resource } from "../../payments/Documents.ts"
import { readDocument } from "../../payments/ReadDocument.ts"
import { filtersOf, type SearchedBy } from "../../payments/Search.ts"
import type { Cursor } from "./Table.ts"
import type { Visit } from "./Visit.ts"

export const PAGE_ROWS = 25

/** Returns those objects that exist, by id. Reads of objects that are not in memory share one query. */
export const findObjects = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Resource<A, H>,
  ids: ReadonlyArray<string>
) {
  const documents = yield* Effect.forEach(new Set(ids), (id) => readDocument(account, kind, id), {
    concurrency: "unbounded"
  })
  return new Map(documents.flatMap((document) => (document === undefined ? [] : [[document.id, document.value]])))
})

export interface Listed<A> {
  /** Newest first. */
  readonly rows: ReadonlyArray<A>
  readonly hasMore: boolean
}

/** True if the list is empty without a filter: nothing to search or download. */
export const isNew = ({ query }: Pick<Visit, "query">, rows: ReadonlyArray<unknown>): boolean =>
  rows.length === 0 && query.size === 0

export const listObjects = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Resource<A, H>,
  {
    cursor = {},
    labels = {},
    limit = PAGE_ROWS
  }: { readonly cursor?: Cursor; readonly labels?: Labels; readonly limit?: number } = {}
) {
  const { documents, hasMore } = yield* Accounts.use((accounts) =>
    accounts.list(account, { kind: kind.name, prefix: kind.prefix, labels, limit, ...cursor })
  )
  const listed: Listed<A> = { rows: documents.map((document) => (document as Document<A, H>).value), hasMore }
  return listed
})

/** Returns a page of the objects that match all queries, newest first (semantics search.*). */
export const searchObjects = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Resource<A, H>,
  searched: SearchedBy<A>,
  queries: readonly [SearchQuery, ...ReadonlyArray<SearchQuery>],
  { cursor: { olderThan }, limit = PAGE_ROWS }: { readonly cursor: Cursor; readonly limit?: number }
) {
  const { documents, hasMore } = yield* Accounts.use((accounts) =>
    accounts.search(account, {
      kind: kind.name,
      prefix: kind.prefix!,
      filters: filtersOf(queries, searched),
      matches: (value) => {
        const values = searched.valuesOf(value as A)
        return queries.every((query) => matches(query, searched.fields, values))
      },
      limit,
      ...(olderThan !== undefined && { olderThan })
    })
  )
  const listed: Listed<A> = { rows: documents.map((document) => (document as Document<A, H>).value), hasMore }
  return listed
})
