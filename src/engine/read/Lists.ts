/** Lists of documents, which the views name. Pages are cached until a document of their kind changes. */
import { Effect, type Scope } from "effect"
import type { Actor } from "../actor/Actor.ts"
import * as Batcher from "../process/Batcher.ts"
import { labelsText } from "../log/Checksum.ts"
import { type Between, type Created, idsOf, isWithin } from "../log/Created.ts"
import type { AccountId, Document, Identified } from "../log/Document.ts"
import { LIST_ROW_BYTES, LIST_ROWS_MAX, MEMORY, MEMORY_LIMIT } from "../process/Memory.ts"
import * as Metrics from "../process/Metrics.ts"
import { DocumentFormats, type DocumentFormatsShape } from "../views/DocumentFormats.ts"
import { ListPages, type RowsPage } from "./ListPages.ts"
import { Journal, type JournalShape, type StorageFailure } from "../log/Journal.ts"
import type { DocumentRow } from "../views/Projection.ts"
import { JournalCorrupt, type Span } from "../log/Record.ts"
import type { Filter } from "../log/Search.ts"
import { type Cursor, type ListPage, type ListQuery, Views, type ViewsShape } from "../views/Views.ts"

/** Lists in one query, at most; each has up to a hundred documents or records. */
export const LISTS_MAX = 32

interface Dated {
  /** Seconds since the Unix epoch; every document has it that can be listed by its time of creation. */
  readonly created: number
}

/** Restricts a list to a time of creation; the ids of its kind must have a prefix. */
export interface CreatedQuery {
  readonly created?: Created | undefined
}

export interface Search {
  readonly kind: string
  readonly prefix: string
  /** Each matching document is found by at least one of these. */
  readonly filters: ReadonlyArray<Filter>
  readonly matches: (value: Identified) => boolean
  readonly olderThan?: string
  /** Size of the page, 1 or more. */
  readonly limit: number
}

export interface Lists {
  /** The result of `list`, if all of it is in memory. */
  readonly peek: (actor: Actor, query: ListQuery & CreatedQuery) => ListPage | undefined
  readonly list: (actor: Actor, query: ListQuery & CreatedQuery) => Effect.Effect<ListPage, StorageFailure>
  readonly search: (actor: Actor, search: Search) => Effect.Effect<ListPage, StorageFailure>
}

export const make: Effect.Effect<Lists, never, DocumentFormats | Journal | Scope.Scope | Views> = Effect.gen(
  function* () {
    const formats = yield* DocumentFormats
    const journal = yield* Journal
    const views = yield* Views
    // Other lists may take long, so they are not batched: each ends with its own request.
    const newest = yield* Batcher.make(views.newest, LISTS_MAX)
    const slices = yield* Batcher.makeForLists(journal.slices, LISTS_MAX)

    const rowsOf = ({ account }: Actor, { labels = {}, newerThan, ...query }: ListQuery) => {
      if (newerThan !== undefined) return views.list(account, { ...query, labels, newerThan })
      return Object.keys(labels).length === 0
        ? newest({ ...query, account })
        : views.list(account, { ...query, labels })
    }

    const documentsOf = makeDocumentsOf(formats, slices)

    const readRows = (actor: Actor, query: ListQuery) =>
      Effect.flatMap(rowsOf(actor, query), (rows) =>
        Effect.map(documentsOf(actor, rows), (documents) =>
          rows.map((row, i) => ({ id: row.id, row, document: documents[i]! }))
        )
      )

    const pages = new ListPages()
    yield* Metrics.observeGauge(MEMORY, () => pages.rows * LIST_ROW_BYTES, { owner: "list_pages" })
    yield* Metrics.observeGauge(MEMORY_LIMIT, () => LIST_ROWS_MAX * LIST_ROW_BYTES, { owner: "list_pages" })
    /** Reads the documents of a cached page, and puts them into the actor's cache for the next request. */
    const readAgain = Effect.fnUntraced(function* (actor: Actor, { kind }: ListQuery, { hasMore, page }: RowsPage) {
      const version = actor.durable
      const documents = yield* documentsOf(actor, page)
      if (actor.isUnchanged(kind, version))
        for (const document of documents) actor.documents.offer(document.id, document)
      return { documents, hasMore }
    })

    const readPage = Effect.fnUntraced(function* (actor: Actor, query: ListQuery) {
      const version = actor.projected
      const { hasMore, page } = yield* pageOf(query, (query) => readRows(actor, query))
      pages.set(actor, query, version, { hasMore, page: page.map(({ row }) => row) })
      return { documents: page.map(({ document }) => document), hasMore }
    })
    const list: Lists["list"] = Effect.fnUntraced(function* (actor, { created, ...query }) {
      if (created === undefined) {
        const known = pages.get(actor, query)
        const page = readPage(actor, query)
        return yield* orOnceMore(known === undefined ? page : readAgain(actor, query, known), page)
      }
      const { between, isExact } = yield* createdBetween(views, actor.account, query.prefix, created)
      const read = pageOf(
        { ...query, ...between },
        (query) => readRows(actor, query),
        ({ document }) => isExact || isWithin((document.value as Identified & Dated).created, created)
      )
      const { hasMore, page } = yield* orOnceMore(read)
      return { documents: page.map(({ document }) => document), hasMore }
    })

    const search = makeSearch(views, documentsOf)
    return {
      peek: (actor, query) => peekPage(pages, actor, query),
      list,
      search: (actor, wanted) => orOnceMore(search(actor, wanted))
    }
  }
)

