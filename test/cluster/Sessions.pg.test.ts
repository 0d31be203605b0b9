/** A runner checks its clock and the living runners before it changes a database (semantics runners.compatibility). */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import { Context, Effect, Exit, Fiber, Layer, Logger, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { compare, type Protocol, RunnerRefused, Sessions } from "../../src/cluster/Sessions.ts"
import { migrations } from "../../src/postgres/Migrations.ts"
import { clockOf } from "../support/SettableClock.ts"
import { layerFreshDatabase } from "../support/Postgres.ts"
import { until } from "../support/TillProcess.ts"

const PROTOCOL: Protocol = { records: 5, migration: 18, requests: 1 }

const fresh = Effect.map(
  Effect.flatMap(Effect.scope, (scope) => Layer.buildWithScope(layerFreshDatabase, scope)),
  (built) => Context.get(built, PgClient.PgClient)
)

/** Starts a runner in a scope of its own. */
const begun = (sql: PgClient.PgClient, protocol: Protocol) =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const built = yield* Layer.buildWithScope(
      Layer.provide(Layer.fresh(Sessions.layer(protocol, [])), Layer.succeed(PgClient.PgClient, sql)),
      scope
    )
    return { sessions: Context.get(built, Sessions)!, end: Scope.close(scope, Exit.void) }
  })

const shifted = (millis: number) => clockOf(() => Date.now() + millis)

describe("protocols", () => {
  it("are ordered by records, then migration, then requests", () => {
    assert.isBelow(compare({ records: 4, migration: 99, requests: 9 }, PROTOCOL), 0)
    assert.isBelow(compare({ records: 5, migration: 17, requests: 9 }, PROTOCOL), 0)
    assert.isAbove(compare({ records: 5, migration: 18, requests: 2 }, PROTOCOL), 0)
    assert.strictEqual(compare({ ...PROTOCOL }, PROTOCOL), 0)
  })
})

describe("a runner", () => {
  it.live("begins beside others of its protocol", () =>
    Effect.gen(function* () {
      const sql = yield* fresh
      yield* begun(sql, PROTOCOL)
      const { sessions } = yield* begun(sql, PROTOCOL)
      assert.strictEqual(sessions.name, "till runner 5.18.1")
    })
  )

  it.live("does not begin beside a newer one", () =>
    Effect.gen(function* () {
      const sql = yield* fresh
      const newer = yield* begun(sql, { ...PROTOCOL, migration: 19 })
      const error = yield* Effect.flip(begun(sql, PROTOCOL))
      assert.instanceOf(error, RunnerRefused)
      assert.match(error.message, /A newer Till serves this database/)
      assert.notInclude(error.message, "\n")
      yield* newer.end
      yield* begun(sql, PROTOCOL)
    })
  )

  it.live("waits for older ones to end, logs that once, and keeps other older ones from beginning", () =>
    Effect.gen(function* () {
      const sql = yield* fresh
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      const older = yield* begun(sql, PROTOCOL)
      const newer = yield* Effect.forkScoped(Effect.provide(begun(sql, { ...PROTOCOL, requests: 2 }), logger))
      yield* Effect.promise(() => until("it logs that it waits", () => lines.length > 0))
      assert.match(lines[0]!, /^An older Till serves this database/)
      assert.instanceOf(yield* Effect.flip(begun(sql, PROTOCOL)), RunnerRefused)
      yield* Effect.sleep(1200)
      assert.isUndefined(newer.pollUnsafe())
      yield* older.end
      yield* Fiber.join(newer)
      assert.strictEqual(lines.length, 2)
    })
  )

  it.live("is refused if its clock is off by more than two seconds, and only then", () =>
    Effect.gen(function* () {
      const sql = yield* fresh
      for (const [millis, words] of [
        [3_600_000, "3600.0 s ahead of"],
        [-60_000, "60.0 s behind"]
      ] as const) {
        const error = yield* Effect.flip(Effect.provide(begun(sql, PROTOCOL), shifted(millis)))
        assert.instanceOf(error, RunnerRefused)
        assert.include(error.message, words)
      }
      const { sessions } = yield* Effect.provide(begun(sql, PROTOCOL), shifted(-900))
      assert.isBelow(Math.abs(sessions.aheadMillis + 900), 800)
    })
  )
})

describe("the tables of the library", () => {
  const sqlOf = (sql: PgClient.PgClient) => Layer.succeed(SqlClient.SqlClient, sql as SqlClient.SqlClient)
  const columns = (sql: PgClient.PgClient) => sql<{ column: string }>`
    SELECT concat_ws(' ', table_name, column_name, data_type, character_maximum_length, is_nullable, column_default)
      AS column
    FROM information_schema.columns
    WHERE table_name IN ('cluster_runners', 'cluster_locks')
    ORDER BY table_name, ordinal_position`

  it.live("are the same as the library would make them", () =>
    Effect.gen(function* () {
      const [ours, theirs] = [yield* fresh, yield* fresh]
      yield* Effect.provide(migrations["0001_tables"], sqlOf(ours))
      yield* Layer.build(SqlRunnerStorage.layerMigrations({})).pipe(Effect.provide(sqlOf(theirs)))
      const made = yield* columns(theirs)
      assert.isAbove(made.length, 5)
      assert.deepStrictEqual(yield* columns(ours), made)
    })
  )
})
