/**
 * The runners and the locks of their partitions: `SqlRunnerStorage`, with advisory locks on a session of the runner's
 * own, which Postgres ends when the runner freezes.
 *
 * - Tracks confirmations of this runner's ownership. The time of a confirmation is that of the query, not of the
 *   answer, because the runner may have been frozen in between. It covers all locks of the runner and counts only if
 *   none is missing. A lock being released may be missing: the library queries it until it notices the release.
 * - When the session ends, all confirmations end, because another runner may already have the locks.
 * - Confirmations are visible in the database as the runner's last heartbeat, for a runner that acquires a lock that a
 *   frozen one has lost (`LockTakeover.ts`).
 * - The library queries the locks every two seconds, and drops a session after two seconds without an answer. Between
 *   its queries this runner sends one of its own, so that a single late answer does not let the confirmation expire. It
 *   only writes a heartbeat over the session: locks end with their session or are released, so all locks of the
 *   library's last answer are still held. The session is not dropped when this query takes long.
 */
import type { PgConnection } from "@effect/sql-pg"
import type { PersistenceError } from "effect/cluster/ClusterError"
import type { Runner } from "effect/cluster/Runner"
import type { RunnerAddress } from "effect/cluster/RunnerAddress"
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import type { ShardId } from "effect/cluster/ShardId"
import type { ShardingConfig } from "effect/cluster/ShardingConfig"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import { Effect, Layer, Queue } from "effect"
import { SqlClient } from "effect/sql"
import type { RunnerSessions } from "./Sessions.ts"

/** Prefix of Effect's tables and locks. */
const PREFIX = "cluster"

/** A channel without notifications: listening on it reveals the end of the session. */
const CHANNEL = "till_locks"
/** Interval of new tries for locks that are not free: Postgres sends no notification when it ends a session. */
const AGAIN_MILLIS = 500
/** Time limit for unregistering when the runner ends. */
const UNREGISTER_MILLIS_MAX = 1000
/** Locks that become free in quick succession follow each other within this time. */
const SETTLE_MILLIS = 60
/** Time from the last query, the library's or the runner's, to the runner's own next one. */
const CONFIRM_MILLIS = 1000
const HEARTBEAT = `UPDATE ${PREFIX}_runners SET last_heartbeat = NOW() WHERE address = $1`

export interface Observer {
  /** Called when all locks of this runner are confirmed, as of a time of `performance.now()`. */
  readonly confirmed: (at: number) => void
  readonly ended: () => void
  readonly own: Runner
  readonly isEmpty: () => boolean
  /** Whether a runner gets no partitions, even if the table lists it as healthy. */
  readonly isOut: (address: RunnerAddress) => Effect.Effect<boolean>
  readonly freed: () => void
  /** Waits until another runner may have released a lock, or this one is leaving. */
  readonly news: Effect.Effect<void>
  /** Whether this runner is leaving, and does not wait for locks. */
  readonly isInHurry: () => boolean
}

type Storage = RunnerStorage["Service"]
type Acquired = Effect.Success<ReturnType<Storage["acquire"]>>

interface Session {
  readonly connection: PgConnection.PgConnection
  /** Whether it had all locks of this runner at the library's last query. */
  isWhole: boolean
}

interface State {
  readonly released: Set<ShardId>
  session: Session | undefined
  queriedAt: number
}

export const layer = (
  { sql }: RunnerSessions,
  observer: Observer
): Layer.Layer<RunnerStorage, never, ShardingConfig> => {
  const state: State = { released: new Set(), session: undefined, queriedAt: Number.NEGATIVE_INFINITY }
  return Layer.effect(
    RunnerStorage,
    Effect.map(RunnerStorage, (storage) => RunnerStorage.of({ ...storage, ...decorated(storage, observer, state) }))
  ).pipe(
    Layer.provide(SqlRunnerStorage.layerStorage({ prefix: PREFIX })),
    Layer.provide(Layer.succeed(SqlClient.SqlClient, watch(sql, observer, state)))
  )
}

/** Reports the end of the session that the library reserves, for any cause, and sends queries over it until then. */
const watch = (sql: SqlClient.SqlClient, observer: Observer, state: State): SqlClient.SqlClient => {
  const reserve = Effect.tap(
    sql.reserve,
    Effect.fnUntraced(function* (reserved) {
      // The client's class has this field, but its type does not.
      const { connection } = reserved as unknown as { readonly connection: PgConnection.PgConnection }
      const notifications = yield* connection.listen(CHANNEL)
      const session: Session = { connection, isWhole: false }
      state.session = session
      const ended = Effect.sync(() => {
        session.isWhole = false
        if (state.session === session) state.session = undefined
        observer.ended()
      })
      yield* Effect.forkScoped(Effect.ignore(Effect.forever(queryInBetween(session, observer, state))))
      // Last, and so ended first: the end of a hanging session is reported before the session is closed.
      yield* Effect.forkScoped(Effect.ensuring(Effect.exit(Effect.forever(Queue.take(notifications))), ended))
    })
  )
  return new Proxy(sql, { get: (own, name): unknown => (name === "reserve" ? reserve : Reflect.get(own, name)) })
}

