/** The start creates the tables, and refuses databases that this Till must not change (semantics storage.formats). */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Logger } from "effect"
import { newest } from "../../src/postgres/Migrations.ts"
import { journalOf, viewsOf } from "../engine/Harness.ts"
import * as PostgresStorage from "../engine/PostgresStorage.ts"

const ACCOUNT = "mer_1:test"

/** The table of migrations as the migrator creates it. */
const MIGRATIONS_TABLE = `CREATE TABLE effect_sql_migrations (migration_id int PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now(), name varchar(255) NOT NULL)`

/** Starts on the database and returns the refusal; empty if there was none. */
const refusalOf = (database: PostgresStorage.PostgresStorage) =>
  Effect.map(Effect.exit(Effect.scoped(database.connect("till"))), (exit) =>
    Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
  )

describe("a database of an older Till", () => {
  it.live("is migrated, and the log says why the start takes longer", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => lines.push(String(message)))
      yield* database.edit(MIGRATIONS_TABLE)
      for (let i = 0; i < 2; i++) yield* Effect.provide(database.connect("till"), Logger.layer([logger]))
      assert.deepStrictEqual(lines, ["The database is of an older Till; its tables are brought up to date"])
    })
  )

  it.live("search.words: has its views made anew, for terms that documents did not have", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* Effect.scoped(database.connect("till"))
      yield* database.edit("DELETE FROM effect_sql_migrations WHERE migration_id > 1")
      yield* database.edit("ALTER TABLE objects RENAME COLUMN term_numbers TO terms")
      yield* database.edit("ALTER TABLE journal DROP COLUMN erased")
      yield* database.edit("DROP TABLE erasures")
      yield* database.edit("ALTER TABLE checkpoints DROP COLUMN events_from")
      yield* database.edit("DROP INDEX objects_without_outcome")
      yield* database.edit(`INSERT INTO checkpoints (account, version) VALUES ('${ACCOUNT}', 1)`)
      const storage = yield* database.connect("till")
      assert.deepStrictEqual(yield* viewsOf(storage).outdated, [ACCOUNT])
    })
  )
})

describe("a database of another Till", () => {
  it.live.each([
    ["a newer one", newest + 1, "later", "The database was written by a newer Till (migration "],
    [
      "one from before the first release",
      1,
      "engine",
      "The database was made by a Till from before its first release, which no release can read: start anew with an " +
        "empty database, or without DATABASE_URL with an empty TILL_DATA_DIR."
    ]
  ] as const)("is refused and left unchanged: %s", ([, migration, name, message]) =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* database.edit(MIGRATIONS_TABLE)
      yield* database.edit(`INSERT INTO effect_sql_migrations (migration_id, name) VALUES (${migration}, '${name}')`)
      assert.include(yield* refusalOf(database), message)
      const tables = yield* database.readRows("SELECT FROM pg_tables WHERE schemaname = 'public'")
      assert.lengthOf(tables, 1)
    })
  )
})

describe("a database with tables of another application", () => {
  it.live("is refused and left unchanged", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      for (const name of ["orders", "events", "customers", "users"])
        yield* database.edit(`CREATE TABLE ${name} (id int)`)
      const exit = yield* Effect.exit(database.connect("till"))
      const problem = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
      assert.include(problem, "the database has tables that are not Till's (customers, events, orders). Till needs a")
      const [row] = yield* database.readRows<{ count: number }>(
        "SELECT count(*)::int AS count FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
      )
      assert.strictEqual(row?.count, 4)
    })
  )

  it.live("is detected by its tables, whatever its schema is called, and even with a table named journal", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* database.edit('CREATE SCHEMA "My Shop" CREATE TABLE journal (id int, sold text)')
      yield* database.edit(`DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET search_path = "My Shop"', current_database());
      END $$`)
      const exit = yield* Effect.exit(database.connect("till"))
      const problem = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
      assert.include(problem, "the database has tables that are not Till's (journal). Till needs a")
    })
  )

  it.live("is not one with only tables of extensions, or in another schema", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* database.edit("CREATE SCHEMA shop CREATE TABLE orders (id int)")
      yield* database.edit("CREATE TABLE brought_along (id int)")
      yield* database.edit("CREATE EXTENSION fuzzystrmatch")
      yield* database.edit("ALTER EXTENSION fuzzystrmatch ADD TABLE brought_along")
      const storage = yield* database.connect("till")
      assert.deepStrictEqual(yield* journalOf(storage).read(ACCOUNT, 0, 10), [])
    })
  )
})

describe("a database that Till may not change", () => {
  it.live("is refused with the server's message", () =>
    Effect.gen(function* () {
      const database = yield* PostgresStorage.make
      yield* database.edit(`DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
      END $$`)
      const exit = yield* Effect.exit(database.connect("till"))
      const problem = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
      assert.include(
        problem,
        "The tables of the database cannot be made or brought up to date: cannot execute CREATE TABLE in a read-only"
      )
    })
  )
})
