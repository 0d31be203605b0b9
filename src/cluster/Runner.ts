/**
 * This process as one of several runners that share an installation's partitions: `effect/cluster` decides who has
 * which one, and this drives `Placement` by it (semantics 9.48).
 *
 * A partition is one of the library's singletons, which runs where the lock of its shard is held. It begins to be
 * served when its singleton starts, and its lock goes once the singleton has come to its end: when nothing of it is
 * under way here any more. Nothing is ever asked by the library's own messages, so it neither listens nor stores any.
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
import type { Partition, PlacementShape } from "../engine/process/Placement.ts"
import { CONFIRMED_MILLIS, PARTITIONS, Placement } from "../engine/process/Placement.ts"
import type { ClusterShape } from "./Cluster.ts"
import { Cluster } from "./Cluster.ts"
import * as Health from "./Health.ts"
import { addressOf, urlOf } from "./Health.ts"
import * as RunnerLocks from "./RunnerLocks.ts"
import * as PartitionTable from "./PartitionTable.ts"
import { vacated } from "./LockTakeover.ts"
import type { RunnerSessions } from "./Sessions.ts"

export interface RunnerOptions {
  /** At which others reach this runner's internal listener: the base of its addresses, without a trailing slash. */
  readonly url: string
  /** Of Till. */
  readonly version: string
  readonly sessions: RunnerSessions
  /** By which other runners prove that they are there. */
  readonly tls: ConnectionOptions
  /** Of one that leaves, partitions that have not moved after so long are given up all at once, in milliseconds. */
  readonly handOverMillisMax: number
}

/** This process is a runner as long as the layer lives. It has to be built after whatever attends partitions. */
export const layer = (options: RunnerOptions): Layer.Layer<Cluster, never, Placement> =>
  Layer.effect(Cluster, make(options))

const GROUP = "default"

const configOf = (address: RunnerAddress.RunnerAddress) =>
  ShardingConfig.layer({
    runnerAddress: Option.some(address),
    availableShardGroups: [GROUP],
    assignedShardGroups: [GROUP],
    shardsPerGroup: PARTITIONS,
    // Longer than what is owned counts without being confirmed: a runner that was frozen stops before others begin.
    shardLockExpiration: "6 seconds",
    shardLockRefreshInterval: "2 seconds",
    refreshAssignmentsInterval: "1 second",
    runnerHealthCheckInterval: "1 second",
    // Several that join at once are given their share in one step.
    runnerJoinDebounce: "3 seconds",
    // Locks that could not be had are tried again so often.
    entityMessagePollInterval: "500 millis",
    simulateRemoteSerialization: false
  })

/** A runner that leaves goes on serving for so long, in milliseconds, until others know it and wait for the locks. */
const NOTICE_MILLIS = 1200
/** The end does not wait for a database that hangs. */
const ANSWER_MILLIS_MAX = 1000
/** A start says why it takes longer, in milliseconds. */
const PATIENCE_MILLIS = 10_000

