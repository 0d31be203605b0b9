/** The methods of the client for Effect programs, as types; see Methods.ts. */
import type { Effect, Stream } from "effect"
import type { TillError } from "./Errors.ts"
import type { ArgumentsOf, Group, ItemOf, Name, RequestOptions, ResultOf } from "./Methods.ts"

/**
 * A call as an effect. Running it twice makes two requests, each with its own `Idempotency-Key`: if you repeat it, for
 * example with `Effect.retry`, set `idempotencyKey`.
 */
export interface EffectMethod<Arguments extends ReadonlyArray<unknown>, Result> {
  (...args: Arguments): Effect.Effect<Result, TillError>
}

/** A call that returns one page of a list. */
export interface EffectListMethod<Arguments extends ReadonlyArray<unknown>, Result> extends EffectMethod<
  Arguments,
  Result
> {
  /** The items of this page and all further ones, in the direction away from the cursor, fetched on demand. */
  readonly stream: (...args: Arguments) => Stream.Stream<ItemOf<Result>, TillError>
}

/** The API for Effect programs. */
export type EffectMethods = {
  readonly [G in Group]: {
    readonly [N in Name<G>]: [ItemOf<ResultOf<G, N>>] extends [never]
      ? EffectMethod<ArgumentsOf<G, N, RequestOptions>, ResultOf<G, N>>
      : EffectListMethod<ArgumentsOf<G, N, RequestOptions>, ResultOf<G, N>>
  }
}
