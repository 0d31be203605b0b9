/**
 * Views: folds of the journal that lists, activations and the scheduler read.
 *
 * Port. Only the projector writes them, and only forward: a projection is applied to an account if the account's
 * checkpoint is exactly the projection's first version, so that two writers cannot interleave.
 */
import { Context, type Effect } from "effect"
import type { Between } from "../log/Created.ts"
import type { AccountId, Document, Labels, Millis } from "../log/Document.ts"
import type { StorageFailure } from "../log/Journal.ts"
import type { Partition } from "../process/Placement.ts"
import type {
  DeliveryRow,
  DocumentRow,
  EventRow,
  KeyRow,
  ProjectedDocument,
  Projection,
  RevisionRow,
  SubscriptionRow,
  TimerRow
} from "./Projection.ts"
import type { StoredEvent } from "../log/Events.ts"
import type { JournalCorrupt } from "../log/Record.ts"
import type { SearchQuery } from "../log/Search.ts"
import type { TalliesOfStep, TallyQuery, TallyRow } from "../log/Tallies.ts"

/** A page starts strictly older than `olderThan`, or strictly newer than `newerThan`. */
export interface Cursor {
  readonly olderThan?: string
  readonly newerThan?: string
}

export interface ListQuery extends Cursor, Between {
  readonly kind: string
  /** The prefix of the kind's ids; see `Kind`. Without it, a list may read documents of other kinds too. */
  readonly prefix?: string | undefined
  readonly labels?: Labels
  /** 1 or more. */
  readonly limit: number
}

/** The query of most lists: the newest documents of a kind, or the newest that are older than one of them. */
export interface NewestQuery extends Between {
  readonly account: AccountId
  readonly kind: string
  readonly prefix?: string | undefined
  readonly olderThan?: string
  /** 1 or more. */
  readonly limit: number
}

export interface ListPage {
  /** Newest first, in both directions. */
  readonly documents: ReadonlyArray<Document>
  readonly hasMore: boolean
}

/** A query for the records that wrote some documents. Its cursor is a `recordId`. */
export interface RevisionQuery extends Cursor {
  /** Ids of documents, which need not exist. */
  readonly ids: ReadonlyArray<string>
  /** Adds the documents that have all of these labels, if any is given. */
  readonly labels?: Labels
  /** 1 or more. */
  readonly limit: number
}

/** A record, and the queried documents that it wrote. */
export interface Revision {
  /** `recordId` of its version. */
  readonly id: string
  readonly documents: ReadonlyArray<string>
}

export interface EventQuery extends Cursor, Between {
  /** An exact type, or a prefix such as `payment_intent.` */
  readonly type?: { readonly exact: string } | { readonly prefix: string }
  /** 1 or more. */
  readonly limit: number
}

export interface EventPage {
  readonly events: ReadonlyArray<StoredEvent>
  readonly hasMore: boolean
}

export interface DeliveryQuery extends Cursor, Between {
  readonly destination: string
  /** 1 or more. */
  readonly limit: number
}

export interface DeliveryPage {
  /** Newest first. */
  readonly deliveries: ReadonlyArray<DeliveryRow>
  readonly hasMore: boolean
}

export interface DueDelivery {
  readonly account: AccountId
  readonly id: string
  readonly destination: string
  readonly event: string
  /** The version of the record that holds the event. */
  readonly eventVersion: number
  readonly attempt: number
}

export interface Address {
  readonly account: AccountId
  readonly id: string
}

export interface TimerCount {
  readonly account: AccountId
  readonly count: number
}

/** The checkpoint of an account; all 0 without one. */
export interface Standing {
  readonly projected: number
  /** By how many seconds the account's ids were ahead of its time, at most; see `Created.ts`. */
  readonly ahead: number
  /** Events with ids from before this time may have been deleted, with their deliveries; see `expireEvents`. */
  readonly eventsFrom: Millis
}

export const viewTables = [
  "documents",
  "revisions",
  "events",
  "timers",
  "keys",
  "subscriptions",
  "deliveries",
  "tallies"
] as const
export type ViewTable = (typeof viewTables)[number]

export const deliveryId = ({ destination, id }: { readonly destination: string; readonly id: string }): string =>
  `${destination}/${id}`

/** Returns the id of an event's row. The space sorts before every character of a type, so ids sort by type first. */
export const eventId = ({ id, type }: { readonly id: string; readonly type: string }): string => `${type} ${id}`

