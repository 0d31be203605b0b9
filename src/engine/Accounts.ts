/** The one door to accounts: nothing outside may assume that an account's actor is in this process. */
import { Context, Schema } from "effect"
import type { Effect } from "effect"
import type { AccountId, Document, Tombstone } from "./Document.ts"
import type { RequestIdentity } from "./Record.ts"
import type { Transaction } from "./Transaction.ts"
import type { EventPage, EventQuery, ListPage, ListQuery, StoredEvent } from "./Views.ts"

/** The log cannot be reached, or the account has more work than it may queue. Nothing was done; try again. */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", { reason: Schema.String }) {}

/** The same idempotency key is still being worked on by another request (semantics I8). */
export class IdempotencyKeyInUse extends Schema.TaggedError<IdempotencyKeyInUse>()("IdempotencyKeyInUse", {}) {}

/** The idempotency key was used for another request (semantics I7). */
export class IdempotencyKeyReuse extends Schema.TaggedError<IdempotencyKeyReuse>()("IdempotencyKeyReuse", {}) {}

/** What a command answers. */
export interface Response {
  readonly status: number
  /** JSON text. Where it equals a document the command wrote, the journal holds it once. */
  readonly body: string
  /** Whether a repetition of the request gets this response again (semantics I9, I10). Successes always do. */
  readonly stored: boolean
}

export interface Reply {
  readonly status: number
  readonly body: string
  readonly apiVersion: string
  /** Id of the request that was really carried out, if this is a replay of its response. */
  readonly replayOf: string | null
}

export interface AccountsShape {
  /** Runs a command and waits until it is durable. */
  readonly run: <A, E>(
    account: AccountId,
    command: Effect.Effect<A, E, Transaction>
  ) => Effect.Effect<A, E | Unavailable>

  /**
   * Runs a request's command at most once per idempotency key, and waits until it is durable. The command answers on
   * both channels: what succeeds is committed, what fails leaves no change (only its response, if that is `stored`).
   */
  readonly execute: (
    account: AccountId,
    request: RequestIdentity,
    command: Effect.Effect<Response, Response, Transaction>
  ) => Effect.Effect<Reply, Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse>

  /** The newest durable state of one document, whatever its kind. */
  readonly read: (account: AccountId, id: string) => Effect.Effect<Document | Tombstone | undefined, Unavailable>

  /** One page of a kind's documents, newest first. Shows everything that was acknowledged before the call. */
  readonly list: (account: AccountId, query: ListQuery) => Effect.Effect<ListPage, Unavailable>

  readonly event: (account: AccountId, id: string) => Effect.Effect<StoredEvent | undefined, Unavailable>
  readonly events: (account: AccountId, query: EventQuery) => Effect.Effect<EventPage, Unavailable>
}

export class Accounts extends Context.Service<Accounts, AccountsShape>()("till/engine/Accounts") {}
