/** The engine's storage in a fresh database of the run's Postgres; every engine on it has connections of its own. */
import { PgClient } from "@effect/sql-pg"
import { type Context, Effect, Layer, Redacted, Scope } from "effect"
import type { ErasureStore } from "../../src/engine/Erasures.ts"
import type { AnchorStore } from "../../src/engine/verify/Anchors.ts"
import * as AnchorsPostgres from "../../src/postgres/AnchorsPostgres.ts"
import { sessionSettings } from "../../src/postgres/Database.ts"
import * as ErasuresPostgres from "../../src/postgres/ErasuresPostgres.ts"
import * as JournalPostgres from "../../src/postgres/JournalPostgres.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"
import * as SnapshotPostgres from "../../src/postgres/SnapshotPostgres.ts"
import * as ViewsPostgres from "../../src/postgres/ViewsPostgres.ts"
import { freshDatabase } from "../support/Postgres.ts"
import { StallingProxy } from "../support/StallingProxy.ts"
import { buildAlone, type Storage } from "./Harness.ts"

export interface PostgresStorage {
  /** Journal and views over connections under a name. */
  readonly connect: (name: string) => Effect.Effect<Storage, never, Scope.Scope>
  /** The store of anchors, with its mark in a folder. */
  readonly anchors: (folder: string) => Effect.Effect<Context.Context<AnchorStore>, never, Scope.Scope>
  /** The store of erasures. */
  readonly erasures: Effect.Effect<Context.Context<ErasureStore>, never, Scope.Scope>
  /** Journal and views through a proxy that can stall. */
  readonly connectThroughProxy: (
    name: string
  ) => Effect.Effect<{ readonly storage: Storage; readonly proxy: StallingProxy }, never, Scope.Scope>
  /** Locks tables while an effect runs. */
  readonly locked: <A, E>(tables: string, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Runs an effect while another session has an open transaction in which a statement has run. */
  readonly within: <A, E>(statement: string, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Ends all connections under a name from the server's side. */
  readonly terminate: (name: string) => Effect.Effect<void>
  /** Marks the views of all accounts as outdated, as a migration does. */
  readonly outdate: Effect.Effect<void>
  /** Runs a statement directly, like psql. */
  readonly edit: (statement: string) => Effect.Effect<void>
  /** Returns the rows of a direct query, like psql. */
  readonly readRows: <Row extends object>(query: string) => Effect.Effect<ReadonlyArray<Row>>
}

const clientOf = (url: Redacted.Redacted, applicationName: string, maxConnections: number) =>
  PgClient.layer({ url, applicationName, maxConnections, startupParameters: sessionSettings }).pipe(Layer.orDie)

export const make: Effect.Effect<PostgresStorage, never, Scope.Scope> = Effect.gen(function* () {
  const url = yield* freshDatabase
  const readRows = <Row extends object>(query: string) =>
    PgClient.PgClient.use((sql) => sql.unsafe<Row>(query)).pipe(
      Effect.provide(clientOf(url, "editor", 1)),
      Effect.orDie
    )
  const edit = (statement: string) => Effect.asVoid(readRows(statement))
  const within = <A, E>(statement: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    PgClient.PgClient.use((sql) =>
      sql.withTransaction(Effect.andThen(Effect.orDie(sql.unsafe(statement)), effect))
    ).pipe(Effect.provide(clientOf(url, "editor", 1)), Effect.catchTag("SqlError", Effect.die)) as Effect.Effect<A, E>
  const layer = (name: string, at = url) =>
    Layer.mergeAll(JournalPostgres.layer, SnapshotPostgres.layer, ViewsPostgres.layer).pipe(
      Layer.provide(Migrations.layer),
      Layer.provide(clientOf(at, name, 4)),
      Layer.orDie
    )
  return {
    connect: (name) => Effect.flatMap(Effect.scope, (scope) => buildAlone(layer(name), scope)),
    anchors: (folder) =>
      Effect.flatMap(Effect.scope, (scope) =>
        buildAlone(Layer.provide(AnchorsPostgres.layer(folder), clientOf(url, "anchors", 1)), scope)
      ),
    erasures: Effect.flatMap(Effect.scope, (scope) =>
      buildAlone(Layer.provide(ErasuresPostgres.layer, clientOf(url, "erasures", 1)), scope)
    ),
    connectThroughProxy: Effect.fnUntraced(function* (name) {
      const direct = new URL(Redacted.value(url))
      const target = { host: direct.hostname, port: Number(direct.port) }
      const proxy = yield* Effect.acquireRelease(
        Effect.promise(() => StallingProxy.start(target)),
        (proxy) => Effect.sync(() => proxy.close())
      )
      // The proxy listens on loopback, not at the path of the server's socket.
      direct.searchParams.delete("host")
      direct.host = `127.0.0.1:${proxy.port}`
      const storage = yield* buildAlone(layer(name, Redacted.make(direct.href)), yield* Effect.scope)
      return { storage, proxy }
    }),
    locked: (tables, effect) => within(`LOCK TABLE ${tables} IN ACCESS EXCLUSIVE MODE`, effect),
    within,
    terminate: (name) =>
      edit(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = '${name}'`),
    outdate: edit("UPDATE checkpoints SET outdated = true"),
    edit,
    readRows
  }
})
