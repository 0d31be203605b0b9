/** A runner's locks on a real Postgres: they are confirmed only if none is missing. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import * as Member from "effect/cluster/Runner"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import * as ShardId from "effect/cluster/ShardId"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as RunnerLocks from "../../src/cluster/RunnerLocks.ts"
import { migrations } from "../../src/postgres/Migrations.ts"
import { layerFreshDatabase } from "../support/Postgres.ts"

const address = RunnerAddress.make("127.0.0.1", 1)
const GROUP = "default"
const shards = [1, 2, 3].map((id) => ShardId.make(GROUP, id))
const [first, second, third] = shards as [ShardId.ShardId, ShardId.ShardId, ShardId.ShardId]

/** A runner with all its locks, and a count of their confirmations. */
const started = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const sql = Context.get(yield* Layer.buildWithScope(layerFreshDatabase, scope), PgClient.PgClient)
  yield* Effect.provideService(migrations["0001_tables"], SqlClient.SqlClient, sql as SqlClient.SqlClient)
  let confirmed = 0
  let confirmedAt = 0
  let isEmpty = true
  const observer: RunnerLocks.Observer = {
    confirmed: (at) => {
      confirmed++
      confirmedAt = at
    },
    ended: () => undefined,
    own: Member.make({ address, groups: [GROUP], weight: 1 }),
    isEmpty: () => isEmpty,
    isOut: () => Effect.succeed(false),
    freed: () => undefined,
    news: Effect.never,
    isInHurry: () => false
  }
  const layer = Layer.provide(
    RunnerLocks.layer({ sql, name: "till runner", aheadMillis: 0 }, observer),
    ShardingConfig.layer({ availableShardGroups: [GROUP], shardsPerGroup: shards.length })
  )
  const storage = Context.get(yield* Layer.buildWithScope(layer, scope), RunnerStorage)
  assert.sameMembers(yield* storage.acquire(address, shards), shards)
  isEmpty = false
  const confirms = Effect.fnUntraced(function* (queried: ReadonlyArray<ShardId.ShardId>) {
    const before = confirmed
    yield* storage.refresh(address, queried)
    return confirmed > before
  })
  /** Waits longer than the interval of the runner's own query. */
  const isConfirmedAgain = Effect.suspend(() => {
    const before = confirmed
    return Effect.map(Effect.sleep("1300 millis"), () => confirmed > before)
  })
  // All locks end with their session; another runner might acquire them before this one does again.
  const endSession = sql`SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE locktype = 'advisory' AND datname = current_database() AND pid <> pg_backend_pid()`
  return { storage, sql, confirms, isConfirmedAgain, endSession, ageMillis: () => performance.now() - confirmedAt }
})

describe("a runner's locks", () => {
  it.live("are confirmed while some of them are released, by queries that still contain these", () =>
    Effect.gen(function* () {
      const { confirms, storage } = yield* started
      assert.isTrue(yield* confirms(shards))
      yield* storage.release(address, first)
      assert.isTrue(yield* confirms(shards))
      assert.sameMembers(yield* storage.acquire(address, [first]), [first])
      assert.isTrue(yield* confirms(shards))
      for (const shard of shards) yield* storage.release(address, shard)
      assert.isFalse(yield* confirms(shards), "nothing is held")
    })
  )

  it.live("are not confirmed once one of them is missing, also if others were released", () =>
    Effect.gen(function* () {
      const { confirms, endSession, storage } = yield* started
      yield* storage.release(address, first)
      assert.sameMembers(yield* storage.acquire(address, [first]), [first])
      yield* endSession
      yield* Effect.ignore(confirms(shards))
      assert.sameMembers(yield* storage.acquire(address, [second, third]), [second, third])
      assert.isFalse(yield* confirms(shards))
      assert.isTrue(yield* confirms([second, third]))
    })
  )

  it.live(
    "are confirmed once a second between the library's queries, with a heartbeat, over the session that has them all",
    () =>
      Effect.gen(function* () {
        const { ageMillis, confirms, endSession, isConfirmedAgain, sql, storage } = yield* started
        yield* storage.register(Member.make({ address, groups: [GROUP], weight: 1 }), true)
        const signAge = Effect.map(
          sql<{ millis: number }>`SELECT
          (extract(epoch FROM clock_timestamp()::timestamp - last_heartbeat) * 1000)::float8 AS millis FROM cluster_runners`,
          ([row]) => row!.millis
        )
        assert.isTrue(yield* confirms(shards))
        assert.isTrue(yield* isConfirmedAgain)
        // A runner that acquires a lock uses the heartbeat: it is never older than the last confirmation.
        const age = ageMillis()
        assert.isAtMost(yield* signAge, age + 50)
        yield* endSession
        yield* Effect.retry(storage.acquire(address, [first]), { times: 3 })
        assert.isFalse(yield* isConfirmedAgain, "another session has some of them")
        assert.isFalse(yield* confirms(shards), "some are missing")
        assert.isTrue(yield* confirms([first]))
        assert.isTrue(yield* isConfirmedAgain, "the session has all locks again")
      })
  )
})
