/**
 * Effects of a lost session of locks on the runner that had it, and on the runner that acquires the locks (semantics
 * runners.locks).
 */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as Member from "effect/cluster/Runner"
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import * as ShardId from "effect/cluster/ShardId"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import { Context, Effect, Fiber, Layer, Redacted } from "effect"
import type { AddressInfo } from "node:net"
import * as net from "node:net"
import type { TlsOptions } from "node:tls"
import * as tls from "node:tls"
import * as Health from "../../src/cluster/Health.ts"
import * as RunnerLocks from "../../src/cluster/RunnerLocks.ts"
import * as PartitionTable from "../../src/cluster/PartitionTable.ts"
import { Sessions } from "../../src/cluster/Sessions.ts"
import { awaitVacancy } from "../../src/cluster/LockTakeover.ts"
import { CONFIRMED_MILLIS, Placement } from "../../src/engine/process/Placement.ts"
import * as RunnerTls from "../../src/http/forward/RunnerTls.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"
import { layerFreshDatabase } from "../support/Postgres.ts"
import { until } from "../support/TillProcess.ts"

const database = Layer.provideMerge(Migrations.layer, layerFreshDatabase)
const runner = Sessions.layer({ records: 1, migration: 1, requests: 1 }, []).pipe(
  Layer.provideMerge(database),
  Layer.provideMerge(Placement.layerShared)
)
const SELF = "https://127.0.0.1:1"
const TLS = RunnerTls.make([Redacted.make(new Uint8Array(32))])
const OTHER_TLS = RunnerTls.make([Redacted.make(new Uint8Array(32).fill(1))])
/** Partitions by the state of their previous owner. */
const [ANSWERS, GIVES_UP, GONE, FROZEN, SILENT, CUT_OFF, LIVELY, SQUATTED, FREE, OWN] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
/** Times from the start: of the later locks, and of another heartbeat. */
const [LATE_MILLIS, HEARTBEAT_MILLIS] = [2000, 500]

/** A runner's internal listener, which proves that it is alive; without TLS options, it never answers. */
const listening = (options: TlsOptions | undefined) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = options === undefined ? net.createServer() : tls.createServer(options)
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { server, address: `127.0.0.1:${(server.address() as AddressInfo).port}` }
    }),
    ({ server }) => Effect.sync(() => void server.close())
  )

/** An address at which no process listens. */
const unused = Effect.scoped(Effect.map(listening(TLS.server), ({ address }) => address))

describe("the session of a runner's locks", () => {
  it.live("reports its end at once, without a query", () =>
    Effect.gen(function* () {
      const sessions = (yield* Sessions)!
      const sql = yield* PgClient.PgClient
      const own = RunnerAddress.make("127.0.0.1", 1)
      const calls: Array<string> = []
      const storage = yield* Layer.build(
        RunnerLocks.layer(sessions, {
          confirmed: () => void calls.push("confirmed"),
          ended: () => void calls.push("ended"),
          own: Member.make({ address: own, groups: ["default"], weight: 1 }),
          isEmpty: () => true,
          isOut: () => Effect.succeed(false),
          freed: () => undefined,
          news: Effect.never,
          isInHurry: () => false
        }).pipe(Layer.provide(ShardingConfig.layer({ shardsPerGroup: 64 })))
      )
      const { acquire, refresh } = Context.get(storage, RunnerStorage)
      const shards = [ShardId.make("default", 1), ShardId.make("default", 2)]
      assert.lengthOf(yield* acquire(own, shards), 2)
      assert.deepStrictEqual(calls, ["confirmed"])
      assert.lengthOf(yield* refresh(own, shards), 2)
      assert.deepStrictEqual(calls, ["confirmed", "confirmed"])
      yield* sql`SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database d ON d.oid = database
        WHERE locktype = 'advisory' AND datname = current_database()`
      yield* Effect.promise(() => until("it is reported", () => calls.at(-1) === "ended"))
      assert.lengthOf(yield* refresh(own, shards).pipe(Effect.retry({ times: 20 })), 0)
      assert.deepStrictEqual(calls, ["confirmed", "confirmed", "ended"])
    }).pipe(Effect.scoped, Effect.provide(runner))
  )
})

