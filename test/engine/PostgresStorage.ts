/** The engine's storage in a fresh database of the run's Postgres; every engine on it has connections of its own. */
import { PgClient } from "@effect/sql-pg"
import type { Redacted } from "effect"
import { Effect, Layer, Scope } from "effect"
import * as JournalPostgres from "../../src/postgres/JournalPostgres.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"
import * as ViewsPostgres from "../../src/postgres/ViewsPostgres.ts"
import { freshDatabase } from "../support/Postgres.ts"
import type { Storage } from "./Harness.ts"
import { buildAlone } from "./Harness.ts"

export interface PostgresStorage {
  /** Journal and views over connections under a name. */
  readonly connect: (name: string) => Effect.Effect<Storage, never, Scope.Scope>
  /** Ends all connections under a name from the server's side. */
  readonly terminate: (name: string) => Effect.Effect<void>
  /** Runs a statement, as somebody with psql would. */
  readonly edit: (statement: string) => Effect.Effect<void>
}

const clientOf = (url: Redacted.Redacted, applicationName: string, maxConnections: number) =>
  PgClient.layer({ url, applicationName, maxConnections, startupParameters: { timezone: "UTC" } }).pipe(Layer.orDie)

export const make: Effect.Effect<PostgresStorage, never, Scope.Scope> = Effect.gen(function* () {
  const url = yield* freshDatabase
  const edit = (statement: string) =>
    PgClient.PgClient.use((sql) => sql.unsafe(statement)).pipe(
      Effect.provide(clientOf(url, "editor", 1)),
      Effect.orDie,
      Effect.asVoid
    )
  const layer = (name: string) =>
    Layer.mergeAll(JournalPostgres.layer, ViewsPostgres.layer).pipe(
      Layer.provide(Migrations.layer),
      Layer.provide(clientOf(url, name, 4)),
      Layer.orDie
    )
  return {
    connect: (name) => Effect.flatMap(Effect.scope, (scope) => buildAlone(layer(name), scope)),
    terminate: (name) =>
      edit(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = '${name}'`),
    edit
  }
})
