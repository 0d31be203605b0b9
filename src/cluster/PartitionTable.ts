/**
 * Where each partition is served, according to the table `partitions`, in which runners inform each other.
 *
 * The table does not decide ownership. A runner keeps the rows of its own partitions up to date, and removes its URL
 * from all others. A wrong row, whose writer was frozen or is gone, is corrected within a second; until then, the
 * runner that it names refuses the requests. All runners read the table after each notification of a change, and every
 * second in case a notification was lost.
 *
 * Everything goes over one session. A lost session is replaced; until then the last known places are used.
 */
import { PgConnection } from "@effect/sql-pg"
import { Cause, Clock, Deferred, Effect, Fiber, Queue, type Scope } from "effect"
import type { SqlError } from "effect/sql"
import { innermostMessage } from "../engine/log/Journal.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { CONFIRMED_MILLIS, type Partition, PARTITIONS, type PlacementShape } from "../engine/process/Placement.ts"
import { addressOf } from "./Health.ts"
import { CLOCK_OFF_MILLIS_MAX, type RunnerSessions } from "./Sessions.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("cluster")

const CHANNEL = "till_partitions"
/** Interval of reads of the table without a notification. */
const REFRESH_MILLIS = 1000
/** Pause between two reads: runners that correct each other's rows would otherwise do so at full speed. */
const PAUSE_MILLIS = 10
/** Time without an answer after which a session is given up. */
const ANSWER_MILLIS_MAX = 2000
const RETRY_MILLIS = 500
/** Interval of updates of the runner's own row. */
const NOTE_MILLIS = 10_000
/** How long a leaving runner waits until its row is written. */
const LEAVE_MILLIS_MAX = 1000
/** TCP keepalive of the session, with which Postgres notices a lost machine. Times are in seconds. */
const KEEPALIVE = { tcp_keepalives_idle: 10, tcp_keepalives_interval: 5, tcp_keepalives_count: 3 }

export interface Self {
  /** Base URL of its internal listener, without a trailing slash. */
  readonly url: string
  readonly version: string
}

/** Another runner that the table names as a partition's owner. Times are of `performance.now()`. */
export interface Owner {
  readonly url: string
  /** Expiry of its last confirmation, from its last heartbeat; wrong if the database's clock was set since. */
  readonly expiresAt: number
  /** Latest possible expiry of that confirmation, counted from when the heartbeat was first seen here. */
  readonly surelyExpiresAt: number
}

/** A heartbeat of another runner. Times are of `performance.now()`. */
interface Heartbeat {
  readonly text: string
  readonly at: number
  readonly seenAt: number
}

export interface PartitionTable {
  /** Enters this runner as the owner of a partition, or removes it. Other runners are notified in the background. */
  readonly claim: (partition: Partition) => void
  readonly disclaim: (partition: Partition) => void
  readonly disclaimAll: () => void
  readonly refresh: Effect.Effect<void>
  /** The other runner that the table names for a partition; null if there is none, undefined before the first read. */
  readonly ownerOf: (partition: Partition) => Owner | null | undefined
  /** Waits until every partition is served by some runner. */
  readonly allServed: Effect.Effect<void>
  /** Marks this runner as leaving. Returns when that is written, or after a time limit. */
  readonly leave: Effect.Effect<void>
  readonly noteFreedLock: () => void
  /** Notifies other runners of a write to an account of which they have replicas. */
  readonly noteWritten: (account: AccountId) => void
  /** Waits until the next notification from another runner, or the next call of `signal`. */
  readonly news: Effect.Effect<void>
  readonly signal: () => void
  /** Whether the runner at this URL has marked itself as leaving. */
  readonly isLeaving: (url: string) => boolean
}

interface Snapshot {
  readonly places: ReadonlyArray<readonly [Partition, string | null]> | null
  readonly leaving: ReadonlyArray<string> | null
  /** Address, time and age in milliseconds of each runner's last heartbeat. */
  readonly heartbeats: ReadonlyArray<readonly [string, string, number]> | null
  readonly now: number
}

export const make = Effect.fnUntraced(function* (
  self: Self,
  sessions: RunnerSessions,
  placement: PlacementShape,
  isConfirmed: () => boolean
): Effect.fn.Return<PartitionTable, never, Scope.Scope> {
  const since = ((yield* Clock.currentTimeMillis) - sessions.aheadMillis) / 1000
  const table = new Table(self, sessions, placement, isConfirmed, since)
  const lost = (cause: Cause.Cause<unknown>) =>
    table.lose()
      ? log.warning("Where partitions are served is not known anew until there is a session", messageOf(cause))
      : Effect.void
  yield* Effect.scoped(table.session).pipe(
    Effect.catchCause(lost),
    Effect.andThen(Effect.sleep(RETRY_MILLIS)),
    Effect.forever,
    Effect.forkScoped
  )
  return table
})

const messageOf = (cause: Cause.Cause<unknown>): string => innermostMessage(Cause.squash(cause))

