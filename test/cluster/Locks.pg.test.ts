/** A runner's locks on a real Postgres: what their storage says of them counts only if nothing is missing. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import * as Member from "effect/cluster/Runner"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import * as ShardId from "effect/cluster/ShardId"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as Locks from "../../src/cluster/Locks.ts"
import { migrations } from "../../src/postgres/Migrations.ts"
import { layerFreshDatabase } from "../support/Postgres.ts"

const address = RunnerAddress.make("127.0.0.1", 1)
const GROUP = "default"
const shards = [1, 2, 3].map((id) => ShardId.make(GROUP, id))
const [first, second, third] = shards as [ShardId.ShardId, ShardId.ShardId, ShardId.ShardId]

/** A runner's locks, all of which it has, and how often they were confirmed. */
const started = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const sql = Context.get(yield* Layer.buildWithScope(layerFreshDatabase, scope), PgClient.PgClient)
  yield* Effect.provideService(migrations["0018_cluster"], SqlClient.SqlClient, sql as SqlClient.SqlClient)
  let confirmed = 0
  let isEmpty = true
  const observer: Locks.Observer = {
    confirmed: () => void confirmed++,
    ended: () => undefined,
    own: Member.make({ address, groups: [GROUP], weight: 1 }),
    isEmpty: () => isEmpty,
    isOut: () => Effect.succeed(false),
    freed: () => undefined,
    news: Effect.never,
    isInHurry: () => false
  }
  const layer = Layer.provide(
    Locks.layer({ sql, name: "till runner", aheadMillis: 0 }, observer),
    ShardingConfig.layer({ availableShardGroups: [GROUP], shardsPerGroup: shards.length })
  )
  const storage = Context.get(yield* Layer.buildWithScope(layer, scope), RunnerStorage)
  assert.sameMembers(yield* storage.acquire(address, shards), shards)
  isEmpty = false
  const confirms = Effect.fnUntraced(function* (asked: ReadonlyArray<ShardId.ShardId>) {
    const before = confirmed
    yield* storage.refresh(address, asked)
    return confirmed > before
  })
  return { storage, sql, confirms }
})

describe("a runner's locks", () => {
  it.live("are confirmed while some of them are given back, by questions that ask for these too", () =>
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

  it.live("are not confirmed once one of them is missing, whatever else was given back", () =>
    Effect.gen(function* () {
      const { confirms, sql, storage } = yield* started
      yield* storage.release(address, first)
      assert.sameMembers(yield* storage.acquire(address, [first]), [first])
      // All go with their session; others than this runner might have had them before it has them again.
      yield* sql`SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database ON pg_database.oid = database
        WHERE locktype = 'advisory' AND datname = current_database() AND pid <> pg_backend_pid()`
      yield* Effect.ignore(confirms(shards))
      assert.sameMembers(yield* storage.acquire(address, [second, third]), [second, third])
      assert.isFalse(yield* confirms(shards))
      assert.isTrue(yield* confirms([second, third]))
    })
  )
})
