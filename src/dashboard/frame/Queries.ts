/** Reads of pages: one object, or a page of a list. */
import { Effect } from "effect"
import { wordsIn } from "../../domain/SearchWords.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId, Document, Identified, Labels } from "../../engine/log/Document.ts"
import type { Kept, Resource } from "../../payments/shared/Documents.ts"
import { readDocument } from "../../payments/shared/ReadDocument.ts"
import { type Condition, type SearchedBy, wordsCondition } from "../../payments/shared/Search.ts"
import { type Cursor, cursorIn, pageLinks, searchPageLinks } from "./Table.ts"
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
  kind: Kept<A, H>,
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

/** Returns a page of the objects that match a condition, newest first (semantics search.*). */
export const searchObjects = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Resource<A, H>,
  { filters, matches }: Condition<A>,
  { cursor: { olderThan } = {}, limit = PAGE_ROWS }: { readonly cursor?: Cursor; readonly limit?: number } = {}
) {
  const { documents, hasMore } = yield* Accounts.use((accounts) =>
    accounts.search(account, {
      kind: kind.name,
      prefix: kind.prefix!,
      filters,
      matches: (value) => matches(value as A),
      limit,
      ...(olderThan !== undefined && { olderThan })
    })
  )
  const listed: Listed<A> = { rows: documents.map((document) => (document as Document<A, H>).value), hasMore }
  return listed
})

/** The condition of a list's search field: the words of its text. Undefined for an empty field. */
export const askedCondition = <A>(query: URLSearchParams, searched: SearchedBy<A>): Condition<A> | undefined => {
  const text = query.get("query")?.trim() ?? ""
  return text === "" ? undefined : wordsCondition(wordsIn(text), searched)
}

/** A page of the objects with these labels that have the words of the list's search field, with links to the others. */
export const listOrSearch = Effect.fnUntraced(function* <A extends Identified, H>(
  visit: Visit,
  kind: Resource<A, H>,
  searched: SearchedBy<A>,
  labels: Labels
) {
  const { account, query } = visit
  const [asked, cursor] = [askedCondition(query, searched), cursorIn(query)]
  const isLabelled = (value: A) => {
    const found = kind.labels?.(value)
    return Object.entries(labels).every(([name, label]) => found?.[name] === label)
  }
  const { hasMore, rows } =
    asked === undefined
      ? yield* listObjects(account, kind, { cursor, labels })
      : yield* searchObjects(
          account,
          kind,
          { ...asked, matches: (value) => isLabelled(value) && asked.matches(value) },
          { cursor }
        )
  return { rows, links: (asked === undefined ? pageLinks : searchPageLinks)(visit, rows, hasMore) }
})
