/** Outcomes of operations that may be declined. */
import { Effect, Result } from "effect"
import { Begun } from "../../src/payments/lifecycles/Operations.ts"
import type { CardDeclined } from "../../src/domain/Errors.ts"

/** Returns the outcome of an operation that a processor answers at once. */
export const atOnce = <A, E, R>(operation: Effect.Effect<A | Begun, E, R>): Effect.Effect<A, E, R> =>
  Effect.map(operation, (outcome) => {
    if (outcome instanceof Begun) throw new Error(`${outcome.operation} has no outcome yet`)
    return outcome
  })

/** Returns the object of an operation; a decline is a defect. */
export const accepted = <A, E, R>(
  operation: Effect.Effect<Result.Result<A, CardDeclined> | Begun, E, R>
): Effect.Effect<A, E, R> => Effect.map(atOnce(operation), Result.getOrThrow)

/** Returns the decline of an operation; anything else is a defect. */
export const declined = <A, E, R>(
  operation: Effect.Effect<Result.Result<A, CardDeclined> | Begun, E, R>
): Effect.Effect<CardDeclined, E, R> =>
  Effect.map(atOnce(operation), (result) => Result.getOrThrow(Result.flip(result)))
