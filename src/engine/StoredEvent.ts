/** Events as they are read back: out of the record in which they happened. */
import type { Millis } from "./Document.ts"
import type { EventEntry, JournalRecord, RequestIdentity } from "./Record.ts"

export interface StoredEvent {
  readonly id: string
  readonly type: string
  /** By the account's clock. */
  readonly at: Millis
  readonly request: RequestIdentity | null
  /** JSON of the object as it was. */
  readonly object: string
  /** Of `object`: the one that it was written in, unless `Formats.ts` has made it a newer one. */
  readonly format: number
  /** Old values of what an update changed. */
  readonly previous: Readonly<Record<string, unknown>> | null
  /** The record that holds it. */
  readonly version: number
  /** Deliveries that its own record made of it. */
  readonly deliveries: number
}

/** The events of a record by their ids. */
export const storedEvents = (record: JournalRecord): ReadonlyMap<string, StoredEvent> =>
  new Map(record.events.map((event) => [event.id, storedEvent(record, event)]))

const storedEvent = (record: JournalRecord, event: EventEntry): StoredEvent => ({
  ...event,
  at: record.now,
  request: record.request,
  version: record.version,
  deliveries: record.deliveries.filter((delivery) => delivery.event === event.id).length
})
