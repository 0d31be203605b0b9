/**
 * Lists answer in pages (semantics lists.*). The engine decides what belongs on a page; here cursors are checked and
 * the envelope is put around texts that are JSON already.
 */
import { Effect } from "effect"
import { LIMIT_DEFAULT } from "../../api/List.ts"
import { type ResourceKind, ResourceMissing } from "../../domain/Errors.ts"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import { type Created, isWithin } from "../../engine/log/Created.ts"
import { type AccountId, type Document, encode, type Identified, type Labels } from "../../engine/log/Document.ts"
import type { Cursor } from "../../engine/views/Views.ts"
import { joinJson } from "../../json/JoinJson.ts"
import type { Resource } from "../../payments/shared/Documents.ts"
import { readEntry } from "../../payments/shared/ReadDocument.ts"
import type { Json } from "./Handler.ts"

/** Parameters of every list, decoded. */
export interface ListParameters {
  readonly limit?: number
  readonly starting_after?: string
  readonly ending_before?: string
  readonly created?: number
  readonly "created[gt]"?: number
  readonly "created[gte]"?: number
  readonly "created[lt]"?: number
  readonly "created[lte]"?: number
}

/** The time that all bounds on `created` leave (semantics lists.created); undefined if there are none. */
export const createdOf = (query: ListParameters): Created | undefined => {
  const { created, "created[gt]": gt, "created[gte]": gte, "created[lt]": lt, "created[lte]": lte } = query
  const from = [created, gt === undefined ? gt : gt + 1, gte].filter((bound) => bound !== undefined)
  const before = [created, lte].map((bound) => (bound === undefined ? bound : bound + 1))
  const until = [...before, lt].filter((bound) => bound !== undefined)
  if (from.length + until.length === 0) return undefined
  return {
    ...(from.length > 0 && { from: Math.max(...from) }),
    ...(until.length > 0 && { before: Math.min(...until) })
  }
}

/** A list of `A` answers with this. */
export interface ListOf<A> {
  readonly object: "list"
  readonly data: ReadonlyArray<A>
  readonly has_more: boolean
  readonly url: string
  readonly next_cursor: string | null
}

type CursorName = "starting_after" | "ending_before"

/** Looks a cursor up; it has to be of the list's own kind (semantics lists.cursors.unknown). */
type CursorExists = (account: AccountId, id: string) => Effect.Effect<boolean, Unavailable, Accounts>

/** Gives the cursor as the engine takes it. Fails for one that never was an object of the kind. */
export const cursorOf = Effect.fnUntraced(function* (
  account: AccountId,
  parameters: ListParameters,
  kind: ResourceKind,
  exists: CursorExists
) {
  const { ending_before, starting_after } = parameters
  const id = starting_after ?? ending_before
  if (id === undefined) return {}
  if (!(yield* exists(account, id))) {
    const param: CursorName = starting_after === undefined ? "ending_before" : "starting_after"
    return yield* new ResourceMissing({ kind, id, param })
  }
  const cursor: Cursor = starting_after === undefined ? { newerThan: id } : { olderThan: id }
  return cursor
})

/** A list filters by these; what is undefined was not given. */
type Filters = Readonly<Record<string, string | undefined>>

/** Gives the labels that the documents of a list must have. */
export const labelsOf = (filters: Filters): Labels =>
  Object.fromEntries(Object.entries(filters).filter((entry): entry is [string, string] => entry[1] !== undefined))

/** Reads one page of an account's documents of a kind, in the envelope. */
export const listDocuments = Effect.fnUntraced(function* <A extends Identified, H>(
  { account, path, query }: { readonly account: AccountId; readonly path: string; readonly query: ListParameters },
  kind: Resource<A, H>,
  filters: Filters = {}
) {
  const accounts = yield* Accounts
  const cursor = yield* documentCursorOf(account, query, kind)
  const { documents, hasMore } = yield* accounts.list(account, {
    kind: kind.name,
    prefix: kind.prefix,
    labels: labelsOf(filters),
    limit: query.limit ?? LIMIT_DEFAULT,
    created: createdOf(query),
    ...cursor
  })
  return listJson<A>(documents, hasMore, path)
})

/**
 * Gives the cursor of a list of documents. A tombstone is as good as a document: cursors outlive what is removed
 * (semantics lists.cursors.unknown).
 */
const documentCursorOf = <A extends Identified, H>(account: AccountId, query: ListParameters, kind: Resource<A, H>) =>
  cursorOf(account, query, kind.resourceKind, (account, id) =>
    Effect.map(readEntry(account, kind, id), (entry) => entry !== undefined)
  )

/** Takes one page of a few documents that are known already, in the envelope. */
export const listFound = Effect.fnUntraced(function* <A extends Identified & { readonly created: number }, H>(
  { account, path, query }: { readonly account: AccountId; readonly path: string; readonly query: ListParameters },
  kind: Resource<A, H>,
  found: ReadonlyArray<Document<A, H>>
) {
  const { newerThan, olderThan } = yield* documentCursorOf(account, query, kind)
  const limit = query.limit ?? LIMIT_DEFAULT
  const newestFirst = found.toSorted((a, b) => (a.id < b.id ? 1 : -1))
  const created = createdOf(query)
  const within = newestFirst.filter(
    ({ id, value }) =>
      (newerThan === undefined || id > newerThan) &&
      (olderThan === undefined || id < olderThan) &&
      (created === undefined || isWithin(value.created, created))
  )
  // A page has the nearest to the cursor (semantics lists.cursors, lists.has_more).
  const page = newerThan === undefined ? within.slice(0, limit) : within.slice(-limit)
  return listJson<A>(page, within.length > limit, path)
})

/** Takes a page of a cart, in the order of the cart (semantics lists.order). A line of another cart is no cursor. */
export const listLines = Effect.fnUntraced(function* <A extends Identified>(
  { account, path, query }: { readonly account: AccountId; readonly path: string; readonly query: ListParameters },
  lines: ReadonlyArray<A>
) {
  const { newerThan, olderThan } = yield* cursorOf(account, query, "Line item", (_, id) =>
    Effect.succeed(lines.some((line) => line.id === id))
  )
  const position = (id: string) => lines.findIndex((line) => line.id === id)
  const limit = query.limit ?? LIMIT_DEFAULT
  const end = newerThan === undefined ? undefined : position(newerThan)
  const start = end === undefined ? (olderThan === undefined ? 0 : position(olderThan) + 1) : Math.max(0, end - limit)
  const page = lines.slice(start, end ?? start + limit)
  const hasMore = end === undefined ? start + limit < lines.length : start > 0
  return listJson<A>(
    page.map((line) => ({ id: line.id, json: encode(line) })),
    hasMore,
    path
  )
})

/** Puts the envelope around a page. */
export const listJson = <A>(
  items: ReadonlyArray<{ readonly id: string; readonly json: string }>,
  hasMore: boolean,
  path: string
): Json<ListOf<A>> => {
  const cursor = hasMore ? JSON.stringify(items.at(-1)!.id) : "null"
  const data = joinJson(items.map(({ json }) => json))
  return `{"object":"list","data":[${data}],"has_more":${hasMore},"url":${JSON.stringify(path)},"next_cursor":${cursor}}`
}
