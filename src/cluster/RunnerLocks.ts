/**
 * Who runs, and who has which partition: `SqlRunnerStorage`, with advisory locks on a session of the runner's own that
 * Postgres ends when the runner freezes.
 *
 * It notes when what this runner owns was last confirmed. That is when it asked, not when it had the answer: it may
 * have been frozen in between. A confirmation is of everything that it holds, so it counts only if nothing of that is
 * missing. A lock that it gives back itself may be: the library asks for it until it knows that it is gone.
 * When the session ends, nothing that it confirmed counts any more: somebody else may have the locks by then.
 * What is confirmed is also to be seen in the database, by the time of the runner's last sign of life, for whoever gets
 * a lock that a frozen runner has lost (`Takeover.ts`).
 *
 * The library asks every two seconds, and drops a session that takes two to answer. So that one answer may be late, and
 * what it confirmed is not over by then, a question of this runner's own comes in between. It only gives a sign of life
 * over the session: locks go with their session or are given back, so all that was held there by the library's last
 * answer is held still. Nobody drops the session when that question takes long.
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

/** Effect's tables, and its locks, go by this name. */
const PREFIX = "cluster"

/** Nobody says anything there: to whoever listens, Postgres says that the session ends. */
const CHANNEL = "till_locks"
/** Locks that cannot be had are tried again so often, because Postgres says nothing when it has ended a session. */
const AGAIN_MILLIS = 500
/** The end does not wait for a database that hangs. */
const UNREGISTER_MILLIS_MAX = 1000
/** Of several that become free one after the other, each follows the one before within this time. */
const SETTLE_MILLIS = 60
/** So long after a question, whoever asked it, the runner's own one follows. */
const CONFIRM_MILLIS = 1000
const SIGN = `UPDATE ${PREFIX}_runners SET last_heartbeat = NOW() WHERE address = $1`

export interface Observer {
  /** Everything that this runner holds was confirmed as of that time of `performance.now()`. */
  readonly confirmed: (at: number) => void
  /** The session has ended that had the locks. */
  readonly ended: () => void
  readonly own: Runner
  /** Tells whether this runner holds nothing. */
  readonly isEmpty: () => boolean
  /** Tells whether a runner is to be given nothing, whatever the table says. */
  readonly isOut: (address: RunnerAddress) => Effect.Effect<boolean>
  /** This runner has released a lock. */
  readonly freed: () => void
  /** Waits until another runner may have released a lock, or this one is in a hurry. */
  readonly news: Effect.Effect<void>
  /** Tells whether this runner has other things to do than to wait for locks. */
  readonly isInHurry: () => boolean
}

type Storage = RunnerStorage["Service"]
type Acquired = Effect.Success<ReturnType<Storage["acquire"]>>

/** A session that may have the locks. */
interface Session {
  readonly connection: PgConnection.PgConnection
  /** By the library's last answer it had everything that this runner holds. */
  isWhole: boolean
}

/** What is known of the locks. */
interface Known {
  /** The locks that were given back, nothing of which is under way here any more. */
  readonly givenBack: Set<ShardId>
  session: Session | undefined
  /** When a question was last sent. */
  askedAt: number
}

export const layer = (
  { sql }: RunnerSessions,
  observer: Observer
): Layer.Layer<RunnerStorage, never, ShardingConfig> => {
  const known: Known = { givenBack: new Set(), session: undefined, askedAt: Number.NEGATIVE_INFINITY }
  return Layer.effect(
    RunnerStorage,
    Effect.map(RunnerStorage, (storage) => RunnerStorage.of({ ...storage, ...decorated(storage, observer, known) }))
  ).pipe(
    Layer.provide(SqlRunnerStorage.layerStorage({ prefix: PREFIX })),
    Layer.provide(Layer.succeed(SqlClient.SqlClient, watched(sql, observer, known)))
  )
}

/** Tells of the end of the session that the library reserves, be it on its own account; asks over it until then. */
const watched = (sql: SqlClient.SqlClient, observer: Observer, known: Known): SqlClient.SqlClient => {
  const reserve = Effect.tap(
    sql.reserve,
    Effect.fnUntraced(function* (reserved) {
      // The client's own class has it, and does not say so.
      const { connection } = reserved as unknown as { readonly connection: PgConnection.PgConnection }
      const said = yield* connection.listen(CHANNEL)
      const session: Session = { connection, isWhole: false }
      known.session = session
      const ended = Effect.sync(() => {
        session.isWhole = false
        if (known.session === session) known.session = undefined
        observer.ended()
      })
      yield* Effect.forkScoped(Effect.ignore(Effect.forever(askInBetween(session, observer, known))))
      // Last, and so ended first: whoever gives a session up that hangs is not to wait before it is told.
      yield* Effect.forkScoped(Effect.ensuring(Effect.exit(Effect.forever(Queue.take(said))), ended))
    })
  )
  return new Proxy(sql, { get: (own, name): unknown => (name === "reserve" ? reserve : Reflect.get(own, name)) })
}

