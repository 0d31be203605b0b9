/**
 * The methods of the client, as types: every group and endpoint of the contract, under its name there.
 *
 * A method takes the identifiers of its path, then the endpoint's parameters (the body of a POST, the query of all
 * others), then the options of the call. The parameters have their position even if an endpoint has none, so that
 * adding an optional one breaks no caller. A new resource of the contract needs no change here.
 */
import type { Effect, Stream } from "effect"
import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import type { Api } from "../api/Api.ts"
import type { ApiVersion } from "../domain/ApiVersion.ts"
import type { TillError } from "./Errors.ts"

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
type PathIdentifiers<Path extends string> = Path extends `${string}:${infer Rest}`
  ? Rest extends `${string}/${infer Tail}`
    ? [id: string, ...PathIdentifiers<Tail>]
    : [id: string]
  : []

/** An endpoint of the contract, with its path. */
type Endpoint = HttpApiEndpoint.ConstraintRequest & { readonly path: string }

/** The parameters of an endpoint without any. */
type NoParameters = Readonly<Record<string, never>>

type OrNone<A> = [A] extends [never] ? NoParameters : A

/** The parameters of an endpoint: its body, or its query if it has no body. */
export type ParametersOf<E extends Endpoint> = [E["~Payload"]["Type"]] extends [never]
  ? OrNone<E["~Query"]["Type"]>
  : E["~Payload"]["Type"]

export type ResultOf<E extends Endpoint> = E["~Success"]["Type"]

/** The items of a list or a search; `never` for other endpoints. */
export type ItemOf<E extends Endpoint> =
  ResultOf<E> extends { readonly object: "list" | "search_result"; readonly data: ReadonlyArray<infer Item> }
    ? Item
    : never

/** The arguments of a method; parameters are optional if none of them is required. */
export type ArgumentsOf<E extends Endpoint, Options> =
  Record<never, never> extends ParametersOf<E>
    ? [...PathIdentifiers<E["path"]>, parameters?: ParametersOf<E>, options?: Options]
    : [...PathIdentifiers<E["path"]>, parameters: ParametersOf<E>, options?: Options]

/**
 * A call as an effect. Running it twice makes two requests, each with its own `Idempotency-Key`: if you repeat it, for
 * example with `Effect.retry`, set `idempotencyKey`.
 */
export interface EffectMethod<E extends Endpoint> {
  (...args: ArgumentsOf<E, RequestOptions>): Effect.Effect<ResultOf<E>, TillError>
}

/** A call that returns one page of a list. */
export interface EffectListMethod<E extends Endpoint> extends EffectMethod<E> {
  /** The items of this page and all further ones, in the direction away from the cursor, fetched on demand. */
  readonly stream: (...args: ArgumentsOf<E, RequestOptions>) => Stream.Stream<ItemOf<E>, TillError>
}

/** A page, or, with `for await`, its items and those of all further pages, in the direction away from the cursor. */
export interface Pages<Page, Item> extends Promise<Page>, AsyncIterable<Item> {}

/** A call as a promise, which rejects with a `TillError`, or with the reason of its signal. */
export type PromiseMethod<E extends Endpoint> = (
  ...args: ArgumentsOf<E, PromiseRequestOptions>
) => [ItemOf<E>] extends [never] ? Promise<ResultOf<E>> : Pages<ResultOf<E>, ItemOf<E>>

type GroupsOf<A> = A extends HttpApi.HttpApi<infer _Id, infer Groups> ? Groups : never
type Groups = GroupsOf<typeof Api>
type EndpointsOf<Group> = Extract<HttpApiGroup.Endpoints<Group>, Endpoint>

/** The API for Effect programs. */
export type EffectMethods = {
  readonly [Group in Groups as HttpApiGroup.Identifier<Group>]: {
    readonly [E in EndpointsOf<Group> as E["identifier"]]: [ItemOf<E>] extends [never]
      ? EffectMethod<E>
      : EffectListMethod<E>
  }
}

/** The API for programs without Effect. */
export type PromiseMethods = {
  readonly [Group in Groups as HttpApiGroup.Identifier<Group>]: {
    readonly [E in EndpointsOf<Group> as E["identifier"]]: PromiseMethod<E>
  }
}
