/**
 * Reads events back out of the journal: those of many lists and deliveries with one query.
 *
 * A record that is corrupt or lost fails whoever asks for its events, and nobody who happens to ask at the same time.
 */
import { Effect } from "effect"
import type { Scope } from "effect"
import * as Batcher from "./Batcher.ts"
import type { Place, StorageFailure } from "./Journal.ts"
import { Journal } from "./Journal.ts"
import type { JournalRow } from "./Record.ts"
import { fromBytes, lost, notHeld } from "./Record.ts"
import type { StoredEvent } from "./StoredEvent.ts"
import { storedEvents } from "./StoredEvent.ts"

/** Where an event lies: in the record of a version. */
export interface EventPlace extends Place {
  readonly id: string
}

/** The events at these places, in their order. Dies of `JournalCorrupt` if the journal does not hold one of them. */
export type ReadEvents = (
  places: ReadonlyArray<EventPlace>
) => Effect.Effect<ReadonlyArray<StoredEvent>, StorageFailure>

/** At most `listsMax` lists of places go into a query. */
export const make = Effect.fnUntraced(function* (
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
  readonly #row: JournalRow | undefined
  #events: ReadonlyMap<string, StoredEvent> | undefined

  constructor(row: JournalRow | undefined) {
    this.#row = row
  }

  at({ account, id, version }: EventPlace): StoredEvent {
    if (this.#row === undefined) throw lost(account, version)
    this.#events ??= storedEvents(fromBytes(this.#row))
    const event = this.#events.get(id)
    if (event !== undefined) return event
    throw notHeld(account, version, id)
  }
}
