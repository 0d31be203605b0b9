/**
 * Limits how long a statement may take that a command waits for, or a fiber that serves all: every one of the journal,
 * and those of the views that load what a command needs, write, or say what is due. A Postgres that hangs neither
 * answers nor fails, nor does a network that swallows everything; a statement that exceeds the limit is interrupted and
 * is a storage failure, with its outcome open as after any other failure.
 *
 * A projection that was given up is tried again, and finds by its checkpoint whether it was carried out.
 *
 * The interruption asks Postgres to cancel the statement, and if that goes unanswered as well it closes the connection,
 * within 5 more seconds. So the statement may still be carried out later, by a server that has not noticed. The account
 * has started anew from the journal by then: of the late record and the account's next one, which have the same
 * version, the journal takes one, and an account that loses starts anew again; one that writes nothing hears of it
 * within 30 seconds.
 */
import { Context, Effect } from "effect"
import { StorageFailure } from "../engine/Journal.ts"

/** In milliseconds. By the machine's clock: the time of tests stands still or jumps. */
export const StatementLimit: Context.Reference<number> = Context.Reference("till/postgres/StatementLimit", {
  defaultValue: () => 15_000
})

/** Gives a storage's statements the limit that is in force where the storage is built. */
export const makeWithin = Effect.gen(function* () {
  const limitMillis = yield* StatementLimit
  return <A, E>(statement: Effect.Effect<A, E>): Effect.Effect<A, E | StorageFailure> =>
    Effect.raceFirst(statement, exceeded(limitMillis))
})

const exceeded = (limitMillis: number) =>
  Effect.callback<never, StorageFailure>((resume) => {
    const timer = setTimeout(() => {
      resume(Effect.fail(new StorageFailure({ cause: `No answer within ${limitMillis} ms` })))
    }, limitMillis)
    return Effect.sync(() => clearTimeout(timer))
  })
