/** Outcomes of operations that may be declined. */
import { Effect, Result } from "effect"
import type { CardDeclined } from "../../src/domain/Errors.ts"

/** Returns the object of an operation; a decline is a defect. */
export const accepted = <A, E, R>(
  operation: Effect.Effect<Result.Result<A, CardDeclined>, E, R>
): Effect.Effect<A, E, R> => Effect.map(operation, Result.getOrThrow)

/** Returns the decline of an operation; anything else is a defect. */
export const declined = <A, E, R>(
  operation: Effect.Effect<Result.Result<A, CardDeclined>, E, R>
): Effect.Effect<CardDeclined, E, R> => Effect.map(operation, (result) => Result.getOrThrow(Result.flip(result)))
