/**
 * Reading of events from the records in which they happened.
 *
 * - One query reads the events of many lists and deliveries.
 * - A corrupt or lost record fails only the reads of its own events, not the others of the same query.
 * - An event keeps the API version in which it is rendered, from the record in which it happened (semantics
 *   webhooks.body, versions.events).
 */
import { Context, Effect, type Scope } from "effect"
import * as Batcher from "../process/Batcher.ts"
import type { AccountId, Document, Millis, Tombstone } from "./Document.ts"
import { Journal, type Place, type StorageFailure } from "./Journal.ts"
import {
  type ChainedRow,
  type EventEntry,
  type JournalRecord,
  missingRecord,
  missingItem,
  readRow,
  type RequestIdentity
} from "./Record.ts"

export interface StoredEvent {
  readonly id: string
  readonly type: string
  /** When the event happened, by the account's clock. */
  readonly at: Millis
  readonly request: RequestIdentity | null
  /** The API version in which the event is rendered. */
  readonly apiVersion: string
  readonly object: string
  /** The format of `object`: the one it was written in, or a newer one after `DocumentFormats` has converted it. */
  readonly format: number
  /** The previous values of the fields that an update changed. */
  readonly previous: Readonly<Record<string, unknown>> | null
  readonly version: number
  readonly deliveries: number
}

/** The parts of an event that differ between API versions. */
export type ShownEvent = Pick<EventEntry, "object" | "previous">

export interface EventVersionsShape {
  readonly namedBy: (account: AccountId) => { readonly account: AccountId; readonly id: string } | null
  /** Returns the version in that document; undefined stands for a missing document. */
  readonly versionOf: (document: Document | Tombstone | undefined) => string
  /** Renders an event, which is in the newest version, in another one. Returns the same event if nothing differs. */
  readonly shownIn: (version: string, event: ShownEvent) => ShownEvent
}

/** The API version of an account's new events. The module that owns the versions provides this service. */
export class EventVersions extends Context.Service<EventVersions, EventVersionsShape>()("till/engine/EventVersions") {}

export const storedEvents = (record: JournalRecord): ReadonlyMap<string, StoredEvent> =>
  new Map(record.events.map((event) => [event.id, storedEvent(record, event)]))

const storedEvent = (record: JournalRecord, event: EventEntry): StoredEvent => ({
  ...event,
  at: record.now,
  request: record.request,
  // A record with events has it.
  apiVersion: record.apiVersion!,
  version: record.version,
  deliveries: record.deliveries.filter((delivery) => delivery.event === event.id).length
})

/** The position of an event: the record that holds it, and its id. */
export interface EventPlace extends Place {
  readonly id: string
  readonly type?: string
}

/** Reads the events at these places, in their order. Dies of `JournalCorrupt` if one is not there. */
export type ReadEvents = (
  places: ReadonlyArray<EventPlace>
) => Effect.Effect<ReadonlyArray<StoredEvent>, StorageFailure>

/** Makes a reader that combines up to `listsMax` lists of places in a query. */
export const makeReader = Effect.fnUntraced(function* (
  listsMax: number
): Effect.fn.Return<ReadEvents, never, Journal | Scope.Scope> {
  const journal = yield* Journal
  const recordsOf = yield* Batcher.makeForLists((places: ReadonlyArray<Place>) => {
    // Many deliveries share an event, and many events may share a record.
    const distinct = new Map(places.map((place) => [nameOf(place), place]))
    return Effect.map(journal.at([...distinct.values()]), (rows) => {
      const records = new Map([...distinct.keys()].map((name, i) => [name, new EventsOfRecord(rows[i])]))
      return places.map((place) => records.get(nameOf(place))!)
    })
  }, listsMax)
  return (places) => Effect.map(recordsOf(places), (records) => places.map((place, i) => records[i]!.at(place)))
})

const nameOf = ({ account, version }: Place): string => `${account} ${version}`

/** The events of a record, which is read when the first of them is requested. */
class EventsOfRecord {
  readonly #row: ChainedRow | undefined
  #events: ReadonlyMap<string, StoredEvent> | undefined

  constructor(row: ChainedRow | undefined) {
    this.#row = row
  }

  at({ account, id, type, version }: EventPlace): StoredEvent {
    if (this.#row === undefined) throw missingRecord(account, version)
    this.#events ??= storedEvents(readRow(this.#row))
    const event = this.#events.get(id)
    if (event !== undefined && (type ?? event.type) === event.type) return event
    throw missingItem(account, version, id)
  }
}
