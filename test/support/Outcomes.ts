/** What operations come to that can be carried out and declined. */
import { Effect, Result } from "effect"
import type { CardDeclined } from "../../src/domain/Errors.ts"

/** The object of an operation that must not be declined: a decline is a defect. */
export const accepted = <A, E, R>(
  operation: Effect.Effect<Result.Result<A, CardDeclined>, E, R>
): Effect.Effect<A, E, R> => Effect.map(operation, Result.getOrThrow)

/** The decline of an operation that has to be declined: anything else is a defect. */
export const declined = <A, E, R>(
  operation: Effect.Effect<Result.Result<A, CardDeclined>, E, R>
): Effect.Effect<CardDeclined, E, R> => Effect.map(operation, (result) => Result.getOrThrow(Result.flip(result)))
