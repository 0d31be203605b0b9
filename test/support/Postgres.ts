/**
 * The Postgres of the tests: one embedded server per run in a folder of its own, and a fresh database for each test
 * that needs one. Vitest runs this file's setup for each kind of test that may use it.
 *
 * `TILL_TEST_DATABASE_URL` names another server on 127.0.0.1, with a role that may create databases and roles, so that
 * every supported version can be tested. It is not `DATABASE_URL`, which developers may have set for another purpose.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import type { SqlClient } from "effect/sql"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { inject } from "vitest"
import type { TestProject } from "vitest/node"
import { sessionSettings } from "../../src/postgres/Database.ts"
import * as EmbeddedPostgres from "../../src/postgres/embedded/EmbeddedPostgres.ts"
import * as ClusterTemplate from "./ClusterTemplate.ts"
import { grantIn, MAKES_DATABASES } from "./DatabaseRights.ts"

declare module "vitest" {
  export interface ProvidedContext {
    /** Undefined in a run of kinds that use no Postgres. */
    readonly postgresUrl: string | undefined
  }
}

/**
 * Starts the server of the run, unless another kind of test has started it. The returned function stops the server and
 * removes its files.
 */
export default async function setup({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (vitest.getRootProject().getProvidedContext().postgresUrl !== undefined) return undefined
  const given = process.env["TILL_TEST_DATABASE_URL"]
  if (given !== undefined && given !== "") {
    vitest.provide("postgresUrl", given)
    return undefined
  }
  const folder = fs.mkdtempSync(Path.join(os.tmpdir(), "till-test-"))
  fs.chmodSync(folder, 0o711)
  const [template, dataFolder] = ["template", "data"].map((name) => Path.join(folder, name)) as [string, string]
  await Effect.runPromise(Effect.scoped(EmbeddedPostgres.make({ dataFolder: template })))
  ClusterTemplate.offer(template)
  fs.mkdirSync(dataFolder)
  ClusterTemplate.copyTo(dataFolder)
  const scope = await Effect.runPromise(Scope.make())
  const server = await Effect.runPromise(
    grantIn(dataFolder, MAKES_DATABASES).pipe(
      Effect.andThen(EmbeddedPostgres.make({ dataFolder, processes: 10 })),
      Effect.provideService(Scope.Scope, scope)
    )
  )
  vitest.provide("postgresUrl", Redacted.value(server.url))
  return async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/** The URL of the run's server, for a role that may create databases. */
export const serverUrl = (): string => {
  const url = inject("postgresUrl")
  if (url === undefined) throw new Error("This kind of test has no Postgres: a file that needs it ends in .pg.test.ts")
  return url
}

/** Creates a database that is dropped when the scope closes; returns its URL. */
export const freshDatabaseWith = Effect.fnUntraced(function* (
  options: string
): Effect.fn.Return<Redacted.Redacted, never, Scope.Scope> {
  const server = serverUrl()
  const name = `test_${randomBytes(8).toString("hex")}`
  const administrate = (statement: string) =>
    Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe(statement)).pipe(
      Effect.provide(PgClient.layer({ url: Redacted.make(server), maxConnections: 1 }))
    )
  const create = Effect.orDie(administrate(`CREATE DATABASE ${name} ${options}`))
  // This role may not end an autovacuum on the database, which ends by itself.
  const drop = administrate(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`).pipe(
    Effect.tapError(() => Effect.promise(() => pause(200))),
    Effect.retry({ times: 100 })
  )
  yield* Effect.acquireRelease(create, () => Effect.orDie(drop))
  const url = new URL(server)
  url.pathname = `/${name}`
  return Redacted.make(url.href)
})

export const freshDatabase: Effect.Effect<Redacted.Redacted, never, Scope.Scope> = freshDatabaseWith("")

/** `PgClient` and `SqlClient` on a fresh, empty database; each build of the layer gets one of its own. */
export const layerFreshDatabase: Layer.Layer<PgClient.PgClient | SqlClient.SqlClient> = Layer.fresh(
  Layer.unwrap(
    Effect.map(freshDatabase, (url) =>
      PgClient.layer({ url, maxConnections: 8, startupParameters: sessionSettings }).pipe(Layer.orDie)
    )
  )
)
