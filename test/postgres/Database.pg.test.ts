import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import * as fs from "node:fs"
import * as Path from "node:path"
import { innermostMessage } from "../../src/engine/log/Journal.ts"
import { connect, layer, layerReading, requireAlone, serverAt } from "../../src/postgres/Database.ts"
import * as EmbeddedPostgres from "../../src/postgres/embedded/EmbeddedPostgres.ts"
import { freshDatabase, freshDatabaseWith, serverUrl } from "../support/Postgres.ts"
import { grantIn } from "../support/DatabaseRights.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { till } from "../support/TillProcess.ts"

const open = (url: Redacted.Redacted) => connect(serverAt(url)).pipe(Effect.provide(Reactivity.layer))

/** Creates a database with a setting. */
const databaseSetTo = Effect.fnUntraced(function* (setting: string) {
  const url = yield* freshDatabase
  yield* (yield* open(url)).unsafe(`ALTER DATABASE ${new URL(Redacted.value(url)).pathname.slice(1)} SET ${setting}`)
  return url
})

/** Returns the message of a refused connection. */
const refusal = (url: Redacted.Redacted) => Effect.map(Effect.flip(open(url)), ({ message }) => message)

describe("Database", () => {
  it.live("connects in UTC under its name", () =>
    Effect.gen(function* () {
      const sql = yield* open(yield* freshDatabase)
      const rows = yield* sql`SELECT current_setting('TimeZone') AS zone, current_setting('application_name') AS name`
      assert.deepStrictEqual(rows, [{ zone: "UTC", name: "till service" }])
    })
  )

  it.live.each([
    ["off", "on"],
    ["remote_apply", "remote_apply"]
  ])("acknowledges nothing before it is on disk, where the database commits as %s", ([theirs, ours]) =>
    Effect.gen(function* () {
      const sql = yield* open(yield* databaseSetTo(`synchronous_commit = ${theirs}`))
      assert.deepStrictEqual(yield* sql`SHOW synchronous_commit`, [{ synchronous_commit: ours }])
    })
  )

  it.live.each([
    { name: "jit", theirs: "on", ours: "off" },
    { name: "default_transaction_isolation", theirs: "serializable", ours: "read committed" }
  ])("sets $name to $ours, where the database has $theirs", ({ name, ours, theirs }) =>
    Effect.gen(function* () {
      const sql = yield* open(yield* databaseSetTo(`${name} = ${theirs}`))
      assert.deepStrictEqual(yield* sql`SELECT current_setting(${name}) AS is`, [{ is: ours }])
    })
  )

  it.live("refuses a database that cannot hold every text, or is read-only", () =>
    Effect.gen(function* () {
      for (const encoding of ["LATIN1", "SQL_ASCII"]) {
        const options = `TEMPLATE template0 ENCODING '${encoding}' LOCALE_PROVIDER libc LOCALE 'C'`
        const message = yield* refusal(yield* freshDatabaseWith(options))
        assert.include(message, `keeps this database in ${encoding}; Till needs one with the encoding UTF8.`)
      }
      const message = yield* refusal(yield* databaseSetTo("default_transaction_read_only = on"))
      assert.include(message, "is read-only, as a standby is; Till has to write.")
    })
  )

  it.live("only reads, if requested, and does not count as a running Till", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const location = { databaseUrl: url, dataFolder: "/nowhere" }
      const missing = yield* Effect.flip(Effect.scoped(Layer.build(layerReading(location))))
      assert.strictEqual(missing._tag, "NothingThere")
      const owner = yield* open(url)
      yield* owner`CREATE TABLE effect_sql_migrations (n int)`
      yield* Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        assert.isEmpty(yield* sql`SELECT * FROM effect_sql_migrations`)
        assert.match(
          innermostMessage(yield* Effect.flip(sql`INSERT INTO effect_sql_migrations VALUES (1)`)),
          /read-only transaction/
        )
        yield* Effect.provideService(requireAlone, PgClient.PgClient, owner)
      }).pipe(Effect.provide(layerReading(location)))
    })
  )

  it.live("uses no more connections than its database allows", () =>
    Effect.gen(function* () {
      const own = yield* freshDatabase
      const name = new URL(Redacted.value(own)).pathname.slice(1)
      const limitTo = (count: number) =>
        Effect.scoped(
          Effect.flatMap(open(Redacted.make(serverUrl())), (sql) =>
            sql.unsafe(`ALTER DATABASE ${name} CONNECTION LIMIT ${count}`)
          )
        )
      yield* limitTo(7)
      const asked = yield* Effect.scoped(
        Effect.gen(function* () {
          const limited = yield* open(own)
          const question = limited<{ process: number }>`SELECT pg_backend_pid() AS process, pg_sleep(0.05)`
          const answers = yield* Effect.all(
            Array.from({ length: 16 }, () => question),
            { concurrency: "unbounded" }
          )
          // Connections for a command beside a service.
          yield* Effect.scoped(open(own))
          return answers.flat()
        })
      )
      assert.strictEqual(new Set(asked.map(({ process }) => process)).size, 2)
      yield* limitTo(3)
      yield* Effect.repeat(refusal(own), {
        until: (message) => message.includes("allows 3 connections at once here; Till needs 4 and uses up to 13."),
        schedule: Schedule.spaced("10 millis")
      })
    })
  )

  it.live("uses no more connections than its role allows", () =>
    Effect.gen(function* () {
      const dataFolder = yield* temporaryFolder()
      const opened = Effect.scoped(
        Effect.flatMap(EmbeddedPostgres.make({ dataFolder }), ({ url }) =>
          Effect.flatMap(open(url), (sql) =>
            Effect.all(
              Array.from(
                { length: 16 },
                () => sql<{ process: number }>`SELECT pg_backend_pid() AS process, pg_sleep(0.05)`
              ),
              { concurrency: "unbounded" }
            )
          )
        )
      )
      yield* grantIn(dataFolder, "CONNECTION LIMIT 7")
      assert.strictEqual(new Set((yield* opened).flat().map(({ process }) => process)).size, 2)
      yield* grantIn(dataFolder, "CONNECTION LIMIT 3")
      const { message } = yield* Effect.flip(opened)
      assert.include(message, "allows 3 connections at once here; Till needs 4 and uses up to 13.")
    })
  )

  // Functions that Postgres finds before its own simulate a pooler.
  it.live.each([
    {
      deed: "keeps settings back",
      as: `current_setting(name text) RETURNS text LANGUAGE sql AS $$
        SELECT CASE name WHEN 'enable_sort' THEN 'on' ELSE pg_catalog.current_setting(name) END $$`,
      told: "is behind a pooler that keeps back what Till asks for: set enable_sort = 'off' there for the database."
    },
    {
      deed: "shares sessions out",
      as: "pg_backend_pid() RETURNS int LANGUAGE sql AS 'SELECT 1'",
      told: "is behind a pooler that shares sessions: Till needs it in session mode."
    }
  ])("refuses a pooler that $deed", ({ as, told }) =>
    Effect.gen(function* () {
      const url = yield* databaseSetTo("search_path = public, pg_catalog")
      yield* (yield* open(url)).unsafe(`CREATE FUNCTION ${as}`)
      assert.include(yield* refusal(url), told)
    })
  )

  it.live("warns about a server that does not wait for its disk", () =>
    Effect.gen(function* () {
      // A server of its own: all other tests on the run's server would be warned.
      const dataFolder = yield* temporaryFolder()
      yield* grantIn(dataFolder, "SUPERUSER")
      const { url } = yield* EmbeddedPostgres.make({ dataFolder })
      const sql = yield* open(url)
      const warnings: Array<string> = []
      const logger = Logger.make(({ message }) => void warnings.push(String(message)))
      const opened = Effect.provide(open(url), Logger.layer([logger]))
      yield* opened
      assert.deepStrictEqual(warnings, [])
      yield* sql`ALTER SYSTEM SET full_page_writes = off`
      yield* sql`SELECT pg_reload_conf()`
      yield* Effect.repeat(sql<{ is: string }>`SELECT current_setting('full_page_writes') AS is`, {
        until: ([row]) => row!.is === "off",
        schedule: Schedule.spaced("10 millis")
      })
      yield* opened
      assert.strictEqual(warnings.length, 1)
      assert.include(warnings[0], "runs without full_page_writes: ")
      assert.notInclude(warnings[0], new URL(Redacted.value(url)).password)
      // A command warns too, but not on its standard output.
      yield* sql`CREATE DATABASE other`
      const other = Object.assign(new URL(Redacted.value(url)), { pathname: "/other" })
      const variables = { TILL_DATA_DIR: Path.join(dataFolder, "till"), DATABASE_URL: other.href }
      const command = yield* Effect.promise(() => till(["merchants", "create", "Shop"], variables))
      assert.strictEqual(command.code, 0, command.stderr)
      assert.include(command.stderr, "runs without full_page_writes: ")
      assert.notInclude(command.stdout, "full_page_writes")
    })
  )

  it.live("says in one line, without the password, why it cannot connect", () =>
    Effect.gen(function* () {
      const good = Redacted.value(yield* freshDatabase)
      const changed = (change: (url: URL) => void) => {
        const url = new URL(good)
        // Over loopback, as to a Postgres that is not embedded.
        url.searchParams.delete("host")
        change(url)
        return Redacted.make(url.href)
      }
      const wrong = [
        changed((url) => (url.password = "hunter2-hunter2")),
        changed((url) => (url.pathname = "/no_such_database")),
        changed((url) => ((url.port = "1"), (url.password = "hunter2-hunter2"))),
        Redacted.make("postgres:///till?host=/nowhere&port=5433&user=till&password=hunter2-hunter2")
      ]
      const messages = (yield* Effect.forEach(wrong, (url) => Effect.flip(open(url)))).map((error) => error.message)
      const { port, password } = new URL(good)
      for (const message of messages) {
        assert.notInclude(message, "\n")
        assert.notInclude(message, "hunter2-hunter2")
        assert.notInclude(message, password)
      }
      assert.include(messages[0], `DATABASE_URL: Postgres at 127.0.0.1:${port}: password authentication failed`)
      assert.include(messages[1], `database "no_such_database" does not exist`)
      assert.include(messages[2], "DATABASE_URL: Postgres at 127.0.0.1:1: connect ECONNREFUSED")
      assert.include(messages[3], "DATABASE_URL: Postgres at /nowhere:5433: connect ENOENT")
    })
  )

  it.live("does not name a variable that is not set in messages about the embedded Postgres", () =>
    Effect.gen(function* () {
      const dataFolder = Path.join(yield* temporaryFolder(), "data")
      const start = Effect.scoped(Layer.build(layer({ databaseUrl: undefined, dataFolder })))
      yield* start
      fs.writeFileSync(Path.join(dataFolder, "postgres", "password"), "another\n")
      const { message } = yield* Effect.flip(start)
      assert.strictEqual(
        message,
        `The Postgres in ${dataFolder}: password authentication failed for user "till_service".`
      )
    })
  )
})