/** Returns a record's version with leading zeros, so that texts sort like versions. */
export const recordId = (version: number): string => String(version).padStart(RECORD_DIGITS, "0")
const RECORD_DIGITS = 16

export const recordVersion = (recordId: string): number => Number(recordId)

/** Returns the id of a key's row: the version of its record. */
export const keyId = ({ version }: { readonly version: number }): string => recordId(version)

export const revisionId = ({ id, version }: { readonly id: string; readonly version: number }): string =>
  `${id} ${recordId(version)}`

export const revisionAt = (revisionId: string): { readonly id: string; readonly version: number } => {
  const end = Math.max(revisionId.length - RECORD_DIGITS - 1, 0)
  return { id: revisionId.slice(0, end), version: Number(revisionId.slice(end + 1)) }
}

/** A row with the texts that it points to; null without a position, or where the journal lacks the record. */
export interface DocumentTexts extends DocumentRow {
  /** JSON text. */
  readonly document: string | null
  readonly hidden: string | null
}

/** A row of any table, with its id. */
export interface ViewRow {
  readonly id: string
  readonly row:
    | ProjectedDocument
    | RevisionRow
    | EventRow
    | TimerRow
    | KeyRow
    | SubscriptionRow
    | DeliveryRow
    | TallyRow
}

