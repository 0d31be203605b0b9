/** A restore has its database to itself, from before its first record until after its last. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Migrations from "../../src/postgres/Migrations.ts"
import * as RestoreTarget from "../../src/postgres/RestoreTarget.ts"
import { layerFreshDatabase } from "../support/Postgres.ts"

/** Migrates the tables, as a start does. */
const started = Effect.scoped(Effect.asVoid(Layer.build(Layer.fresh(Migrations.layer))))
const migrated = Effect.scoped(Effect.asVoid(Layer.build(Layer.fresh(Migrations.layerRestoring))))

const messageOf = <A, R>(effect: Effect.Effect<A, { readonly message: string }, R>) =>
  Effect.map(Effect.flip(effect), ({ message }) => message)

const append = PgClient.PgClient.use(
  (sql) => sql`INSERT INTO journal (account, version, hash, record) VALUES ('till', 1, '\\x00', '\\x00')`
)
const records = PgClient.PgClient.use((sql) =>
  Effect.map(sql<{ count: number }>`SELECT count(*)::int AS count FROM journal`, ([row]) => row?.count)
)

describe("the target of a restore", () => {
  it.live("is refused by every other command until it is released, and emptied by another restore", () =>
    Effect.gen(function* () {
      const unfinished = "A restore into this database has not come to its end: run `till restore` again."
      yield* RestoreTarget.claim
      assert.strictEqual(yield* messageOf(started), unfinished)
      assert.strictEqual(yield* messageOf(Migrations.requireToday), unfinished)
      yield* RestoreTarget.claim
      yield* migrated
      yield* append
      assert.strictEqual(yield* messageOf(started), unfinished)
      yield* RestoreTarget.claim
      assert.strictEqual(yield* records, 0)
      yield* migrated
      yield* append
      yield* RestoreTarget.release
      yield* started
      assert.strictEqual(yield* Migrations.requireToday, Migrations.newest)
      assert.strictEqual(yield* records, 1)
      assert.include(yield* messageOf(RestoreTarget.claim), "There is an installation already: ")
      assert.strictEqual(yield* records, 1)
    }).pipe(Effect.provide(layerFreshDatabase))
  )

  it.live("must not have tables of another application", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* sql`CREATE TABLE orders (id int)`
      assert.include(yield* messageOf(RestoreTarget.claim), "tables that are not Till's (orders): ")
    }).pipe(Effect.provide(layerFreshDatabase))
  )
})

describe("a database of another Till", () => {
  it.live.each([
    ["DELETE FROM effect_sql_migrations", "The database is of an older Till (migration "],
    [
      `INSERT INTO effect_sql_migrations (migration_id, name) VALUES (${Migrations.newest + 1}, 'later')`,
      "The database was written by a newer Till (migration "
    ],
    [
      "UPDATE effect_sql_migrations SET name = 'engine' WHERE migration_id = 1",
      "The database was made by a Till from before its first release"
    ]
  ] as const)("is not read by this one: %s", ([change, message]) =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* started
      yield* sql.unsafe(change)
      assert.include(yield* messageOf(Migrations.requireToday), message)
    }).pipe(Effect.provide(layerFreshDatabase))
  )
})
