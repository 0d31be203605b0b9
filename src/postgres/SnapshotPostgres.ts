/** A snapshot in Postgres: a read-only transaction that sees only what was committed before its first statement. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { StorageFailure } from "../engine/log/Journal.ts"
import { Snapshot } from "../engine/log/Snapshot.ts"
import { storageFailure } from "./Rows.ts"

export const layer: Layer.Layer<never, never, PgClient.PgClient> = Layer.effect(
  Snapshot,
  Effect.map(PgClient.PgClient, (sql) => ({
    within: <A, E, R>(reading: Effect.Effect<A, E, R>) =>
      Effect.suspend(() => {
        let read: Exit.Exit<A, E> | undefined
        // A failed read has nothing to roll back, so its transaction commits too.
        const transaction = Effect.map(Effect.exit(reading), (exit) => {
          read = exit
        })
        return sql.withTransaction(transaction).pipe(
          Effect.provideService(SqlClient.BeginTransaction, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
          storageFailure,
          Effect.matchEffect({
            // After a failed statement COMMIT fails too, with a less specific error.
            onFailure: (failure): Effect.Effect<A, E | StorageFailure> =>
              read !== undefined && Exit.isFailure(read) ? read : Effect.fail(failure),
            onSuccess: () => read!
          })
        )
      })
  }))
)
