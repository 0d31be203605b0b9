/** Views: what lists and activation read. Port; see the layers for memory and Postgres. */
import type { Document, Labels, Millis } from "./Document.ts"
import type { RequestIdentity } from "./Record.ts"

/** Where a page starts: strictly older than `olderThan`, or strictly newer than `newerThan`. */
export interface Cursor {
  readonly olderThan?: string
  readonly newerThan?: string
}

export interface ListQuery extends Cursor {
  readonly kind: string
  /** Every label given must be equal. */
  readonly labels?: Labels
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
