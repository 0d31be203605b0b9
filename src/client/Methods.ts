/**
 * The methods of the client, as types: every group and endpoint of the contract, under its name there.
 *
 * A method takes the identifiers of its path, then the endpoint's parameters (the body of a POST, the query of all
 * others), then the options of the call. The parameters have their position even if an endpoint has none, so that
 * adding an optional one breaks no caller.
 */
import type { ApiVersion, Contract } from "./Contract.ts"
import type { ENDPOINTS } from "./Endpoints.ts"

/** The options of one call. */
export interface RequestOptions {
  /**
   * The `Idempotency-Key` of a POST. By default, every call gets a new key, which all its attempts share. With a key of
   * your own, several calls are one request, across processes and for 24 hours.
   */
  readonly idempotencyKey?: string | undefined
  /** Overrides the API version, which is that of the client's types. */
  readonly apiVersion?: ApiVersion | undefined
  /** Timeout of one attempt. */
  readonly timeoutMillis?: number | undefined
  /** Maximum number of attempts after the first. */
  readonly retriesMax?: number | undefined
}

/** The options of a call that a signal can abort. Whether an aborted call was carried out is unknown. */
export interface PromiseRequestOptions extends RequestOptions {
  readonly signal?: AbortSignal | undefined
}

/** One identifier for each `:name` of a path. */
type PathIdentifiers<Path> = Path extends `${string}:${infer Rest}`
  ? Rest extends `${string}/${infer Tail}`
    ? [id: string, ...PathIdentifiers<Tail>]
    : [id: string]
  : []

/** The groups of the contract. */
export type Group = keyof typeof ENDPOINTS & keyof Contract
/** The endpoints of a group. */
export type Name<G extends Group> = keyof (typeof ENDPOINTS)[G] & keyof Contract[G]

type PathOf<G extends Group, N extends Name<G>> = (typeof ENDPOINTS)[G][N] extends readonly [string, infer Path]
  ? Path
  : never
type ParametersOf<G extends Group, N extends Name<G>> = Contract[G][N] extends { readonly parameters: infer P }
  ? P
  : never

export type ResultOf<G extends Group, N extends Name<G>> = Contract[G][N] extends { readonly result: infer R }
  ? R
  : never

/** The items of a list or a search; `never` for other endpoints. */
export type ItemOf<Result> = Result extends {
  readonly object: "list" | "search_result"
  readonly data: ReadonlyArray<infer Item>
}
  ? Item
  : never

/** The arguments of a method; parameters are optional if none of them is required. */
export type ArgumentsOf<G extends Group, N extends Name<G>, Options> =
  Record<never, never> extends ParametersOf<G, N>
    ? [...PathIdentifiers<PathOf<G, N>>, parameters?: ParametersOf<G, N>, options?: Options]
    : [...PathIdentifiers<PathOf<G, N>>, parameters: ParametersOf<G, N>, options?: Options]

/** A page, or, with `for await`, its items and those of all further pages, in the direction away from the cursor. */
export interface Pages<Page, Item> extends Promise<Page>, AsyncIterable<Item> {}

/** A call as a promise, which rejects with a `TillError`, or with the reason of its signal. */
export type PromiseMethod<Arguments extends ReadonlyArray<unknown>, Result> = (
  ...args: Arguments
) => [ItemOf<Result>] extends [never] ? Promise<Result> : Pages<Result, ItemOf<Result>>

/** The API for programs without Effect. */
export type PromiseMethods = {
  readonly [G in Group]: {
    readonly [N in Name<G>]: PromiseMethod<ArgumentsOf<G, N, PromiseRequestOptions>, ResultOf<G, N>>
  }
}