/** Makes the function that returns the documents of rows: from memory, or read from the journal. */
const makeDocumentsOf = (formats: DocumentFormatsShape, slices: JournalShape["slices"]): DocumentsOf =>
  Effect.fnUntraced(function* (actor, rows) {
    const { account } = actor
    const known = rows.map((row) => {
      const document = knownDocument(actor, row)
      return document !== undefined && isRowOf(row, document) ? document : undefined
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

/** Reads anew if texts did not fit their rows: an erasure may have replaced a record between both reads. */
const orOnceMore = <A, E>(read: Effect.Effect<A, E>, anew = read): Effect.Effect<A, E> =>
  Effect.catchDefect(read, (defect) => (defect instanceof JournalCorrupt ? anew : Effect.die(defect)))

type DocumentsOf = (
  actor: Actor,
  rows: ReadonlyArray<DocumentRow>
) => Effect.Effect<ReadonlyArray<Document>, StorageFailure>

const makeSearch = (views: ViewsShape, documentsOf: DocumentsOf): Lists["search"] =>
  Effect.fnUntraced(function* (actor, { filters, matches, ...query }) {
    const { account } = actor
    const bounded = yield* Effect.forEach(filters, (filter) =>
      Effect.map(createdBetween(views, account, query.prefix, filter.created), ({ between }) => ({
        filter,
        ...between
      }))
    )
    const { hasMore, page } = yield* pageOf(
      query,
      Effect.fnUntraced(function* (next) {
        const found = yield* Effect.forEach(bounded, (each) => views.search(account, { ...next, ...each }))
        const rows = new Map(found.flat().map((row) => [row.id, row]))
        const newest = [...rows.values()].toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, next.limit)
        return yield* documentsOf(actor, newest)
      }),
      ({ value }) => matches(value)
    )
    return { documents: page, hasMore }
  })

const peekPage = (pages: ListPages, actor: Actor, query: ListQuery & CreatedQuery): ListPage | undefined => {
  if (query.created !== undefined || !actor.isTimely) return undefined
  const known = pages.get(actor, query)
  if (known === undefined) return undefined
  const documents: Array<Document> = []
  for (const row of known.page) {
    const document = knownDocument(actor, row)
    if (document === undefined) return undefined
    documents.push(document)
  }
  return { documents, hasMore: known.hasMore }
}

const knownDocument = (actor: Actor, { id, version }: DocumentRow): Document | undefined => {
  const document = actor.durableDocument(id)
  return document?.version === version && !document.deleted ? document : undefined
}

/** Whether a row has the kind and labels of its document. If not, the document is read, which refuses the row. */
const isRowOf = ({ kind, labels }: DocumentRow, document: Document): boolean =>
  document.kind === kind && labelsText(document.labels) === labelsText(labels)

const everyRow = () => true
/** Rows read at a time, at most. */
const READ_MAX = 1000

/** Reads a page and one row more, for `hasMore`. Rows that `keeps` rejects do not count. */
export const pageOf = Effect.fnUntraced(function* <
  Row extends { readonly id: string },
  Query extends Cursor & { readonly limit: number },
  E
>(query: Query, read: (query: Query) => Effect.Effect<ReadonlyArray<Row>, E>, keeps: (row: Row) => boolean = everyRow) {
  const { limit, newerThan } = query
  const found: Array<Row> = []
  for (let next = { ...query, limit: limit + 1 }; ;) {
    const rows = yield* read(next)
    for (const row of rows) if (keeps(row)) found.push(row)
    if (found.length > limit || rows.length < next.limit) break
    const { id } = rows.at(-1)!
    const cursor = newerThan === undefined ? { olderThan: id } : { newerThan: id }
    next = { ...next, ...cursor, limit: Math.min(2 * next.limit, READ_MAX) }
  }
  const page = found.slice(0, limit)
  return { page: newerThan === undefined ? page : page.toReversed(), hasMore: found.length > limit }
})

/** Bounds for the ids of objects created at a time. Unless `isExact`, other objects have ids within them too. */
export const createdBetween = (
  views: ViewsShape,
  account: AccountId,
  prefix: string | undefined,
  created: Created | undefined
): Effect.Effect<{ readonly between: Between; readonly isExact: boolean }, StorageFailure> => {
  if (created === undefined) return ANY_TIME
  if (prefix === undefined) return Effect.die(new Error("Ids without a prefix do not say when they were made"))
  return Effect.map(Effect.catchTag(views.standing(account), "JournalCorrupt", Effect.die), ({ ahead }) => ({
    between: idsOf(prefix, created, ahead),
    isExact: ahead === 0
  }))
}

const ANY_TIME = Effect.succeed({ between: {}, isExact: true })