/** Asks once, when it is time, whether a session lives that has everything. Fails with its session. */
const askInBetween = Effect.fnUntraced(function* (session: Session, { confirmed, own }: Observer, known: Known) {
  const sinceMillis = performance.now() - known.askedAt
  if (sinceMillis < CONFIRM_MILLIS) return yield* Effect.sleep(CONFIRM_MILLIS - sinceMillis)
  if (!session.isWhole) return yield* Effect.sleep(CONFIRM_MILLIS)
  const at = performance.now()
  known.askedAt = at
  const { host, port } = own.address
  yield* session.connection.query(SIGN, [`${host}:${port}`])
  if (session.isWhole) confirmed(at)
})

const decorated = (storage: Storage, observer: Observer, known: Known): Partial<Storage> => ({
  getRunners: Effect.flatMap(storage.getRunners, (runners) =>
    Effect.map(
      Effect.forEach(
        runners,
        ([runner, isHealthy]) =>
          Effect.map(observer.isOut(runner.address), (isOut) => [runner, isHealthy && !isOut] as const),
        { concurrency: "unbounded" }
      ),
      // To the library, runners of which none is healthy are a fault to be mended. To the last that ends, they are not.
      (known) => (observer.isInHurry() && !known.some(([, isHealthy]) => isHealthy) ? [[observer.own, true]] : known)
    )
  ),
  // The library would ask every second, and whose partition moves would wait for that. It gives up after two.
  acquire: (address, shards) => {
    const asked = [...shards]
    const refresh = (had: Acquired) => refreshed(storage, observer, address, had, known)
    const acquire = Effect.tap(storage.acquire(address, asked), (had) =>
      Effect.sync(() => {
        for (const shard of had) known.givenBack.delete(shard)
      })
    )
    const attempt = acquired(acquire, refresh, observer)
    const again = Effect.andThen(Effect.timeoutOption(observer.news, AGAIN_MILLIS), attempt)
    const isOver = ({ length }: ReadonlyArray<unknown>) => length > 0 || observer.isInHurry()
    const more: (had: Acquired) => Effect.Effect<Acquired, PersistenceError> = (had) =>
      Effect.flatMap(Effect.delay(attempt, SETTLE_MILLIS), (now) =>
        now.length === had.length || now.length === asked.length ? Effect.succeed(now) : more(now)
      )
    const awaited = Effect.flatMap(Effect.repeat(again, { until: isOver }), more)
    return Effect.flatMap(attempt, (had) => (isOver(had) ? Effect.succeed(had) : awaited))
  },
  refresh: (address, shards) => refreshed(storage, observer, address, [...shards], known),
  // Who runs is known without that after six seconds.
  unregister: (address) => Effect.asVoid(Effect.timeoutOption(storage.unregister(address), UNREGISTER_MILLIS_MAX)),
  release: (address, shard) =>
    Effect.suspend(() => {
      known.givenBack.add(shard)
      return Effect.tap(storage.release(address, shard), () => Effect.sync(observer.freed))
    }),
  releaseAll: (address) => Effect.tap(storage.releaseAll(address), () => Effect.sync(observer.freed))
})

/** What a new session gains says nothing of what an older one had, so it counts only if there was nothing. */
const acquired = <E>(
  ask: Effect.Effect<Acquired, E>,
  refresh: (had: Acquired) => Effect.Effect<unknown, E>,
  { isEmpty }: Observer
): Effect.Effect<Acquired, E> =>
  Effect.suspend(() => {
    const wasEmpty = isEmpty()
    // What is not confirmed now is later.
    return Effect.tap(ask, (had) =>
      had.length > 0 && wasEmpty && isEmpty() ? Effect.ignore(refresh(had)) : Effect.void
    )
  })

/** Asks what of it is still held. The library says in the database before, over the same session, that it lives. */
const refreshed = (storage: Storage, { confirmed }: Observer, address: RunnerAddress, asked: Acquired, known: Known) =>
  Effect.suspend(() => {
    const { givenBack, session } = known
    const at = performance.now()
    known.askedAt = at
    const answered = (held: Acquired) => {
      const isWhole = held.length > 0 && asked.every((shard) => held.includes(shard) || givenBack.has(shard))
      // Which one has answered is only certain if there was no other.
      if (session !== undefined) session.isWhole = isWhole && session === known.session
      if (isWhole) confirmed(at)
    }
    return Effect.tap(storage.refresh(address, asked), (held) => Effect.sync(() => answered(held)))
  })

/** Takes runners off the list that do not answer: a new one would leave a share of everything to them. */
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
