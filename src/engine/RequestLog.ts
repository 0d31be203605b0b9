/**
 * The log of requests: what was asked of the API and how it was answered, for people who look for what went wrong. It
 * is no truth and no part of the journal: it is written behind the answers, has gaps where there were more requests
 * than it takes, and forgets after some days (semantics 9.66).
 *
 * Port. Whoever answers requests writes them; whoever shows them asks.
 */
import { Context, Effect } from "effect"
import type { Scope } from "effect"
import type { Unavailable } from "./actor/Actors.ts"
import type { Created } from "./log/Created.ts"
import type { AccountId, Millis } from "./log/Document.ts"
import type { Cursor } from "./views/Views.ts"

export interface LoggedError {
  readonly type: string
  readonly code: string
  readonly param: string | null
  readonly message: string
}

/** One request with its answer. No text in it holds card data, keys or secrets. */
export interface LoggedRequest {
  /** `req_…`, in the order of arrival. */
  readonly id: string
  readonly account: AccountId
  readonly at: Millis
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly status: number
  /** From its arrival until it was answered, in milliseconds. */
  readonly millis: number
  /** `key_…` */
  readonly apiKey: string
  /** The version of the answer. */
  readonly apiVersion: string
  readonly idempotencyKey: string | null
  /** `req_…` of the request that was carried out, if this is a replay of its answer. */
  readonly originalRequest: string | null
  readonly error: LoggedError | null
  /** Ids of objects that the path or the answer names. */
  readonly objects: ReadonlyArray<string>
  /** JSON text of the body, or of the query of a GET, as far as it may be kept; null if there was none. */
  readonly sent: string | null
}

/** All that is given has to be so. */
export interface RequestFilter {
  /** The first status that is asked for, and the last. */
  readonly status?: readonly [from: number, to: number] | undefined
  readonly method?: string | undefined
  /** The start of the path. */
  readonly path?: string | undefined
  readonly apiKey?: string | undefined
  readonly apiVersion?: string | undefined
  readonly idempotencyKey?: string | undefined
  /** The id of an object that the request has touched. */
  readonly object?: string | undefined
  /** The code of the error. */
  readonly code?: string | undefined
}

export interface RequestQuery extends Cursor {
  readonly filter: RequestFilter
  /** When they arrived, as their ids say. */
  readonly created?: Created | undefined
  /** 1 or more. */
  readonly limit: number
}

export interface RequestPage {
  /** Newest first, whatever the direction. */
  readonly requests: ReadonlyArray<LoggedRequest>
  /** Says whether there are more in the direction of travel. */
  readonly hasMore: boolean
}

/** Requests that have failed in the same way. */
export interface ErrorGroup {
  readonly method: string
  readonly status: number
  readonly type: string
  readonly code: string
  readonly param: string | null
  readonly count: number
  /** The newest of them. */
  readonly last: Pick<LoggedRequest, "id" | "at" | "path"> & { readonly message: string }
}

export interface RequestLogShape {
  /** Days that a request is kept for; 0 if none is. */
  readonly days: number
  /**
   * Takes a request that has just been answered, or counts it as left out. It is made later, behind other answers:
   * `make` must not throw, and should hold no more than it needs.
   */
  readonly write: (account: AccountId, make: () => LoggedRequest) => void
  /** Requests that this process has left out since it started, because there were too many of them. */
  readonly leftOut: () => number
  /** Of these requests, by their ids, those that are kept. */
  readonly find: (
    account: AccountId,
    ids: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyMap<string, LoggedRequest>, Unavailable>
  readonly list: (account: AccountId, query: RequestQuery) => Effect.Effect<RequestPage, Unavailable>
  /** The failures among the newest requests, grouped, the most frequent first. */
  readonly errors: (account: AccountId, filter: RequestFilter) => Effect.Effect<ReadonlyArray<ErrorGroup>, Unavailable>
  /** Tells, until the scope closes, when requests of an account can be read that this process has written. */
  readonly watch: (account: AccountId, watcher: () => void) => Effect.Effect<void, never, Scope.Scope>
}

/** None is kept unless somebody provides for it. */
export const RequestLog: Context.Reference<RequestLogShape> = Context.Reference("till/engine/RequestLog", {
  defaultValue: (): RequestLogShape => ({
    days: 0,
    write: () => undefined,
    leftOut: () => 0,
    find: () => Effect.succeed(new Map()),
    list: () => Effect.succeed({ requests: [], hasMore: false }),
    errors: () => Effect.succeed([]),
    watch: () => Effect.void
  })
})
