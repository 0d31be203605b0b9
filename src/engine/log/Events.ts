/**
 * Events as they are read back: out of the record in which they happened.
 *
 * - Events of many lists and deliveries are read with one query.
 * - A record that is corrupt or lost fails whoever asks for its events, and nobody who happens to ask at the same time.
 * - An event keeps the version of the API in which it is rendered, from the record in which it happened (semantics W8).
 */
import { Context, Effect } from "effect"
import type { Scope } from "effect"
import * as Batcher from "../process/Batcher.ts"
import type { AccountId, Document, Millis, Tombstone } from "./Document.ts"
import type { Place, StorageFailure } from "./Journal.ts"
import { Journal } from "./Journal.ts"
import type { ChainedRow, EventEntry, JournalRecord, RequestIdentity } from "./Record.ts"
import { lost, notHeld, readRow } from "./Record.ts"

export interface StoredEvent {
  readonly id: string
  readonly type: string
  /** The account's clock said this time when the event happened. */
  readonly at: Millis
  readonly request: RequestIdentity | null
  /** The version of the API in which the event is rendered. */
  readonly apiVersion: string
  /** This is JSON of the object as it was. */
  readonly object: string
  /** `object` is in this format: the one that it was written in, unless `Formats.ts` has made it a newer one. */
  readonly format: number
  /** Old values of what an update changed. */
  readonly previous: Readonly<Record<string, unknown>> | null
  /** The record of this version holds the event. */
  readonly version: number
  /** The event's own record made so many deliveries of it. */
  readonly deliveries: number
}

/** What versions may show of an event in different ways. */
export type ShownEvent = Pick<EventEntry, "object" | "previous">

export interface EventVersionsShape {
  /** Names the document that says in which version an account's events are rendered; null if no document does. */
  readonly namedBy: (account: AccountId) => { readonly account: AccountId; readonly id: string } | null
  /** Reads the version out of that document; undefined stands for none. */
  readonly versionOf: (document: Document | Tombstone | undefined) => string
  /** Renders an event, which is in the newest version, in another one. Returns the same event if nothing differs. */
  readonly shownIn: (version: string, event: ShownEvent) => ShownEvent
}

/**
 * Tells the engine in which version of the API an account's events are rendered that happen now: the account's default.
 * The engine asks when an event happens, and writes the answer into its record. Whoever knows the versions provides
 * this.
 */
export class EventVersions extends Context.Service<EventVersions, EventVersionsShape>()("till/engine/EventVersions") {}

/** Gives the events of a record by their ids. */
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

/** The record of a version holds the event. */
export interface EventPlace extends Place {
  readonly id: string
  /** Whoever knows it finds no event of another type there. */
  readonly type?: string
}

/**
 * Reads the events at these places, in their order. Dies of `JournalCorrupt` if the journal does not hold one of them.
 */
export type ReadEvents = (
  places: ReadonlyArray<EventPlace>
) => Effect.Effect<ReadonlyArray<StoredEvent>, StorageFailure>

/** Makes a reader that puts at most `listsMax` lists of places into a query. */
export const makeReader = Effect.fnUntraced(function* (
  listsMax: number
): Effect.fn.Return<ReadEvents, never, Journal | Scope.Scope> {
  const journal = yield* Journal
  const recordsOf = yield* Batcher.makeForLists((places: ReadonlyArray<Place>) => {
    // One event goes to many endpoints, and one record may hold many events.
    const distinct = new Map(places.map((place) => [nameOf(place), place]))
    return Effect.map(journal.at([...distinct.values()]), (rows) => {
      const records = new Map([...distinct.keys()].map((name, i) => [name, new EventsOfRecord(rows[i])]))
      return places.map((place) => records.get(nameOf(place))!)
    })
  }, listsMax)
  return (places) => Effect.map(recordsOf(places), (records) => places.map((place, i) => records[i]!.at(place)))
})

const nameOf = ({ account, version }: Place): string => `${account} ${version}`

/** The events of a record, read by the first who asks for one. */
class EventsOfRecord {
  readonly #row: ChainedRow | undefined
  #events: ReadonlyMap<string, StoredEvent> | undefined

  constructor(row: ChainedRow | undefined) {
    this.#row = row
  }

  at({ account, id, type, version }: EventPlace): StoredEvent {
    if (this.#row === undefined) throw lost(account, version)
    this.#events ??= storedEvents(readRow(this.#row))
    const event = this.#events.get(id)
    if (event !== undefined && (type ?? event.type) === event.type) return event
    throw notHeld(account, version, id)
  }
}
