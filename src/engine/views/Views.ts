/**
 * Views: folds of the journal that lists, activation and the scheduler read.
 *
 * Port. Only the projector writes them, and only forward: a projection is applied to an account if its checkpoint
 * stands exactly where the projection starts, so that two writers cannot mix.
 */
import { Context } from "effect"
import type { Effect } from "effect"
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
  /** How the kind's ids begin; see `Kind`. Without it, a list may read past documents of other kinds. */
  readonly prefix?: string | undefined
  /** Every label given must be equal. */
  readonly labels?: Labels
  /** 1 or more. */
  readonly limit: number
}

/** Most lists ask for this: the newest of a kind, or the newest that are older than one. */
export interface NewestQuery extends Between {
  readonly account: AccountId
  readonly kind: string
  /** As in `ListQuery`. */
  readonly prefix?: string | undefined
  readonly olderThan?: string
  /** 1 or more. */
  readonly limit: number
}

export interface ListPage {
  /** Newest first, whatever the direction. */
  readonly documents: ReadonlyArray<Document>
  /** Says whether there are more in the direction of travel. */
  readonly hasMore: boolean
}

/** The records that have written some documents. Its cursor is a `recordId`. */
export interface RevisionQuery extends Cursor {
  /** Ids of documents, which may be those of none. */
  readonly ids: ReadonlyArray<string>
  /** The documents that have all of these labels are meant as well, if any is given. */
  readonly labels?: Labels
  /** 1 or more. */
  readonly limit: number
}

/** A record, and which of the documents that were asked for it has written. */
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

/** A delivery to carry out. */
export interface DueDelivery {
  readonly account: AccountId
  readonly id: string
  readonly destination: string
  readonly event: string
  /** Version of the record that holds the event. */
  readonly eventVersion: number
  /** Number of the attempt to make, from 1. */
  readonly attempt: number
}

/** Names one keyed row of an account. */
export interface Address {
  readonly account: AccountId
  readonly id: string
}

export interface TimerCount {
  readonly account: AccountId
  readonly count: number
}

/** How far the views are with an account; everything is 0 for one that has no checkpoint. */
export interface Standing {
  readonly projected: number
  /** By how many seconds the account's ids were ahead of its time at most; see `Created.ts`. */
  readonly ahead: number
}

/** The tables of the views. */
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

/** A delivery is stored under this id. */
export const deliveryId = ({ destination, id }: { readonly destination: string; readonly id: string }): string =>
  `${destination}/${id}`

/** An event is stored under this id. The space is before every character of a type, so these sort by type first. */
export const eventId = ({ id, type }: { readonly id: string; readonly type: string }): string => `${type} ${id}`

/** The version of a record in digits that sort. */
export const recordId = (version: number): string => String(version).padStart(RECORD_DIGITS, "0")
const RECORD_DIGITS = 16

/** The inverse. */
export const recordVersion = (recordId: string): number => Number(recordId)

/** A key is stored under the version of its response's record. */
export const keyId = ({ version }: { readonly version: number }): string => recordId(version)

/** A revision is stored under this id. */
export const revisionId = ({ id, version }: { readonly id: string; readonly version: number }): string =>
  `${id} ${recordId(version)}`

/** The inverse. */
export const revisionAt = (revisionId: string): { readonly id: string; readonly version: number } => {
  const end = Math.max(revisionId.length - RECORD_DIGITS - 1, 0)
  return { id: revisionId.slice(0, end), version: Number(revisionId.slice(end + 1)) }
}

/** A row with the texts that it points to: null where it points to none, or where the journal has none. */
export interface DocumentTexts extends DocumentRow {
  /** JSON text. */
  readonly document: string | null
  readonly hidden: string | null
}

