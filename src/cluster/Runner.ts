/**
 * This process as one of several runners that share an installation's partitions. `effect/cluster` assigns the
 * partitions, and this file drives `Placement` accordingly (semantics runners.partitions).
 *
 * Each partition is a singleton of the library, which runs in the process that holds the lock of its shard. The
 * partition is served from the start of its singleton; the lock is released after the singleton has ended, which is
 * when no work on the partition is running here. The library's messages are not used, so it neither listens nor stores
 * any.
 */
import * as MessageStorage from "effect/cluster/MessageStorage"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as Member from "effect/cluster/Runner"
import { RunnerHealth } from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import { Sharding } from "effect/cluster/Sharding"
import * as ShardingModule from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import type { ConnectionOptions } from "node:tls"
import { Clock, Context, Effect, Exit, Fiber, Layer, LogLevel, Option, References, Schedule, Scope } from "effect"
import * as Metrics from "../engine/process/Metrics.ts"
import {
  CONFIRMED_MILLIS,
  type Partition,
  PARTITIONS,
  Placement,
  type PlacementShape
} from "../engine/process/Placement.ts"
import { Cluster, type ClusterShape } from "./Cluster.ts"
import * as Health from "./Health.ts"
import { addressOf, urlOf } from "./Health.ts"
import * as RunnerLocks from "./RunnerLocks.ts"
import * as PartitionTable from "./PartitionTable.ts"
import { awaitVacancy } from "./LockTakeover.ts"
import type { RunnerSessions } from "./Sessions.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("cluster")

export interface RunnerOptions {
  /** Base URL at which other runners reach this runner's internal listener, without a trailing slash. */
  readonly url: string
  readonly version: string
  readonly sessions: RunnerSessions
  /** TLS options for health checks of other runners. */
  readonly tls: ConnectionOptions
  /** How long a leaving runner waits for its partitions to move before it releases the rest, in milliseconds. */
  readonly handOverMillisMax: number
}

/** Makes this process a runner while the layer lives. Build it after all layers that listen to partitions. */
export const layer = (options: RunnerOptions): Layer.Layer<Cluster, never, Placement> =>
  Layer.effect(Cluster, make(options))

const GROUP = "default"

const configOf = (address: RunnerAddress.RunnerAddress) =>
  ShardingConfig.layer({
    runnerAddress: Option.some(address),
    availableShardGroups: [GROUP],
    assignedShardGroups: [GROUP],
    shardsPerGroup: PARTITIONS,
    // Longer than a confirmation is valid: a frozen runner stops serving before others begin.
    shardLockExpiration: "6 seconds",
    shardLockRefreshInterval: "2 seconds",
    refreshAssignmentsInterval: "1 second",
    runnerHealthCheckInterval: "1 second",
    // Runners that join at the same time get their shares in one step.
    runnerJoinDebounce: "3 seconds",
    // Interval of new tries for locks that were not free.
    entityMessagePollInterval: "500 millis",
    simulateRemoteSerialization: false
  })

/** How long a leaving runner goes on serving until others know it and wait for its locks, in milliseconds. */
const NOTICE_MILLIS = 1200
/** Time limit for the database when the runner ends, in milliseconds. */
const ANSWER_MILLIS_MAX = 1000
/** Time after which a start logs what it waits for, in milliseconds. */
const PATIENCE_MILLIS = 10_000

const make = Effect.fnUntraced(function* (
  options: RunnerOptions
): Effect.fn.Return<ClusterShape, never, Placement | Scope.Scope> {
  const placement = yield* Placement
  const { handOverMillisMax, sessions, tls, url, version } = options
  const health = Health.make(tls)
  let state: "member" | "leaving" | "out" = "member"
  const { confirmed, ended, isConfirmed } = makeConfirmation(placement)
  const table = yield* PartitionTable.make({ url, version }, sessions, placement, isConfirmed)
  /** Partitions from before their acquisition until after their release. */
  const begun = new Set<Partition>()
  const isEmpty = () => begun.size === 0
  // Built last, so its `onReleasing` runs first: right after the last request is served here.
  yield* placement.listen({
    onReleasing: (partition) => Effect.sync(() => table.disclaim(partition)),
    onWritten: table.noteWritten
  })
  // Ends before the layer, because a leaving runner still checks the health of others.
  const scope = yield* Scope.fork(yield* Effect.scope)
  const services = yield* Layer.buildWithScope(
    shardingOf(options, health, {
      confirmed,
      ended: () => {
        ended()
        table.disclaimAll()
      },
      own: Member.make({ address: addressOf(url), groups: [GROUP], weight: 1 }),
      isEmpty,
      isOut: (address) => {
        if (urlOf(address) === url) return Effect.succeed(state === "out")
        return table.isLeaving(urlOf(address)) ? Effect.succeed(true) : health.isGone(address)
      },
      freed: table.noteFreedLock,
      news: table.news,
      isInHurry: () => state !== "member"
    }),
    scope
  )
  // Registered outside of the library's scope: it would end them one by one, and keep all locks until then.
  yield* register(Context.get(services, Sharding), (partition) =>
    serve(partition, awaitVacancy(table, health, partition), placement, table, begun)
  )
  const hasOthers = Context.get(services, RunnerStorage).getRunners.pipe(
    Effect.map((runners) => runners.some(([{ address }, isHealthy]) => isHealthy && urlOf(address) !== url)),
    // Without the database no other runner can take over.
    Effect.timeout(ANSWER_MILLIS_MAX),
    Effect.orElseSucceed(() => false)
  )
  const handOver = Effect.gen(function* () {
    if (!(yield* hasOthers)) return
    yield* table.leave
    yield* Effect.sleep(NOTICE_MILLIS)
    // If all runners end together, there is none to wait for.
    if (!(yield* hasOthers)) return
    state = "out"
    yield* Effect.repeat(Effect.sync(isEmpty), { until: (empty) => empty, schedule: Schedule.spaced(10) })
  })
  const leave = yield* once(
    Effect.gen(function* () {
      state = "leaving"
      table.signal()
      yield* Effect.timeoutOption(handOver, handOverMillisMax)
      // Partitions that are still here are drained too: up to two seconds for all, and then until each is.
      yield* Scope.close(scope, Exit.void)
    })
  )
  yield* Effect.addFinalizer(() => leave)
  const patiently = Effect.timeoutOption(table.allServed, PATIENCE_MILLIS)
  const ready = Effect.flatMap(patiently, (served) =>
    Option.isSome(served)
      ? Effect.void
      : Effect.andThen(log.warning("Waiting for partitions that no process serves"), table.allServed)
  )
  return { ready, leave }
})

