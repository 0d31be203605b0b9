/**
 * The methods of the client, as types: every group and every endpoint of the contract, under the contract's own names.
 *
 * A method takes the identifiers of its path, then the endpoint's parameters (the body of a POST, the query of anything
 * else), then options of the call. The parameters have their place even where an endpoint has none so far: that it gets
 * an optional one later breaks no caller. A resource that is added to the contract needs nothing here.
 */
import type { Effect, Stream } from "effect"
import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import type { Api } from "../api/Api.ts"
import type { ApiVersion } from "../domain/ApiVersion.ts"
import type { TillError } from "./Errors.ts"

/** These can be said about one call. */
export interface RequestOptions {
  /**
   * The `Idempotency-Key` of a POST. Left out, every call gets a new one, which all its attempts share. A key of one's
   * own makes calls one request, across processes and for 24 hours.
   */
  readonly idempotencyKey?: string | undefined
  /** Overrides the version that the client's types describe. */
  readonly apiVersion?: ApiVersion | undefined
  /** One attempt may take so long. */
  readonly timeoutMillis?: number | undefined
  /** A call is repeated so often at most, after its first attempt. */
  readonly retriesMax?: number | undefined
}

/** Options of a call that a signal can end. Ending it leaves open whether it was carried out. */
export interface PromiseRequestOptions extends RequestOptions {
  readonly signal?: AbortSignal | undefined
}

/** One for each `:name` in a path. */
type PathIdentifiers<Path extends string> = Path extends `${string}:${infer Rest}`
  ? Rest extends `${string}/${infer Tail}`
    ? [id: string, ...PathIdentifiers<Tail>]
    : [id: string]
  : []

/** An endpoint of the contract, with what its type knows. */
type Endpoint = HttpApiEndpoint.ConstraintRequest & { readonly path: string }

/** An endpoint without parameters takes this. */
type NoParameters = Readonly<Record<string, never>>

type OrNone<A> = [A] extends [never] ? NoParameters : A

/** The body, or the query of an endpoint without one. */
export type ParametersOf<E extends Endpoint> = [E["~Payload"]["Type"]] extends [never]
  ? OrNone<E["~Query"]["Type"]>
  : E["~Payload"]["Type"]

export type ResultOf<E extends Endpoint> = E["~Success"]["Type"]

/** The pages of a list or a search consist of these; never, if an endpoint answers with something else. */
export type ItemOf<E extends Endpoint> =
  ResultOf<E> extends { readonly object: "list" | "search_result"; readonly data: ReadonlyArray<infer Item> }
    ? Item
    : never

/** A method takes these; parameters can be left out where none is required. */
export type ArgumentsOf<E extends Endpoint, Options> =
  Record<never, never> extends ParametersOf<E>
    ? [...PathIdentifiers<E["path"]>, parameters?: ParametersOf<E>, options?: Options]
    : [...PathIdentifiers<E["path"]>, parameters: ParametersOf<E>, options?: Options]

/**
 * A call as an effect. To run it twice is to make two requests, each with an `Idempotency-Key` of its own: what is
 * repeated from outside, by `Effect.retry` for instance, needs an `idempotencyKey`.
 */
export interface EffectMethod<E extends Endpoint> {
  (...args: ArgumentsOf<E, RequestOptions>): Effect.Effect<ResultOf<E>, TillError>
}

/** A call that answers with one page of a list. */
export interface EffectListMethod<E extends Endpoint> extends EffectMethod<E> {
  /** The items of this page and all further ones, away from the cursor; pages are fetched as they are needed. */
  readonly stream: (...args: ArgumentsOf<E, RequestOptions>) => Stream.Stream<ItemOf<E>, TillError>
}

/** A page, or with `for await` its items and those of all further pages, away from the cursor. */
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

/** The API for everybody else. */
export type PromiseMethods = {
  readonly [Group in Groups as HttpApiGroup.Identifier<Group>]: {
    readonly [E in EndpointsOf<Group> as E["identifier"]]: PromiseMethod<E>
  }
}
