/** How pages read: one object, a page of a kind, and what has touched an object. */
import { Effect } from "effect"
import { ResourceMissing } from "../domain/Errors.ts"
import type { SearchQuery } from "../domain/SearchQuery.ts"
import { matches } from "../domain/SearchQuery.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { AccountId, Document, Identified, Labels } from "../engine/Document.ts"
import type { StoredEvent } from "../engine/Events.ts"
import type { DeliveryRow } from "../engine/Deliveries.ts"
import type { Resource } from "../payments/Documents.ts"
import { WEBHOOK_ENDPOINT } from "../payments/Documents.ts"
import type { SearchedBy } from "../payments/Search.ts"
import { filtersOf } from "../payments/Search.ts"
import type { Cursor } from "./components/Table.ts"

/** Rows of a list's page. */
export const PAGE_ROWS = 25

/** An object by its id. Fails with `ResourceMissing` if there is none in this account: another's does not exist. */
export const find = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Resource<A, H>,
  id: string
) {
  const entry = yield* Accounts.use((accounts) => accounts.read(account, id))
  if (entry === undefined || entry.deleted || entry.kind !== kind.name) {
    return yield* new ResourceMissing({ kind: kind.resourceKind, id, param: "id" })
  }
  return entry as Document<A, H>
})

export interface Listed<A> {
  /** Newest first. */
  readonly rows: ReadonlyArray<A>
  readonly hasMore: boolean
}

/** A page of the objects of a kind that have these labels. */
export const list = Effect.fnUntraced(function* <A extends Identified, H>(
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

/** A page of the objects of a kind that all queries find, of which there is one at least, newest first (9.19). */
export const search = Effect.fnUntraced(function* <A extends Identified, H>(
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
      // The first finds what the others look into.
      filters: filtersOf(queries[0], searched),
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

/** So many events are looked through around each moment. */
const AROUND_MAX = 100
/** So many endpoints are asked for deliveries. */
const ENDPOINTS_MAX = 16
/** Seconds in which what follows from a moment happens at once. */
const AT_ONCE_SECONDS = 2

/** An event about an object, with what became of its deliveries. */
export interface Touching {
  readonly event: StoredEvent
  readonly deliveries: ReadonlyArray<DeliveryRow>
}

const isAbout = ({ object }: StoredEvent, id: string): boolean => {
  const about = JSON.parse(object) as { readonly id?: string; readonly payment_intent?: unknown }
  return about.id === id || about.payment_intent === id
}

/**
 * The events about an object, newest first. No view leads from an object to its events, so those are looked through
 * that happened around moments at which something is known to have happened to it, in Unix seconds, and the account's
 * newest. In a busy account an update at another time is not among them.
 */
export const touching = Effect.fnUntraced(function* (account: AccountId, id: string, moments: ReadonlyArray<number>) {
  const accounts = yield* Accounts
  const windows = [...new Set(moments)].map((from) => ({ created: { from, before: from + AT_ONCE_SECONDS } }))
  const pages = yield* Effect.forEach(
    [{}, ...windows],
    (window) => accounts.events(account, { limit: AROUND_MAX, ...window }),
    {
      concurrency: 4
    }
  )
  const found = new Map<string, StoredEvent>()
  for (const { events } of pages) for (const event of events) if (isAbout(event, id)) found.set(event.id, event)
  const events = [...found.values()].toSorted((one, other) => (one.id < other.id ? 1 : -1))
  const deliveries = yield* deliveriesOf(account, events)
  return events.map((event): Touching => ({ event, deliveries: deliveries.get(event.id) ?? [] }))
})

/** Deliveries by their events. They are made when the events happen, or later if somebody sends one again. */
const deliveriesOf = Effect.fnUntraced(function* (account: AccountId, events: ReadonlyArray<StoredEvent>) {
  const accounts = yield* Accounts
  const byEvent = new Map<string, Array<DeliveryRow>>()
  if (events.every(({ deliveries }) => deliveries === 0)) return byEvent
  const { documents } = yield* accounts.list(account, {
    kind: WEBHOOK_ENDPOINT.name,
    prefix: WEBHOOK_ENDPOINT.prefix,
    limit: ENDPOINTS_MAX
  })
  const ids = new Set(events.map(({ id }) => id))
  const from = Math.floor(events.at(-1)!.at / 1000)
  const before = Math.floor(events[0]!.at / 1000) + AT_ONCE_SECONDS
  const pages = yield* Effect.forEach(
    documents,
    ({ id: destination }) =>
      accounts.deliveries(account, { destination, limit: AROUND_MAX, created: { from, before } }),
    { concurrency: 4 }
  )
  for (const row of pages.flatMap(({ deliveries }) => deliveries)) {
    if (ids.has(row.event)) byEvent.set(row.event, [...(byEvent.get(row.event) ?? []), row])
  }
  return byEvent
})