class Table implements PartitionTable {
  readonly #self: Self
  readonly #sessions: RunnerSessions
  readonly #placement: PlacementShape
  readonly #isConfirmed: () => boolean
  /** Start of this runner in Unix seconds. */
  readonly #since: number
  readonly #claimed = new Set<Partition>()
  readonly #written = new Set<AccountId>()
  readonly #wakes = Effect.runSync(Queue.sliding<void>(1))
  readonly #allServed = Deferred.makeUnsafe<void>()
  #news = Deferred.makeUnsafe<void>()
  #waiting: Array<Deferred.Deferred<void>> = []
  #othersLeaving: ReadonlySet<string> = new Set()
  #isLeaving = false
  #hasFreed = false
  #isLost = false
  #owners: ReadonlyMap<Partition, string | null> | undefined
  #heartbeats: ReadonlyMap<string, Heartbeat> = new Map()
  #notedAt = Number.NEGATIVE_INFINITY
  #aheadMillis: number

  constructor(
    self: Self,
    sessions: RunnerSessions,
    placement: PlacementShape,
    isConfirmed: () => boolean,
    since: number
  ) {
    this.#self = self
    this.#sessions = sessions
    this.#placement = placement
    this.#isConfirmed = isConfirmed
    this.#since = since
    this.#aheadMillis = sessions.aheadMillis
  }

