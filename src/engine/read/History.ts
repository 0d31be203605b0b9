/**
 * History: from documents to the records that have written them.
 *
 * - A view names these records (`RevisionRow`), and the journal has their contents. No search is needed, and no other
 *   record has written the documents.
 * - A read fails if a record is corrupt or lost, or does not hold a document that the view names.
 * - A request's record is searched near the journal's end at the time of the answer: records follow the wall clock, as
 *   long as the clock is not set back.
 * - Documents from before a wipe have no history.
 */
import { Effect } from "effect"
import { parseJson } from "../../json/JsonParse.ts"
import type { AccountId, Document, Identified, Millis, Tombstone } from "../log/Document.ts"
import { type StoredEvent, storedEvents } from "../log/Events.ts"
import { DocumentFormats } from "../views/DocumentFormats.ts"
import { Journal, type StorageFailure } from "../log/Journal.ts"
import { pageOf } from "./Lists.ts"
import {
  type ChainedRow,
  isAnswer,
  missingRecord,
  missingItem,
  readRow,
  type RequestIdentity,
  timeOf
} from "../log/Record.ts"
import { recordId, recordVersion, type Revision, type RevisionQuery, Views } from "../views/Views.ts"

/** A record that has written at least one of the requested documents. */
export interface HistoryEntry {
  /** Sorts by time; serves as a cursor. */
  readonly id: string
  /** Time by the account's clock. */
  readonly at: Millis
  /** The request that caused the record; null for a timer. */
  readonly request: RequestIdentity | null
  /** The requested documents that the record has written, in their state after it. */
  readonly documents: ReadonlyArray<Document | Tombstone>
  /** Other documents that the record has written. */
  readonly others: ReadonlyArray<Document | Tombstone>
  /** Events that the record emitted about the requested documents, oldest first. */
  readonly events: ReadonlyArray<StoredEvent>
  /** JSON text of the answer to the request; null if the record has none. */
  readonly answer: string | null
}

export interface HistoryPage {
  /** Newest first. */
  readonly entries: ReadonlyArray<HistoryEntry>
  readonly hasMore: boolean
}

/** A request that may have written some documents. */
export interface RequestQuery {
  readonly request: string
  readonly ids: ReadonlyArray<string>
  /** Arrival by the wall clock, and the duration until the answer. */
  readonly at: Millis
  readonly millis: number
}

/** Largest difference between the clocks of two machines. */
const APART_MILLIS = 60_000
const RECORDS = 50

export interface History {
  readonly page: (account: AccountId, query: RevisionQuery) => Effect.Effect<HistoryPage, StorageFailure>
  /** The record of a request, if it has written at least one of the documents. */
  readonly ofRequest: (
    account: AccountId,
    query: RequestQuery
  ) => Effect.Effect<HistoryEntry | undefined, StorageFailure>
}

/** Makes a reader of history. `today` renders an event in the form in which it is read today. */
export const make = Effect.fnUntraced(function* (
  today: (account: AccountId, event: StoredEvent) => StoredEvent
): Effect.fn.Return<History, never, DocumentFormats | Journal | Views> {
  const formats = yield* DocumentFormats
  const journal = yield* Journal
  const views = yield* Views

  const entryOf = (account: AccountId, { documents: ids, id }: Revision, row: ChainedRow | undefined): HistoryEntry => {
    const version = recordVersion(id)
    if (row === undefined) throw missingRecord(account, version)
    const record = readRow(row)
    const written = new Map(record.changes.map((change) => [change.id, change]))
    const missing = ids.find((id) => !written.has(id))
    if (missing !== undefined) throw missingItem(account, version, missing)
    const entries = [...written.values()].map((change) => formats.change(account, version, change))
    const isRequested = (id: string) => ids.includes(id)
    return {
      id,
      at: record.now,
      request: record.request,
      documents: entries.filter(({ id }) => isRequested(id)),
      others: entries.filter(({ id }) => !isRequested(id)),
      events: [...storedEvents(record).values()]
        .filter(({ object }) => isRequested((parseJson(object) as Identified).id))
        .map((event) => today(account, event)),
      answer: record.response !== null && isAnswer(record.response) ? record.response.body : null
    }
  }

  const rowsOf = (account: AccountId, versions: ReadonlyArray<number>) =>
    journal.at(versions.map((version) => ({ account, version })))

  /** Finds the newest version at a time by binary search in the journal. */
  const versionAt = Effect.fnUntraced(function* (account: AccountId, newest: number, time: Millis) {
    let [before, after] = [0, newest + 1]
    while (before + 1 < after) {
      const middle = Math.floor((before + after) / 2)
      const [row] = yield* rowsOf(account, [middle])
      if (row === undefined) throw missingRecord(account, middle)
      if (timeOf(row) > time) after = middle
      else before = middle
    }
    return before
  })

  return {
    page: Effect.fnUntraced(function* (account, query) {
      const { hasMore, page } = yield* pageOf(query, (query) => views.revisions(account, query))
      const rows = yield* rowsOf(
        account,
        page.map(({ id }) => recordVersion(id))
      )
      return { entries: page.map((revision, i) => entryOf(account, revision, rows[i])), hasMore }
    }),

    ofRequest: Effect.fnUntraced(function* (account, { at, ids, millis, request }) {
      const newest = (yield* journal.versions([account])).get(account) ?? 0
      const last = yield* versionAt(account, newest, at + millis + APART_MILLIS)
      const olderThan = recordId(last + 1)
      let newerThan = recordId(yield* versionAt(account, last, at - APART_MILLIS))
      for (;;) {
        const revisions = yield* views.revisions(account, { ids, newerThan, olderThan, limit: RECORDS })
        const rows = yield* rowsOf(
          account,
          revisions.map(({ id }) => recordVersion(id))
        )
        const entries = revisions.map((revision, i) => entryOf(account, revision, rows[i]))
        const found = entries.find((entry) => entry.request?.id === request)
        if (found !== undefined || revisions.length < RECORDS) return found
        newerThan = revisions.at(-1)!.id
      }
    })
  }
})