export interface ViewsShape {
  /** Applies rows and checkpoints in one transaction; returns the accounts whose checkpoint did not match. */
  readonly apply: (
    projection: Projection,
    leasedUntil: Millis
  ) => Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** Returns the version up to which an account is projected. Creates the checkpoint of a new account, at 0. */
  readonly checkpoint: (account: AccountId) => Effect.Effect<number, StorageFailure | JournalCorrupt>
  /** Returns the checkpoint of an account; writes nothing. */
  readonly standing: (account: AccountId) => Effect.Effect<Standing, StorageFailure | JournalCorrupt>
  /** Accounts whose rows a migration has marked as outdated and that are not cleared yet. */
  readonly outdated: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** Accounts whose journal has records beyond their checkpoint. */
  readonly behind: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** Returns one result per address, in order, with the texts that the row points to. */
  readonly documents: (
    addresses: ReadonlyArray<Address>
  ) => Effect.Effect<ReadonlyArray<DocumentTexts | undefined>, StorageFailure>
  /** Stores the number of an account that has a checkpoint. Numbers are no part of the fold: no record has them. */
  readonly keepNumber: (account: AccountId, number: number) => Effect.Effect<void, StorageFailure>
  /** Returns the accounts with this number: nearly always none or one. */
  readonly accountsNumbered: (number: number) => Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** Returns up to `limit` accounts that have a checkpoint without a number. */
  readonly accountsUnnumbered: (limit: number) => Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** Returns one result per address (`id` is the idempotency key), in order: the newest row of the key. */
  readonly keys: (addresses: ReadonlyArray<Address>) => Effect.Effect<ReadonlyArray<KeyRow | undefined>, StorageFailure>
  /** Returns up to `limit` timers of an account, ordered by due time and id. */
  readonly timers: (account: AccountId, limit: number) => Effect.Effect<ReadonlyArray<TimerRow>, StorageFailure>
  /** Returns the next timers by the wall clock in the partitions (null: in all), without those of some accounts. */
  readonly nextTimers: (
    limit: number,
    except: ReadonlyArray<AccountId>,
    partitions: ReadonlyArray<Partition> | null
  ) => Effect.Effect<ReadonlyArray<TimerRow>, StorageFailure>
  /** Returns the timers of a name in the partitions (null: in all) that wake their accounts before a time. */
  readonly timersNamed: (
    name: string,
    partitions: ReadonlyArray<Partition> | null,
    before: Millis
  ) => Effect.Effect<ReadonlyArray<TimerRow>, StorageFailure>
  /** Counts the timers of a name in the accounts that have any. Reads all timers. */
  readonly timerCounts: (name: string) => Effect.Effect<ReadonlyArray<TimerCount>, StorageFailure>
  /** Returns up to `limit` rows of documents that are not deleted, nearest to the cursor first. */
  readonly list: (account: AccountId, query: ListQuery) => Effect.Effect<ReadonlyArray<DocumentRow>, StorageFailure>
  /** Returns one result per query, in order: up to `limit` rows of documents that are not deleted, newest first. */
  readonly newest: (
    queries: ReadonlyArray<NewestQuery>
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<DocumentRow>>, StorageFailure>
  /** Returns up to `limit` rows of documents that are not deleted and pass a filter, newest first. */
  readonly search: (account: AccountId, query: SearchQuery) => Effect.Effect<ReadonlyArray<DocumentRow>, StorageFailure>
  /** Returns up to `limit` records, nearest to the cursor first. */
  readonly revisions: (
    account: AccountId,
    query: RevisionQuery
  ) => Effect.Effect<ReadonlyArray<Revision>, StorageFailure>
  /** Returns the sums of each step, in any order. */
  readonly tallies: (
    account: AccountId,
    query: TallyQuery
  ) => Effect.Effect<ReadonlyArray<TalliesOfStep>, StorageFailure>
  readonly event: (address: Address) => Effect.Effect<EventRow | undefined, StorageFailure>
  /** Returns up to `limit` events, nearest to the cursor first. */
  readonly events: (account: AccountId, query: EventQuery) => Effect.Effect<ReadonlyArray<EventRow>, StorageFailure>
  readonly subscriptions: (account: AccountId) => Effect.Effect<ReadonlyArray<SubscriptionRow>, StorageFailure>
  /** Returns up to `limit` deliveries to one destination, nearest to the cursor first. */
  readonly deliveries: (
    account: AccountId,
    query: DeliveryQuery
  ) => Effect.Effect<ReadonlyArray<DeliveryRow>, StorageFailure>
  readonly delivery: (
    account: AccountId,
    destination: string,
    id: string
  ) => Effect.Effect<DeliveryRow | undefined, StorageFailure>
  /** Returns up to `limit` deliveries of each event, newest first, in the order of the events. */
  readonly eventDeliveries: (
    events: ReadonlyArray<Address>,
    limit: number
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<DeliveryRow>>, StorageFailure>
  /** Counts the pending deliveries of each event, in the order of the events. */
  readonly pendingDeliveries: (events: ReadonlyArray<Address>) => Effect.Effect<ReadonlyArray<number>, StorageFailure>
  /**
   * Leases pending deliveries of the partitions that are due and not leased, to none of the `busy` destinations: those
   * that have been available longest, sorted by due time. It may return fewer than `limit` although there are more, if
   * most of them are in a few partitions.
   */
  readonly takeDeliveries: (options: {
    readonly now: Millis
    readonly leasedUntil: Millis
    readonly limit: number
    readonly busy: ReadonlyArray<string>
    readonly partitions: ReadonlyArray<Partition>
  }) => Effect.Effect<ReadonlyArray<DueDelivery>, StorageFailure>
  /** Returns when the next unleased delivery to a destination that is not `busy` is due. */
  readonly nextDelivery: (
    busy: ReadonlyArray<string>,
    partitions: ReadonlyArray<Partition>
  ) => Effect.Effect<Millis, StorageFailure>
  /** Ends the leases of the partitions' deliveries, also those of other processes. */
  readonly freeDeliveries: (partitions: ReadonlyArray<Partition>) => Effect.Effect<void, StorageFailure>
  /**
   * Returns the stored running time of the service (`RunningTime.ts`). If it is missing or damaged, returns the time of
   * the newest use of a key, or without keys `now`.
   */
  readonly runningTime: (now: Millis) => Effect.Effect<Millis, StorageFailure>
  /** Stores the running time, unless a greater one is stored; returns the stored one. */
  readonly keepRunningTime: (at: Millis) => Effect.Effect<Millis, StorageFailure>
  /** Deletes up to `limit` keys of requests that were answered before a running time; returns how many. */
  readonly expireKeys: (before: Millis, limit: number) => Effect.Effect<number, StorageFailure>
  /**
   * Deletes up to `limit` events of an account with ids from before a time, and their deliveries, unless one is
   * pending; returns the number of events. The checkpoint keeps the time as `eventsFrom`.
   */
  readonly expireEvents: (account: AccountId, before: Millis, limit: number) => Effect.Effect<number, StorageFailure>
  /** The accounts that have a checkpoint beyond 0. */
  readonly accounts: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** Returns rows of one table of an account in ascending order of id, after `after`; for verification. */
  readonly scan: (
    account: AccountId,
    table: ViewTable,
    after: string,
    limit: number
  ) => Effect.Effect<ReadonlyArray<ViewRow>, StorageFailure>
  readonly clear: (account: AccountId) => Effect.Effect<void, StorageFailure>
  readonly clearOutdated: (account: AccountId) => Effect.Effect<void, StorageFailure>
}

export class Views extends Context.Service<Views, ViewsShape>()("till/engine/Views") {}
