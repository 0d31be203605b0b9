/**
 * History: from documents to the records that have written them.
 *
 * - A view says which records those are (`RevisionRow`), and the journal what they did: nothing is looked for, and what
 *   is not among them has written none of the documents.
 * - A record that is corrupt or lost, or that holds none of what the view says, fails whoever asks.
 * - What was forgotten with a wipe has no history.
 */
import { Effect } from "effect"
import type { AccountId, Document, Identified, Millis, Tombstone } from "./Document.ts"
import type { StoredEvent } from "./Events.ts"
import { storedEvents } from "./Events.ts"
import { Formats } from "./Formats.ts"
import type { StorageFailure } from "./Journal.ts"
import { Journal } from "./Journal.ts"
import { pageOf } from "./Lists.ts"
import type { ChainedRow, RequestIdentity } from "./Record.ts"
import { lost, notHeld, readRow } from "./Record.ts"
import type { Revision, RevisionQuery } from "./Views.ts"
import { recordVersion, Views } from "./Views.ts"

/** A record that has written some of the documents. */
export interface HistoryEntry {
  /** Sorts by when that was: a cursor. */
  readonly id: string
  /** By the account's clock. */
  readonly at: Millis
  /** The request that the record carried out; null if it happened by itself. */
  readonly request: RequestIdentity | null
  /** Those of the documents that it has written, as it left them. */
  readonly documents: ReadonlyArray<Document | Tombstone>
  /** What else it has written. */
  readonly others: ReadonlyArray<Document | Tombstone>
  /** What it has told of those documents, in the order in which it happened. */
  readonly events: ReadonlyArray<StoredEvent>
  /** JSON text of the answer to the request, if the record has it. */
  readonly answer: string | null
}

export interface HistoryPage {
  /** Newest first. */
  readonly entries: ReadonlyArray<HistoryEntry>
  readonly hasMore: boolean
}

/** Makes a reader of history, for which `today` gives events as they are read today. */
export const make = Effect.fnUntraced(function* (
  today: (account: AccountId, event: StoredEvent) => StoredEvent
): Effect.fn.Return<
  (account: AccountId, query: RevisionQuery) => Effect.Effect<HistoryPage, StorageFailure>,
  never,
  Formats | Journal | Views
> {
  const formats = yield* Formats
  const journal = yield* Journal
  const views = yield* Views

  const entryOf = (account: AccountId, { documents: ids, id }: Revision, row: ChainedRow | undefined): HistoryEntry => {
    const version = recordVersion(id)
    if (row === undefined) throw lost(account, version)
    const record = readRow(row)
    const written = new Map(record.changes.map((change) => [change.id, change]))
    const missing = ids.find((id) => !written.has(id))
    if (missing !== undefined) throw notHeld(account, version, missing)
    const entries = [...written.values()].map((change) => formats.change(account, version, change))
    const isAsked = (id: string) => ids.includes(id)
    return {
      id,
      at: record.now,
      request: record.request,
      documents: entries.filter(({ id }) => isAsked(id)),
      others: entries.filter(({ id }) => !isAsked(id)),
      events: [...storedEvents(record).values()]
        .filter(({ object }) => isAsked((JSON.parse(object) as Identified).id))
        .map((event) => today(account, event)),
      answer: record.response?.body ?? null
    }
  }

  return (account, query) =>
    Effect.gen(function* () {
      const { hasMore, page } = yield* pageOf(query, (query) => views.revisions(account, query))
      const rows = yield* journal.at(page.map(({ id }) => ({ account, version: recordVersion(id) })))
      return { entries: page.map((revision, i) => entryOf(account, revision, rows[i])), hasMore }
    })
})
