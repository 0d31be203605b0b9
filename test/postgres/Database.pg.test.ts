import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"
import { connect } from "../../src/postgres/Database.ts"
import * as EmbeddedPostgres from "../../src/postgres/EmbeddedPostgres.ts"
import { freshDatabase } from "../support/Postgres.ts"
import { till } from "../support/TillProcess.ts"

const open = (url: Redacted.Redacted) => connect(url).pipe(Effect.provide(Reactivity.layer))

/** A fresh database with a setting of its own. */
const databaseSetTo = Effect.fnUntraced(function* (setting: string) {
  const url = yield* freshDatabase
  yield* (yield* open(url)).unsafe(`ALTER DATABASE ${new URL(Redacted.value(url)).pathname.slice(1)} SET ${setting}`)
  return url
})

describe("Database", () => {
  it.live("connects in UTC under its name", () =>
    Effect.gen(function* () {
      const sql = yield* open(yield* freshDatabase)
      const rows = yield* sql`SELECT current_setting('TimeZone') AS zone, current_setting('application_name') AS name`
      assert.deepStrictEqual(rows, [{ zone: "UTC", name: "till" }])
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

  it.live("has no statement compiled, where the database would", () =>
    Effect.gen(function* () {
      const sql = yield* open(yield* databaseSetTo("jit = on"))
      assert.deepStrictEqual(yield* sql`SHOW jit`, [{ jit: "off" }])
    })
  )

  it.live("warns of a server that does not wait for its disk", () =>
    Effect.gen(function* () {
      // One of its own: all who use the run's would be warned.
      const dataFolder = yield* Effect.acquireRelease(
        Effect.sync(() => fs.mkdtempSync(Path.join(os.tmpdir(), "till-database-"))),
        (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))
      )
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
      // A command warns as well, but not in what it prints.
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
        change(url)
        return Redacted.make(url.href)
      }
      const wrong = [
        changed((url) => (url.password = "hunter2-hunter2")),
        changed((url) => (url.pathname = "/no_such_database")),
        changed((url) => ((url.port = "1"), (url.password = "hunter2-hunter2")))
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
    })
  )
})
