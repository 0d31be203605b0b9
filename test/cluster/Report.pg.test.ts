/** The report of `till cluster` matches the tables. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { report } from "../../src/cluster/Report.ts"
import { partitionOf, PARTITIONS } from "../../src/engine/process/Placement.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"
import { layerFreshDatabase } from "../support/Postgres.ts"

const database = Layer.provideMerge(Migrations.layer, layerFreshDatabase)

const [FIRST, SECOND, LOST] = ["https://127.0.0.1:4901", "https://[::1]:4902", "https://10.0.0.9:4903"]

describe("the report of a cluster", () => {
  it.live("is empty without runners", () =>
    Effect.gen(function* () {
      const { partitions, runners } = yield* report
      assert.isEmpty(runners)
      assert.strictEqual(partitions.length, PARTITIONS)
      assert.isTrue(partitions.every(({ epoch, lag_records, url }) => url === null && epoch === 0 && lag_records === 0))
    }).pipe(Effect.provide(database))
  )

  it.live("has the living runners, their partitions, and the lag of their views", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* sql`INSERT INTO runners VALUES
        (${FIRST}, '1.2.3', now() - interval '1 hour', now(), 7, false),
        (${SECOND}, '1.2.4', now(), now(), -3, true),
        (${LOST}, '1.2.3', now() - interval '1 day', now() - interval '1 hour', 0, false)`
      yield* sql`INSERT INTO cluster_runners (address, runner, healthy, last_heartbeat) VALUES
        ('127.0.0.1:4901', '{}', true, (now() - interval '2 seconds') AT TIME ZONE 'UTC'),
        ('::1:4902', '{}', false, (now() - interval '9 seconds') AT TIME ZONE 'UTC')`
      yield* sql`INSERT INTO partitions SELECT id, CASE WHEN id % 2 = 0 THEN ${FIRST} ELSE ${SECOND} END, 3, now()
        FROM generate_series(0, 62) AS ids (id)`
      const account = Array.from({ length: 999 }, (_, i) => `mer_${i}:test`).find((name) => partitionOf(name) === 4)!
      yield* sql`INSERT INTO checkpoints (account, version) VALUES (${account}, 2), ('mer_even:test', 1)`
      yield* sql`INSERT INTO journal SELECT ${account}, version, '', '' FROM generate_series(1, 7) AS v (version)`
      yield* sql`INSERT INTO journal VALUES ('mer_even:test', 1, '', '')`

      const { partitions, runners } = yield* report
      assert.deepStrictEqual(
        runners.map(({ clock_ahead_millis, healthy, leaving, url, version }) => {
          return { url, version, healthy, leaving, clock_ahead_millis }
        }),
        [
          { url: FIRST, version: "1.2.3", healthy: true, leaving: false, clock_ahead_millis: 7 },
          { url: SECOND, version: "1.2.4", healthy: false, leaving: true, clock_ahead_millis: -3 }
        ]
      )
      const [first, second] = runners
      assert.isAtLeast(first!.confirmed_millis_ago!, 2000)
      assert.isAtLeast(second!.confirmed_millis_ago!, 9000)
      assert.isAbove(second!.since - first!.since, 3_500_000)
      assert.strictEqual(first!.partitions.length, 32)
      assert.strictEqual(second!.partitions.length, 31)
      assert.deepStrictEqual(
        partitions.flatMap(({ id, lag_records }) => (lag_records > 0 ? [[id, lag_records]] : [])),
        [[4, 5]]
      )
      assert.deepStrictEqual(
        partitions.filter(({ url }) => url === null).map(({ id }) => id),
        [63]
      )
    }).pipe(Effect.provide(database))
  )
})