describe("a partition whose lock was acquired", () => {
  it.live("is taken as soon as no other runner can serve it", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const [answers, cutOff, lively] = [
        yield* listening(TLS.server),
        yield* listening(TLS.server),
        yield* listening(TLS.server)
      ]
      const [frozen, silent] = [yield* listening(undefined), yield* listening(undefined)]
      // A process of another installation has the address of a dead runner.
      const squatted = yield* listening(OTHER_TLS.server)
      const gone = yield* unused
      const others = [frozen, silent, cutOff, lively, squatted].map(({ address }) => address)
      const owners = [answers.address, answers.address, gone, ...others]
      for (const [id, address] of owners.entries()) {
        yield* sql`INSERT INTO partitions VALUES (${id}, ${`https://${address}`}, 1, now())`
      }
      yield* sql`INSERT INTO partitions VALUES (${FREE}, NULL, 1, now()), (${OWN}, ${SELF}, 1, now())`
      const beat = (address: string, millis: number) =>
        sql`INSERT INTO cluster_runners (address, runner, healthy, last_heartbeat)
            VALUES (${address}, '{}', true, clock_timestamp()::timestamp - ${millis} * interval '1 millisecond')`
      // A runner that answers counts as alive, at any time of its last heartbeat by the database's clock.
      yield* beat(answers.address, 60_000)
      yield* beat(frozen.address, CONFIRMED_MILLIS + 1)
      yield* beat(squatted.address, CONFIRMED_MILLIS + 1)
      // A clock that was set back makes no runner wait longer.
      yield* beat(silent.address, -60_000)
      for (const { address } of [cutOff, lively]) yield* beat(address, 60_000)

      const table = yield* PartitionTable.make(
        { url: SELF, version: "0.0.0" },
        (yield* Sessions)!,
        yield* Placement,
        () => true
      )
      const health = Health.make(TLS.client)
      const begun = performance.now()
      const taken = new Map<number, number>()
      const take = (partition: number) =>
        Effect.andThen(
          awaitVacancy(table, health, partition),
          Effect.sync(() => taken.set(partition, performance.now() - begun))
        )
      const all = [ANSWERS, GIVES_UP, GONE, FROZEN, SILENT, SQUATTED, FREE, OWN]
      const late = (partition: number) => Effect.delay(take(partition), LATE_MILLIS)
      const taking = yield* Effect.forkChild(
        Effect.all([...all.map(take), late(CUT_OFF), late(LIVELY)], { concurrency: "unbounded" })
      )
      yield* Effect.forkChild(
        Effect.delay(
          sql`UPDATE cluster_runners SET last_heartbeat = now() WHERE address = ${lively.address}`,
          HEARTBEAT_MILLIS
        )
      )
      yield* Effect.promise(() => until("the runner that is gone is replaced", () => taken.has(GONE)))
      yield* sql`UPDATE partitions SET url = NULL WHERE id = ${GIVES_UP}`
      yield* Fiber.join(taking)
      const order = [...taken.keys()]
      assert.sameMembers(order.slice(0, 6), [GIVES_UP, GONE, FROZEN, SQUATTED, FREE, OWN])
      for (const partition of [ANSWERS, SILENT, CUT_OFF]) assert.isAtLeast(taken.get(partition)!, CONFIRMED_MILLIS - 1)
      // Its confirmation expires long before the lock is that old.
      assert.isBelow(taken.get(CUT_OFF)!, LATE_MILLIS + CONFIRMED_MILLIS - 500)
      assert.isAtLeast(taken.get(LIVELY)!, HEARTBEAT_MILLIS + CONFIRMED_MILLIS)
    }).pipe(Effect.scoped, Effect.provide(runner))
  )
})