const make = Effect.fnUntraced(function* (
  options: RunnerOptions
): Effect.fn.Return<ClusterShape, never, Placement | Scope.Scope> {
  const placement = yield* Placement
  const { handOverMillisMax, sessions, tls, url, version } = options
  const health = Health.make(tls)
  let state: "member" | "leaving" | "out" = "member"
  const { confirmed, ended, isConfirmed } = makeConfirmation(placement)
  const places = yield* PartitionTable.make({ url, version }, sessions, placement, isConfirmed)
  /** From before it is gained until after it is released. */
  const begun = new Set<Partition>()
  const isEmpty = () => begun.size === 0
  // Built last, so this is called as soon as no request is served here any more.
  yield* placement.listen({
    onReleasing: (partition) => Effect.sync(() => places.close(partition)),
    onWritten: places.noteWritten
  })
  // It ends before the layer does, because a runner goes on asking others for a while.
  const scope = yield* Scope.fork(yield* Effect.scope)
  const services = yield* Layer.buildWithScope(
    shardingOf(options, health, {
      confirmed,
      ended: () => {
        ended()
        places.closeAll()
      },
      own: Member.make({ address: addressOf(url), groups: [GROUP], weight: 1 }),
      isEmpty,
      isOut: (address) => {
        if (urlOf(address) === url) return Effect.succeed(state === "out")
        return places.isLeaving(urlOf(address)) ? Effect.succeed(true) : health.isGone(address)
      },
      freed: places.freed,
      news: places.news,
      isInHurry: () => state !== "member"
    }),
    scope
  )
  // Their registrations outlive the library's scope: it would end them one after the other, all locks in its hands.
  yield* register(Context.get(services, Sharding), (partition) =>
    served(partition, vacated(places, health, partition), placement, places, begun)
  )
  const hasOthers = Context.get(services, RunnerStorage).getRunners.pipe(
    Effect.map((runners) => runners.some(([{ address }, isHealthy]) => isHealthy && urlOf(address) !== url)),
    // A database that is away has nobody to take over.
    Effect.timeout(ANSWER_MILLIS_MAX),
    Effect.orElseSucceed(() => false)
  )
  const handOver = Effect.gen(function* () {
    if (!(yield* hasOthers)) return
    yield* places.leave
    yield* Effect.sleep(NOTICE_MILLIS)
    // All may end at once, and then there is nobody to wait for.
    if (!(yield* hasOthers)) return
    state = "out"
    yield* Effect.repeat(Effect.sync(isEmpty), { until: (empty) => empty, schedule: Schedule.spaced(10) })
  })
  const leave = yield* once(
    Effect.gen(function* () {
      state = "leaving"
      places.stir()
      yield* Effect.timeoutOption(handOver, handOverMillisMax)
      // Whatever is still here is drained as well: up to two seconds for all, and then until each is.
      yield* Scope.close(scope, Exit.void)
    })
  )
  yield* Effect.addFinalizer(() => leave)
  const patiently = Effect.timeoutOption(places.found, PATIENCE_MILLIS)
  const ready = Effect.flatMap(patiently, (found) =>
    Option.isSome(found)
      ? Effect.void
      : Effect.andThen(Effect.logWarning("Waiting for partitions that nobody serves"), places.found)
  )
  return { ready, leave }
})

/** Whether what this runner owns was confirmed lately, and nothing has ended since. */
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

/** However many ask for it, and whoever of them loses patience, it happens once and to its end. */
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
    Layer.provide([quieter, steady])
  )
}

/**
 * The library waits until joins have settled by the wall clock. One that is set back by an hour would have it wait for
 * that hour, and take nothing over meanwhile.
 */
const steady = Layer.effect(
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

/** While the database is away, the library warns of it with all its stacks, again and again. */
const quieter = Layer.effect(
  References.MinimumLogLevel,
  Effect.map(References.MinimumLogLevel, (level) =>
    LogLevel.isLessThan(level, "Error") && LogLevel.isGreaterThanOrEqualTo(level, "Info") ? "Error" : level
  )
)

/** Each partition has a singleton with a name by which the library puts it into exactly that shard. */
const register = Effect.fnUntraced(function* (
  sharding: Sharding["Service"],
  work: (partition: Partition) => Effect.Effect<never>
) {
  for (let partition = 0; partition < PARTITIONS; partition++) {
    yield* sharding.registerSingleton(nameOf(sharding, partition), work(partition), { shardGroup: GROUP })
  }
})

/** Shards count from 1. The lock is the shard's, so runners that found other names would not serve one twice. */
export const nameOf = (sharding: Pick<Sharding["Service"], "getShardId">, partition: Partition): string => {
  for (let attempt = 0; ; attempt++) {
    const name = `partition ${partition}/${attempt}`
    if (sharding.getShardId(name as never, GROUP).id === partition + 1) return name
  }
}

const served = (
  partition: Partition,
  vacancy: Effect.Effect<void>,
  { acquire, release }: PlacementShape,
  places: PartitionTable.PartitionTable,
  begun: Set<Partition>
) =>
  Effect.suspend(() => {
    begun.add(partition)
    return vacancy.pipe(
      Effect.andThen(acquire(partition)),
      Effect.andThen(Effect.sync(() => places.open(partition))),
      Effect.andThen(Effect.never),
      Effect.ensuring(release(partition)),
      Effect.ensuring(
        Effect.sync(() => {
          places.close(partition)
          begun.delete(partition)
        })
      )
    )
  })
