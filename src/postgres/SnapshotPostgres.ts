/** A snapshot in Postgres: a transaction that sees what was committed before its first statement, and only reads. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Snapshot } from "../engine/Snapshot.ts"
import { storageFailure } from "./Rows.ts"

export const layer: Layer.Layer<never, never, PgClient.PgClient> = Layer.effect(
  Snapshot,
  Effect.map(PgClient.PgClient, (sql) => ({
    within: (reading) =>
      sql.withTransaction(Effect.exit(reading)).pipe(
        Effect.provideService(SqlClient.BeginTransaction, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
        storageFailure,
        // What goes wrong in it ends it like anything else: there is nothing to take back.
        Effect.flatten
      )
  }))
)
