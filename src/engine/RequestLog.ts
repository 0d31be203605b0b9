/**
 * Port: the log of API requests and their answers, for debugging. It is not part of the journal and not authoritative:
 * it is written after the answers, has gaps when there are more requests than it can write, and is deleted after some
 * days (semantics request_log.kept). The API writes it; the API and the dashboard read it.
 */
import { Context, Effect, type Scope } from "effect"
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
  readonly path: string
  readonly status: number
  /** Duration from arrival to answer, in milliseconds. */
  readonly millis: number
  readonly apiKey: string
  readonly apiVersion: string
  readonly idempotencyKey: string | null
  /** `req_…` of the request whose stored answer this one received; null if it ran itself. */
  readonly originalRequest: string | null
  readonly error: LoggedError | null
  /** Ids of objects that the path or the answer names. */
  readonly objects: ReadonlyArray<string>
  /** JSON text of the body, or of the query of a GET, as far as it may be kept; null if there was none. */
  readonly sent: string | null
}

/** A request must match every filter that is set. */
export interface RequestFilter {
  /** Range of statuses, both ends included. */
  readonly status?: readonly [from: number, to: number] | undefined
  readonly method?: string | undefined
  readonly path?: string | undefined
  readonly apiKey?: string | undefined
  readonly apiVersion?: string | undefined
  readonly idempotencyKey?: string | undefined
  /** Id of an object that the path or the answer names. */
  readonly object?: string | undefined
  readonly code?: string | undefined
}

export interface RequestQuery extends Cursor {
  readonly filter: RequestFilter
  /** Time of arrival, which the ids contain. */
  readonly created?: Created | undefined
  /** Size of the page, 1 or more. */
  readonly limit: number
}

export interface RequestPage {
  /** Newest first in both directions. */
  readonly requests: ReadonlyArray<LoggedRequest>
  /** Whether there are more in the direction of the cursor. */
  readonly hasMore: boolean
}

/** Requests that failed with the same method, status and error. */
export interface ErrorGroup {
  readonly method: string
  readonly status: number
  readonly type: string
  readonly code: string
  readonly param: string | null
  readonly count: number
  readonly last: Pick<LoggedRequest, "id" | "at" | "path"> & { readonly message: string }
}

export interface RequestLogShape {
  /** Retention in days; 0 if no requests are logged. */
  readonly days: number
  /**
   * Takes a request that was just answered, or counts it as left out. `make` builds its entry later, after other
   * answers: it must not throw, and should hold little memory.
   */
  readonly write: (account: AccountId, make: () => LoggedRequest) => void
  /** Requests that this process has left out since its start, because there were too many. */
  readonly leftOut: () => number
  /** Finds requests by their ids; requests that are not in the log are missing from the result. */
  readonly find: (
    account: AccountId,
    ids: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyMap<string, LoggedRequest>, Unavailable>
  readonly list: (account: AccountId, query: RequestQuery) => Effect.Effect<RequestPage, Unavailable>
  /** Groups the failures among the newest requests, most frequent first. */
  readonly errors: (account: AccountId, filter: RequestFilter) => Effect.Effect<ReadonlyArray<ErrorGroup>, Unavailable>
  /** Calls the watcher when requests written by this process can be read, until the scope closes. */
  readonly watch: (account: AccountId, watcher: () => void) => Effect.Effect<void, never, Scope.Scope>
}

/** Without a provided service, no requests are logged. */
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