/** A row of any table, under the id that it is stored with. */
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
  /**
   * Applies rows and checkpoints in one transaction; answers with the accounts whose checkpoint did not match. The
   * projection's deliveries are given to nobody before `leasedUntil`.
   */
  readonly apply: (
    projection: Projection,
    leasedUntil: Millis
  ) => Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** The version up to which an account is projected; 0 for one that is new, which is given a checkpoint by this. */
  readonly checkpoint: (account: AccountId) => Effect.Effect<number, StorageFailure | JournalCorrupt>
  /** How far an account is projected; writes nothing. */
  readonly standing: (account: AccountId) => Effect.Effect<Standing, StorageFailure | JournalCorrupt>
  /** Accounts whose rows are as an older Till made them, until they are cleared: today's would have more in them. */
  readonly outdated: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** Accounts whose journal goes further than their checkpoint. */
  readonly behind: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** One answer per address, in order, with the texts that its row points to. */
  readonly documents: (
    addresses: ReadonlyArray<Address>
  ) => Effect.Effect<ReadonlyArray<DocumentTexts | undefined>, StorageFailure>
  /** Keeps the number of an account that has a checkpoint. No record says it, so it is no part of the fold. */
  readonly keepNumber: (account: AccountId, number: number) => Effect.Effect<void, StorageFailure>
  /** The accounts with this number: nearly always none or one. */
  readonly accountsNumbered: (number: number) => Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** Up to `limit` accounts that have a checkpoint and no number. */
  readonly accountsUnnumbered: (limit: number) => Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** One answer per address (`id` is the idempotency key), in order: of a key that was used again, the newest row. */
  readonly keys: (addresses: ReadonlyArray<Address>) => Effect.Effect<ReadonlyArray<KeyRow | undefined>, StorageFailure>
  /** The timers of an account that come next, in due order; those of the same time in the order of their ids. */
  readonly timers: (account: AccountId, limit: number) => Effect.Effect<ReadonlyArray<TimerRow>, StorageFailure>
  /** The timers that come next by the wall clock in the partitions, or in all; but for those of some accounts. */
  readonly nextTimers: (
    limit: number,
    except: ReadonlyArray<AccountId>,
    partitions: ReadonlyArray<Partition> | null
  ) => Effect.Effect<ReadonlyArray<TimerRow>, StorageFailure>
  /** Counts the timers of a name in the accounts that have any. Reads all timers. */
  readonly timerCounts: (name: string) => Effect.Effect<ReadonlyArray<TimerCount>, StorageFailure>
  /** The rows of up to `limit` documents that are not deleted, nearest to the cursor first. */
  readonly list: (account: AccountId, query: ListQuery) => Effect.Effect<ReadonlyArray<DocumentRow>, StorageFailure>
  /** One answer per query, in order: the rows of up to `limit` documents that are not deleted, newest first. */
  readonly newest: (
    queries: ReadonlyArray<NewestQuery>
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<DocumentRow>>, StorageFailure>
  /** The rows of up to `limit` documents that are not deleted and pass a filter, newest first. */
  readonly search: (account: AccountId, query: SearchQuery) => Effect.Effect<ReadonlyArray<DocumentRow>, StorageFailure>
  /** Up to `limit` records, nearest to the cursor first. */
  readonly revisions: (
    account: AccountId,
    query: RevisionQuery
  ) => Effect.Effect<ReadonlyArray<Revision>, StorageFailure>
  /** What the documents count as from an hour on, step by step, in any order. */
  readonly tallies: (
    account: AccountId,
    query: TallyQuery
  ) => Effect.Effect<ReadonlyArray<TalliesOfStep>, StorageFailure>
  readonly event: (address: Address) => Effect.Effect<EventRow | undefined, StorageFailure>
  /** Up to `limit` events, nearest to the cursor first. */
  readonly events: (account: AccountId, query: EventQuery) => Effect.Effect<ReadonlyArray<EventRow>, StorageFailure>
  /** Names who is subscribed to events of the account. */
  readonly subscriptions: (account: AccountId) => Effect.Effect<ReadonlyArray<SubscriptionRow>, StorageFailure>
  /** Up to `limit` deliveries to one destination, nearest to the cursor first. */
  readonly deliveries: (
    account: AccountId,
    query: DeliveryQuery
  ) => Effect.Effect<ReadonlyArray<DeliveryRow>, StorageFailure>
  readonly delivery: (
    account: AccountId,
    destination: string,
    id: string
  ) => Effect.Effect<DeliveryRow | undefined, StorageFailure>
  /** Up to `limit` deliveries of each event, newest first, in the order of the events. */
  readonly eventDeliveries: (
    events: ReadonlyArray<Address>,
    limit: number
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<DeliveryRow>>, StorageFailure>
  /** Counts the deliveries of each event that are pending, in the order of the events. */
  readonly pendingDeliveries: (events: ReadonlyArray<Address>) => Effect.Effect<ReadonlyArray<number>, StorageFailure>
  /**
   * Leases pending deliveries of the partitions that are due and that nobody holds, to none of the `busy` destinations:
   * those that have been free for longest, nearest due first. Where most of them are of a few partitions, it may be
   * fewer than there are.
   */
  readonly takeDeliveries: (options: {
    readonly now: Millis
    readonly leasedUntil: Millis
    readonly limit: number
    readonly busy: ReadonlyArray<string>
    readonly partitions: ReadonlyArray<Partition>
  }) => Effect.Effect<ReadonlyArray<DueDelivery>, StorageFailure>
  /**
   * Says when the next pending delivery of the partitions, to none of the `busy` destinations, is due and nobody holds
   * it any more.
   */
  readonly nextDelivery: (
    busy: ReadonlyArray<string>,
    partitions: ReadonlyArray<Partition>
  ) => Effect.Effect<Millis, StorageFailure>
  /** Ends the leases of the partitions' deliveries, whoever holds them. */
  readonly freeDeliveries: (partitions: ReadonlyArray<Partition>) => Effect.Effect<void, StorageFailure>
  /**
   * How long the service has run (`RunningTime.ts`), by what was kept last. If nothing was, or that is damaged: until
   * the newest use of a key, whatever the clock says, or without one until `now`.
   */
  readonly runningTime: (now: Millis) => Effect.Effect<Millis, StorageFailure>
  /** Keeps how long the service has run, unless more is kept already; answers with what is. */
  readonly keepRunningTime: (at: Millis) => Effect.Effect<Millis, StorageFailure>
  /** Forgets keys of requests that were answered before a running time, so many at most, and says how many. */
  readonly expireKeys: (before: Millis, limit: number) => Effect.Effect<number, StorageFailure>
  /** Accounts that have a checkpoint beyond 0. */
  readonly accounts: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** One table of one account in ascending order of id, from behind `after`; for verification. */
  readonly scan: (
    account: AccountId,
    table: ViewTable,
    after: string,
    limit: number
  ) => Effect.Effect<ReadonlyArray<ViewRow>, StorageFailure>
  /** Empties the views of one account. */
  readonly clear: (account: AccountId) => Effect.Effect<void, StorageFailure>
  /** The same if they are outdated. */
  readonly clearOutdated: (account: AccountId) => Effect.Effect<void, StorageFailure>
}

export class Views extends Context.Service<Views, ViewsShape>()("till/engine/Views") {}