/** Waits until a query is due, and sends it if the session has all locks. Fails with the session. */
const queryInBetween = Effect.fnUntraced(function* (session: Session, { confirmed, own }: Observer, state: State) {
  const sinceMillis = performance.now() - state.queriedAt
  if (sinceMillis < CONFIRM_MILLIS) return yield* Effect.sleep(CONFIRM_MILLIS - sinceMillis)
  if (!session.isWhole) return yield* Effect.sleep(CONFIRM_MILLIS)
  const at = performance.now()
  state.queriedAt = at
  const { host, port } = own.address
  yield* session.connection.query(HEARTBEAT, [`${host}:${port}`])
  if (session.isWhole) confirmed(at)
})

const decorated = (storage: Storage, observer: Observer, state: State): Partial<Storage> => ({
  getRunners: Effect.flatMap(storage.getRunners, (runners) =>
    Effect.map(
      Effect.forEach(
        runners,
        ([runner, isHealthy]) =>
          Effect.map(observer.isOut(runner.address), (isOut) => [runner, isHealthy && !isOut] as const),
        { concurrency: "unbounded" }
      ),
      // The library repairs a list without a healthy runner; for the last runner that leaves, that list is right.
      (listed) => (observer.isInHurry() && !listed.some(([, isHealthy]) => isHealthy) ? [[observer.own, true]] : listed)
    )
  ),
  // Waits for locks itself: the library would try only every second, a delay for each move. It gives up after two.
  acquire: (address, shards) => {
    const wanted = [...shards]
    const refresh = (had: Acquired) => confirmLocks(storage, observer, address, had, state)
    const acquire = Effect.tap(storage.acquire(address, wanted), (had) =>
      Effect.sync(() => {
        for (const shard of had) state.released.delete(shard)
      })
    )
    const attempt = acquireAndConfirm(acquire, refresh, observer)
    const again = Effect.andThen(Effect.timeoutOption(observer.news, AGAIN_MILLIS), attempt)
    const isOver = ({ length }: ReadonlyArray<unknown>) => length > 0 || observer.isInHurry()
    const more: (had: Acquired) => Effect.Effect<Acquired, PersistenceError> = (had) =>
      Effect.flatMap(Effect.delay(attempt, SETTLE_MILLIS), (now) =>
        now.length === had.length || now.length === wanted.length ? Effect.succeed(now) : more(now)
      )
    const awaited = Effect.flatMap(Effect.repeat(again, { until: isOver }), more)
    return Effect.flatMap(attempt, (had) => (isOver(had) ? Effect.succeed(had) : awaited))
  },
  refresh: (address, shards) => confirmLocks(storage, observer, address, [...shards], state),
  // Without it, other runners know after six seconds.
  unregister: (address) => Effect.asVoid(Effect.timeoutOption(storage.unregister(address), UNREGISTER_MILLIS_MAX)),
  release: (address, shard) =>
    Effect.suspend(() => {
      state.released.add(shard)
      return Effect.tap(storage.release(address, shard), () => Effect.sync(observer.freed))
    }),
  releaseAll: (address) => Effect.tap(storage.releaseAll(address), () => Effect.sync(observer.freed))
})

/** Acquires locks, and confirms them if the runner had none: a new session proves nothing about older locks. */
const acquireAndConfirm = <E>(
  acquire: Effect.Effect<Acquired, E>,
  refresh: (had: Acquired) => Effect.Effect<unknown, E>,
  { isEmpty }: Observer
): Effect.Effect<Acquired, E> =>
  Effect.suspend(() => {
    const wasEmpty = isEmpty()
    // Locks that are not confirmed now are confirmed later.
    return Effect.tap(acquire, (had) =>
      had.length > 0 && wasEmpty && isEmpty() ? Effect.ignore(refresh(had)) : Effect.void
    )
  })

/** Queries the locks that are still held. The library has sent a heartbeat over the same session before. */
const confirmLocks = (
  storage: Storage,
  { confirmed }: Observer,
  address: RunnerAddress,
  shards: Acquired,
  state: State
) =>
  Effect.suspend(() => {
    const { released, session } = state
    const at = performance.now()
    state.queriedAt = at
    const onAnswer = (held: Acquired) => {
      const isWhole = held.length > 0 && shards.every((shard) => held.includes(shard) || released.has(shard))
      // The answer is certainly from this session only if it was not replaced.
      if (session !== undefined) session.isWhole = isWhole && session === state.session
      if (isWhole) confirmed(at)
    }
    return Effect.tap(storage.refresh(address, shards), (held) => Effect.sync(() => onAnswer(held)))
  })

/** Removes runners that do not answer from the list: otherwise a new runner would assign partitions to them. */
export const forgetDead = (
  own: RunnerAddress,
  isAlive: (address: RunnerAddress) => Effect.Effect<boolean>
): Effect.Effect<void, never, RunnerStorage> =>
  Effect.gen(function* () {
    const storage = yield* RunnerStorage
    const others = (yield* storage.getRunners)
      .map(([{ address }]) => address)
      .filter(({ host, port }) => host !== own.host || port !== own.port)
    yield* Effect.forEach(
      others,
      (address) => Effect.flatMap(isAlive(address), (alive) => (alive ? Effect.void : storage.unregister(address))),
      { concurrency: "unbounded", discard: true }
    )
  }).pipe(Effect.ignore)
