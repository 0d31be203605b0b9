/** What a lost session of locks means to the runner that had it, and to whoever gets the locks. */
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
import { vacated } from "../../src/cluster/LockTakeover.ts"
import { CONFIRMED_MILLIS, Placement } from "../../src/engine/process/Placement.ts"
import * as RunnerTls from "../../src/http/forward/RunnerTls.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"
import { layerFreshDatabase } from "../support/Postgres.ts"
import { until } from "../support/TillProcess.ts"

const database = Layer.provideMerge(Migrations.layer, layerFreshDatabase)
const runner = Sessions.layer({ records: 1, migration: 1, requests: 1 }).pipe(
  Layer.provideMerge(database),
  Layer.provideMerge(Placement.layerShared)
)
const SELF = "https://127.0.0.1:1"
const TLS = RunnerTls.make(Redacted.make(new Uint8Array(32)))
const OTHER_TLS = RunnerTls.make(Redacted.make(new Uint8Array(32).fill(1)))
/** Partitions by what has become of whoever had them. */
const [ANSWERS, GIVES_UP, GONE, FROZEN, SILENT, CUT_OFF, LIVELY, SQUATTED, FREE, OWN] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
/** So long after the beginning other locks are got, and somebody gives another sign. */
const [LATE_MILLIS, SIGN_MILLIS] = [2000, 500]

/** A runner's internal listener, which proves that it lives; without terms, it takes no notice of anybody. */
const listening = (terms: TlsOptions | undefined) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = terms === undefined ? net.createServer() : tls.createServer(terms)
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { server, address: `127.0.0.1:${(server.address() as AddressInfo).port}` }
    }),
    ({ server }) => Effect.sync(() => void server.close())
  )

/** An address at which nobody listens. */
const unused = Effect.scoped(Effect.map(listening(TLS.server), ({ address }) => address))

describe("the session of a runner's locks", () => {
  it.live("says at once that it has ended, though nobody asks it", () =>
    Effect.gen(function* () {
      const sessions = (yield* Sessions)!
      const sql = yield* PgClient.PgClient
      const own = RunnerAddress.make("127.0.0.1", 1)
      const told: Array<string> = []
      const storage = yield* Layer.build(
        RunnerLocks.layer(sessions, {
          confirmed: () => void told.push("confirmed"),
          ended: () => void told.push("ended"),
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
      assert.deepStrictEqual(told, ["confirmed"])
      assert.lengthOf(yield* refresh(own, shards), 2)
      assert.deepStrictEqual(told, ["confirmed", "confirmed"])
      yield* sql`SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database d ON d.oid = database
        WHERE locktype = 'advisory' AND datname = current_database()`
      yield* Effect.promise(() => until("it says so", () => told.at(-1) === "ended"))
      assert.lengthOf(yield* refresh(own, shards).pipe(Effect.retry({ times: 20 })), 0)
      assert.deepStrictEqual(told, ["confirmed", "confirmed", "ended"])
    }).pipe(Effect.scoped, Effect.provide(runner))
  )
})

describe("a partition whose lock was got", () => {
  it.live("is taken as soon as nobody else can answer for it", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const [answers, cutOff, lively] = [
        yield* listening(TLS.server),
        yield* listening(TLS.server),
        yield* listening(TLS.server)
      ]
      const [frozen, silent] = [yield* listening(undefined), yield* listening(undefined)]
      // A process of another installation has got the address of one that is dead.
      const squatted = yield* listening(OTHER_TLS.server)
      const gone = yield* unused
      const others = [frozen, silent, cutOff, lively, squatted].map(({ address }) => address)
      const owners = [answers.address, answers.address, gone, ...others]
      for (const [id, address] of owners.entries()) {
        yield* sql`INSERT INTO partitions VALUES (${id}, ${`https://${address}`}, 1, now())`
      }
      yield* sql`INSERT INTO partitions VALUES (${FREE}, NULL, 1, now()), (${OWN}, ${SELF}, 1, now())`
      const sign = (address: string, millis: number) =>
        sql`INSERT INTO cluster_runners (address, runner, healthy, last_heartbeat)
            VALUES (${address}, '{}', true, clock_timestamp()::timestamp - ${millis} * interval '1 millisecond')`
      // Whoever answers is believed to live on, whatever the database's clock says of its last sign.
      yield* sign(answers.address, 60_000)
      yield* sign(frozen.address, CONFIRMED_MILLIS + 1)
      yield* sign(squatted.address, CONFIRMED_MILLIS + 1)
      // A clock that was set back makes nobody wait for longer.
      yield* sign(silent.address, -60_000)
      for (const { address } of [cutOff, lively]) yield* sign(address, 60_000)

      const places = yield* PartitionTable.make(
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
          vacated(places, health, partition),
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
          SIGN_MILLIS
        )
      )
      yield* Effect.promise(() => until("the one that is gone is followed", () => taken.has(GONE)))
      yield* sql`UPDATE partitions SET url = NULL WHERE id = ${GIVES_UP}`
      yield* Fiber.join(taking)
      const order = [...taken.keys()]
      assert.sameMembers(order.slice(0, 6), [GIVES_UP, GONE, FROZEN, SQUATTED, FREE, OWN])
      for (const partition of [ANSWERS, SILENT, CUT_OFF]) assert.isAtLeast(taken.get(partition)!, CONFIRMED_MILLIS - 1)
      // What it was confirmed is over long before its lock was got for so long.
      assert.isBelow(taken.get(CUT_OFF)!, LATE_MILLIS + CONFIRMED_MILLIS - 500)
      assert.isAtLeast(taken.get(LIVELY)!, SIGN_MILLIS + CONFIRMED_MILLIS)
    }).pipe(Effect.scoped, Effect.provide(runner))
  )
})
