/**
 * Views: folds of the journal that lists, activation and the scheduler read.
 *
 * Port. Only the projector writes them, and only forward: a projection is applied to an account if its checkpoint
 * stands exactly where the projection starts, so that two writers cannot mix.
 */
import { Context } from "effect"
import type { Effect } from "effect"
import type { AccountId, Document, Labels, Millis } from "./Document.ts"
import type { StorageFailure } from "./Journal.ts"
import type { DocumentRow, EventRow, KeyRow, Projection, TimerRow } from "./Projection.ts"
import type { RequestIdentity } from "./Record.ts"

/** Where a page starts: strictly older than `olderThan`, or strictly newer than `newerThan`. */
export interface Cursor {
  readonly olderThan?: string
  readonly newerThan?: string
}

export interface ListQuery extends Cursor {
  readonly kind: string
  /** How the kind's ids begin; see `Kind`. Without it, a list may read past documents of other kinds. */
  readonly prefix?: string | undefined
  /** Every label given must be equal. */
  readonly labels?: Labels
  /** 1 or more. */
  readonly limit: number
}

export interface ListPage {
  /** Newest first, whatever the direction. */
  readonly documents: ReadonlyArray<Document>
  /** Whether there are more in the direction of travel. */
  readonly hasMore: boolean
}

export interface EventQuery extends Cursor {
  /** An exact type, or a prefix such as `payment_intent.` */
  readonly type?: { readonly exact: string } | { readonly prefix: string }
  /** 1 or more. */
  readonly limit: number
}

export interface StoredEvent {
  readonly id: string
  readonly type: string
  readonly at: Millis
  readonly request: RequestIdentity | null
  /** JSON of the object as it was. */
  readonly object: string
  /** Old values of what an update changed. */
  readonly previous: Readonly<Record<string, unknown>> | null
}

export interface EventPage {
  readonly events: ReadonlyArray<StoredEvent>
  readonly hasMore: boolean
}

/** Names one keyed row of an account. */
export interface Address {
  readonly account: AccountId
  readonly id: string
}

/** The tables of the views. */
export const viewTables = ["documents", "events", "timers", "keys"] as const
export type ViewTable = (typeof viewTables)[number]

/** A row of any table, under the id that it is stored with. */
export interface ViewRow {
  readonly id: string
  readonly row: DocumentRow | EventRow | TimerRow | KeyRow
}

export interface ViewsShape {
  /** Applies rows and checkpoints in one transaction; answers with the accounts whose checkpoint did not match. */
  readonly apply: (projection: Projection) => Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** The version up to which an account is projected; 0 for one that is new. */
  readonly checkpoint: (account: AccountId) => Effect.Effect<number, StorageFailure>
  /** Accounts whose journal goes further than their checkpoint. */
  readonly behind: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  /** One answer per address, in order. */
  readonly documents: (
    addresses: ReadonlyArray<Address>
  ) => Effect.Effect<ReadonlyArray<DocumentRow | undefined>, StorageFailure>
  /** One answer per address (`id` is the idempotency key), in order. */
  readonly keys: (addresses: ReadonlyArray<Address>) => Effect.Effect<ReadonlyArray<KeyRow | undefined>, StorageFailure>
  readonly timer: (address: Address) => Effect.Effect<TimerRow | undefined, StorageFailure>
  /** The timers that come next, in due order. */
  readonly nextTimers: (limit: number) => Effect.Effect<ReadonlyArray<TimerRow>, StorageFailure>
  /** Up to `limit` documents that are not deleted, nearest to the cursor first. */
  readonly list: (account: AccountId, query: ListQuery) => Effect.Effect<ReadonlyArray<DocumentRow>, StorageFailure>
  readonly event: (address: Address) => Effect.Effect<EventRow | undefined, StorageFailure>
  /** Up to `limit` events, nearest to the cursor first. */
  readonly events: (account: AccountId, query: EventQuery) => Effect.Effect<ReadonlyArray<EventRow>, StorageFailure>
  /** Forgets keys of requests that were answered before a time. */
  readonly expireKeys: (before: Millis) => Effect.Effect<void, StorageFailure>
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
}

export class Views extends Context.Service<Views, ViewsShape>()("till/engine/Views") {}