  readonly allServed: Effect.Effect<void> = Deferred.await(this.#allServed)
  readonly isLeaving = (url: string): boolean => this.#othersLeaving.has(url)
  readonly news: Effect.Effect<void> = Effect.suspend(() => Deferred.await(this.#news))

  readonly claim = (partition: Partition): void => {
    this.#claimed.add(partition)
    this.#wake()
  }

  readonly disclaim = (partition: Partition): void => {
    if (this.#claimed.delete(partition)) this.#wake()
  }

  readonly disclaimAll = (): void => {
    this.#claimed.clear()
    this.#wake()
  }

  readonly refresh: Effect.Effect<void> = Effect.suspend(() => {
    const refreshed = Deferred.makeUnsafe<void>()
    this.#waiting.push(refreshed)
    this.#wake()
    return Deferred.await(refreshed)
  })

  readonly ownerOf = (partition: Partition): Owner | null | undefined => {
    if (this.#owners === undefined) return undefined
    const url = this.#owners.get(partition) ?? null
    if (url === null || url === this.#self.url) return null
    const { host, port } = addressOf(url)
    const { at, seenAt } = this.#heartbeats.get(`${host}:${port}`) ?? { at: Infinity, seenAt: Infinity }
    return { url, expiresAt: at + CONFIRMED_MILLIS, surelyExpiresAt: seenAt + CONFIRMED_MILLIS }
  }

  readonly leave: Effect.Effect<void> = Effect.suspend(() => {
    this.#isLeaving = true
    this.#notedAt = Number.NEGATIVE_INFINITY
    return Effect.asVoid(Effect.timeoutOption(this.refresh, LEAVE_MILLIS_MAX))
  })

  readonly noteWritten = (account: AccountId): void => {
    this.#written.add(account)
    this.#wake()
  }

  readonly noteFreedLock = (): void => {
    this.#hasFreed = true
    this.#wake()
  }

  #wake(): void {
    Queue.offerUnsafe(this.#wakes, undefined)
  }

  /** Notes that the session is lost; false if it already was. */
  lose(): boolean {
    const wasThere = !this.#isLost
    this.#isLost = true
    return wasThere
  }

  /** Runs one session with Postgres; fails when it is lost. */
  get session(): Effect.Effect<never, SqlError.SqlError | Cause.TimeoutError, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const { applicationName: _, ...config } = this.#sessions.sql.config
      const connection = yield* PgConnection.make({ ...config, applicationName: this.#sessions.name })
      const session = yield* connection.pin
      for (const [name, value] of Object.entries(KEEPALIVE)) yield* session.query(`SET ${name} = ${value}`)
      const notifications = yield* session.listen(CHANNEL)
      const receive = Effect.map(Queue.take(notifications), ({ payload, processId }) => {
        if (processId === session.processId) return
        if (payload !== "") return this.#placement.noteChanged(payload)
        this.#wake()
        this.signal()
      })
      const receiving = yield* Effect.forkScoped(Effect.forever(receive))
      const next = Effect.timeoutOption(Queue.take(this.#wakes), REFRESH_MILLIS)
      const watch = Effect.andThen(Effect.andThen(this.#read(session), Effect.sleep(PAUSE_MILLIS)), next)
      return yield* Effect.raceFirst(Effect.forever(watch), Fiber.join(receiving))
    })
  }

  readonly signal = (): void => {
    Deferred.doneUnsafe(this.#news, Effect.void)
    this.#news = Deferred.makeUnsafe()
  }

  #read(session: PgConnection.PgConnection): Effect.Effect<void, SqlError.SqlError | Cause.TimeoutError> {
    return Effect.gen({ self: this }, function* () {
      const waiting = this.#waiting
      this.#waiting = []
      const begun = performance.now()
      const isDue = begun - this.#notedAt >= NOTE_MILLIS
      const before = yield* Clock.currentTimeMillis
      const { rows } = yield* session.query(READ, this.#parameters(isDue)).pipe(
        Effect.timeout(ANSWER_MILLIS_MAX),
        Effect.onError(() => Effect.sync(() => void this.#waiting.push(...waiting)))
      )
      const snapshot = rows[0] as unknown as Snapshot
      if (isDue) {
        this.#notedAt = begun
        this.#aheadMillis = yield* noteClock(before, snapshot.now, this.#aheadMillis)
      }
      this.#take(snapshot)
      if (this.#isLost) yield* log.info("Where partitions are served is known anew")
      this.#isLost = false
      for (const one of waiting) Deferred.doneUnsafe(one, Effect.void)
    })
  }

  #parameters(isDue: boolean): ReadonlyArray<unknown> {
    const { url, version } = this.#self
    const note = [isDue, version, this.#aheadMillis, this.#isLeaving, this.#since]
    // Notifications lost with a session are made up for by the periodic reads of locks and replicas.
    const news = [this.#hasFreed, JSON.stringify([...this.#written])]
    this.#hasFreed = false
    this.#written.clear()
    return [url, `{${[...this.#claimed].join(",")}}`, this.#isConfirmed(), ...note, ...news]
  }

  #take({ heartbeats, leaving, places }: Snapshot): void {
    const now = performance.now()
    this.#owners = new Map(places)
    const before = this.#heartbeats
    this.#heartbeats = new Map(
      heartbeats?.map(([address, text, age]) => {
        const known = before.get(address)
        return [address, { text, at: now - age, seenAt: known?.text === text ? known.seenAt : now }]
      })
    )
    let known = this.#claimed.size
    for (const [partition, url] of places ?? []) {
      if (this.#claimed.has(partition)) continue
      // A row with this URL is from an earlier runner at the same address.
      const place = url === this.#self.url ? null : url
      this.#placement.setPlace(partition, place)
      if (place !== null) known++
    }
    this.#othersLeaving = new Set(leaving)
    if (known === PARTITIONS) Deferred.doneUnsafe(this.#allServed, Effect.void)
  }
}

/** Logs once each time that this machine's clock, which was right at the start, is set wrong. Returns its lead. */
const noteClock = (before: number, now: number, was: number) =>
  Effect.gen(function* () {
    const after = yield* Clock.currentTimeMillis
    const ahead = Math.round((before + after) / 2 - now)
    const isOff = (millis: number) => Math.abs(millis) > CLOCK_OFF_MILLIS_MAX
    if (isOff(ahead) && !isOff(was)) {
      yield* log.warning(`This machine's clock is ${ahead} ms ahead of the database's`, undefined, { cause: "clock" })
    }
    return Math.max(Math.min(ahead, 2 ** 31 - 1), -(2 ** 31))
  })

/** Corrects this runner's rows, and returns a snapshot from before the corrections. */
const READ = `WITH held AS (SELECT unnest($2::text::int[]) AS id),
  claimed AS (
    INSERT INTO partitions AS p (id, url, epoch, since)
      SELECT id, $1::text, 1, clock_timestamp() FROM held
      WHERE $3::boolean AND NOT EXISTS (SELECT FROM partitions q WHERE q.id = held.id AND q.url = $1) ORDER BY id
    ON CONFLICT (id) DO UPDATE SET url = excluded.url, epoch = p.epoch + 1, since = excluded.since
    RETURNING id
  ),
  given_up AS (
    UPDATE partitions SET url = NULL, since = clock_timestamp()
    WHERE url = $1 AND id NOT IN (SELECT id FROM held) RETURNING id
  ),
  noted AS (
    INSERT INTO runners (url, version, since, seen_at, ahead_millis, is_leaving)
      SELECT $1, $5::text, to_timestamp($8::float8), clock_timestamp(), $6::int, $7::boolean WHERE $4::boolean
    ON CONFLICT (url) DO UPDATE SET version = excluded.version, since = excluded.since, seen_at = excluded.seen_at,
      ahead_millis = excluded.ahead_millis, is_leaving = excluded.is_leaving
    RETURNING url
  ),
  told AS (
    SELECT pg_notify('${CHANNEL}', '')
    WHERE EXISTS (SELECT FROM claimed) OR EXISTS (SELECT FROM given_up) OR $9::boolean
      OR EXISTS (SELECT FROM noted WHERE $7::boolean)
  ),
  told_of AS (SELECT pg_notify('${CHANNEL}', account) FROM json_array_elements_text($10::text::json) AS a (account))
  SELECT (SELECT json_agg(json_build_array(id, url)) FROM partitions) AS places,
    (SELECT json_agg(url) FROM runners WHERE is_leaving) AS leaving,
    (SELECT json_agg(json_build_array(address, last_heartbeat,
      extract(epoch FROM clock_timestamp()::timestamp - last_heartbeat) * 1000)) FROM cluster_runners) AS heartbeats,
    (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now, (SELECT count(*) FROM told) + (SELECT count(*) FROM told_of) AS told`
