/** The database that a restore works on is the restore's alone, from before its first record until after its last. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Migrations from "../../src/postgres/Migrations.ts"
import * as RestoreTarget from "../../src/postgres/RestoreTarget.ts"
import { layerFreshDatabase } from "../support/Postgres.ts"

const OLDER_LINKS = "8Q6YeS9CKeRSUg6BqwfxGpsY"

/** Brings the tables up to date, as a start does. */
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
  it.live("is refused by everybody else until it is released, and begun afresh meanwhile", () =>
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
      yield* Migrations.setOlderLinks(OLDER_LINKS)
      yield* append
      yield* RestoreTarget.release
      yield* started
      assert.strictEqual(yield* Migrations.requireToday, Migrations.newest)
      assert.strictEqual(yield* Migrations.olderLinks, OLDER_LINKS)
      assert.strictEqual(yield* records, 1)
      assert.include(yield* messageOf(RestoreTarget.claim), "There is an installation already: ")
      assert.strictEqual(yield* records, 1)
    }).pipe(Effect.provide(layerFreshDatabase))
  )

  it.live("has nothing of anybody else's", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* sql`CREATE TABLE orders (id int)`
      assert.include(yield* messageOf(RestoreTarget.claim), "tables that are not Till's (orders): ")
    }).pipe(Effect.provide(layerFreshDatabase))
  )

  it.live("finds the ids that are found by themselves alone, as the database did that was backed up", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* started
      assert.strictEqual(yield* Migrations.olderLinks, "")
      yield* Migrations.setOlderLinks(OLDER_LINKS)
      const [row] = yield* sql<{ older: boolean; newer: boolean }>`SELECT
        is_older_link(${`pi_${OLDER_LINKS}`}) AS older, is_older_link(${`pi_9${OLDER_LINKS.slice(1)}`}) AS newer`
      assert.deepStrictEqual(row, { older: true, newer: false })
    }).pipe(Effect.provide(layerFreshDatabase))
  )
})

describe("a database of another Till", () => {
  it.live.each([
    [-1, "The database is of an older Till (migration "],
    [1, "The database was written by a newer Till (migration "]
  ] as const)("is not read by this one: %i", ([step, message]) =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* started
      yield* step < 0
        ? sql`DELETE FROM effect_sql_migrations WHERE migration_id = ${Migrations.newest}`
        : sql`INSERT INTO effect_sql_migrations (migration_id, name) VALUES (${Migrations.newest + 1}, 'later')`
      assert.include(yield* messageOf(Migrations.requireToday), message)
    }).pipe(Effect.provide(layerFreshDatabase))
  )
})