/** Tracks whether this runner's ownership was confirmed recently, and its session has not ended since. */
const makeConfirmation = ({ confirm, unconfirm }: PlacementShape) => {
  let confirmedAt = Number.NEGATIVE_INFINITY
  let endedAt = Number.NEGATIVE_INFINITY
  return {
    isConfirmed: () => performance.now() - confirmedAt < CONFIRMED_MILLIS,
    confirmed: (at: number) => {
      if (at >= endedAt) confirmedAt = Math.max(confirmedAt, at)
      confirm(at)
    },
    ended: () => {
      endedAt = performance.now()
      confirmedAt = Number.NEGATIVE_INFINITY
      unconfirm()
    }
  }
}

/** Makes an effect that runs the work once and to its end, for all callers together, even if they are interrupted. */
const once = (work: Effect.Effect<void>): Effect.Effect<Effect.Effect<void>> =>
  Effect.map(Effect.context<never>(), (context) => {
    let fiber: Fiber.Fiber<void> | undefined
    return Effect.suspend(() => {
      fiber ??= Effect.runForkWith(context)(work)
      return Fiber.join(fiber)
    })
  })

const shardingOf = (
  { sessions, url }: RunnerOptions,
  { isAlive }: Health.Health,
  observer: RunnerLocks.Observer
): Layer.Layer<Sharding | RunnerStorage> => {
  const address = addressOf(url)
  return ShardingModule.layer.pipe(
    Layer.provide([Runners.layerNoop, Layer.succeed(RunnerHealth, { isAlive })]),
    Layer.provide(Layer.effectDiscard(RunnerLocks.forgetDead(address, isAlive))),
    Layer.provideMerge(RunnerLocks.layer(sessions, observer)),
    Layer.provide(MessageStorage.layerNoop),
    Layer.provide(configOf(address)),
    // The library's own metrics would be metrics of Till.
    Layer.provide([layerQuiet, layerMonotonicClock, Layer.fresh(Metrics.layer)])
  )
}

/**
 * A clock without steps. The library waits by the wall clock until joins have settled: a clock set back by an hour
 * would make it wait that hour without taking anything over.
 */
const layerMonotonicClock = Layer.effect(
  Clock.Clock,
  Effect.map(Clock.Clock, (clock): Clock.Clock => {
    const ahead = clock.currentTimeNanosUnsafe() - clock.monotonicTimeNanosUnsafe()
    const nanos = () => clock.monotonicTimeNanosUnsafe() + ahead
    const millis = () => Number(nanos() / 1_000_000n)
    return {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: clock.monotonicTimeNanos,
      sleep: (duration) => clock.sleep(duration)
    }
  })
)

/** Limits the library's log to errors: without a database it repeats warnings with whole stack traces. */
const layerQuiet = Layer.effect(
  References.MinimumLogLevel,
  Effect.map(References.MinimumLogLevel, (level) =>
    LogLevel.isLessThan(level, "Error") && LogLevel.isGreaterThanOrEqualTo(level, "Info") ? "Error" : level
  )
)

/** Registers a singleton for each partition, with a name that the library maps to the partition's shard. */
const register = Effect.fnUntraced(function* (
  sharding: Sharding["Service"],
  work: (partition: Partition) => Effect.Effect<never>
) {
  for (let partition = 0; partition < PARTITIONS; partition++) {
    yield* sharding.registerSingleton(nameOf(sharding, partition), work(partition), { shardGroup: GROUP })
  }
})

/**
 * Finds a name that the library maps to the partition's shard; shards count from 1. Locks belong to shards, so runners
 * that find different names still do not serve a partition twice.
 */
export const nameOf = (sharding: Pick<Sharding["Service"], "getShardId">, partition: Partition): string => {
  for (let attempt = 0; ; attempt++) {
    const name = `partition ${partition}/${attempt}`
    if (sharding.getShardId(name as never, GROUP).id === partition + 1) return name
  }
}

/** Serves a partition, from the vacancy of the previous owner until the fiber is interrupted. */
const serve = (
  partition: Partition,
  vacancy: Effect.Effect<void>,
  { acquire, release }: PlacementShape,
  table: PartitionTable.PartitionTable,
  begun: Set<Partition>
) =>
  Effect.suspend(() => {
    begun.add(partition)
    return vacancy.pipe(
      Effect.andThen(acquire(partition)),
      Effect.andThen(Effect.sync(() => table.claim(partition))),
      Effect.andThen(Effect.never),
      Effect.ensuring(release(partition)),
      Effect.ensuring(
        Effect.sync(() => {
          table.disclaim(partition)
          begun.delete(partition)
        })
      )
    )
  })
