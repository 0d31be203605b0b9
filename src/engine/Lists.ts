/**
 * Lists of documents: the views say which documents there are, and where the journal has them; those in the actor's
 * memory are taken from there.
 */
import { Effect } from "effect"
import type { Scope } from "effect"
import type { Actor } from "./Actor.ts"
import * as Batcher from "./Batcher.ts"
import type { Document } from "./Document.ts"
import { Formats } from "./Formats.ts"
import type { StorageFailure } from "./Journal.ts"
import { Journal } from "./Journal.ts"
import type { DocumentRow } from "./Projection.ts"
import type { Span } from "./Record.ts"
import type { ListPage, ListQuery } from "./Views.ts"
import { Views } from "./Views.ts"

/** Lists in one query, at most: each asks for up to a hundred documents or records. */
export const LISTS_MAX = 32

/** One page of the documents that the views of an actor's account have. */
export type List = (actor: Actor, query: ListQuery) => Effect.Effect<ListPage, StorageFailure>

export const make: Effect.Effect<List, never, Formats | Journal | Scope.Scope | Views> = Effect.gen(function* () {
  const formats = yield* Formats
  const journal = yield* Journal
  const views = yield* Views
  // Any other list may take long, and then ends with its request; nobody is to wait for it.
  const newest = yield* Batcher.make(views.newest, LISTS_MAX)
  const slices = yield* Batcher.makeForLists(journal.slices, LISTS_MAX)

  const rowsOf = ({ account }: Actor, { labels = {}, newerThan, ...query }: ListQuery) => {
    if (newerThan !== undefined) return views.list(account, { ...query, labels, newerThan })
    return Object.keys(labels).length === 0 ? newest({ ...query, account }) : views.list(account, { ...query, labels })
  }

  const documentsOf = Effect.fnUntraced(function* (actor: Actor, rows: ReadonlyArray<DocumentRow>) {
    const { account } = actor
    const known = rows.map(({ id, version }) => {
      const document = actor.durableDocument(id)
      return document?.version === version ? document : undefined
    })
    const missing = rows.filter((_, i) => known[i] === undefined)
    if (missing.length === 0) return known as ReadonlyArray<Document>
    const spans = missing.flatMap(({ documentSpan, hiddenSpan, version }) =>
      [documentSpan, hiddenSpan].flatMap((span) => (span === null ? [] : [{ account, version, span }]))
    )
    const texts = (yield* slices(spans)).values()
    const next = (span: Span | null) => (span === null ? null : (texts.next().value ?? null))
    return rows.map((row, i) => {
      return known[i] ?? formats.document({ ...row, document: next(row.documentSpan), hidden: next(row.hiddenSpan) })
    }) as ReadonlyArray<Document>
  })

  return Effect.fnUntraced(function* (actor, query) {
    const { hasMore, page } = yield* pageOf(query, (query) => rowsOf(actor, query))
    return { documents: yield* documentsOf(actor, page), hasMore }
  })
})

/** Reads one row beyond the limit, which tells whether there are more, and puts the newest first. */
export const pageOf = <Row, Query extends { readonly limit: number; readonly newerThan?: string }, E>(
  query: Query,
  read: (query: Query) => Effect.Effect<ReadonlyArray<Row>, E>
) =>
  Effect.map(read({ ...query, limit: query.limit + 1 }), (rows) => {
    const page = rows.slice(0, query.limit)
    return { page: query.newerThan === undefined ? page : page.toReversed(), hasMore: rows.length > query.limit }
  })
