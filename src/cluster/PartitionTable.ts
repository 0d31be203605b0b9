/**
 * Where each partition is served, as runners tell one another in the table `partitions`.
 *
 * The table decides nothing. Whoever serves a partition sees to it that its row says so, and whoever does not, that no
 * row says so; a row that is wrong, because its writer was frozen or is gone, is corrected within a second, and until
 * then whoever follows it is sent away there. Everybody reads the table when somebody has changed it, and every second
 * besides, in case word of it was lost.
 *
 * All goes over one session. One that is lost is made anew; meanwhile places are believed as they were.
 */
import { PgConnection } from "@effect/sql-pg"
import { Cause, Clock, Deferred, Effect, Fiber, Queue } from "effect"
import type { Scope } from "effect"
import type { SqlError } from "effect/sql"
import { innermostMessage } from "../engine/log/Journal.ts"
import type { AccountId } from "../engine/log/Document.ts"
import type { Partition, PlacementShape } from "../engine/process/Placement.ts"
import { CONFIRMED_MILLIS, PARTITIONS } from "../engine/process/Placement.ts"
import { addressOf } from "./Health.ts"
import { CLOCK_OFF_MILLIS_MAX, type RunnerSessions } from "./Sessions.ts"

const CHANNEL = "till_partitions"
/** The table is looked at so often if nobody says anything. */
const LOOK_MILLIS = 1000
/** Looks have so much between them: two that contradict one another would go on at full speed. */
const PAUSE_MILLIS = 10
/** A session that does not answer for so long is given up. */
const ANSWER_MILLIS_MAX = 2000
/** After so long another session is tried. */
const RETRY_MILLIS = 500
/** The runner's own row is brought up to date so often. */
const NOTE_MILLIS = 10_000
/** Whoever leaves waits so long for others to be told. */
const TELL_MILLIS_MAX = 1000
/** A server that is to notice that a machine is gone asks after so much silence, so often, so many times. */
const NOTICE_SECONDS = { tcp_keepalives_idle: 10, tcp_keepalives_interval: 5, tcp_keepalives_count: 3 }

/** What a runner says of itself. */
export interface Self {
  /** Base of its internal listener's addresses, without a trailing slash. */
  readonly url: string
  /** Its Till's version. */
  readonly version: string
}

/** Another runner, as the table has it. */
export interface Owner {
  readonly url: string
  /**
   * By then of `performance.now()`, what it was confirmed by the last sign of life that is known of it, is over, unless
   * the database's clock was set meanwhile.
   */
  readonly overAt: number
  /** The same, whatever was set: counted from when that sign was first seen here. */
  readonly surelyOverAt: number
}

/** A sign of life, by times of `performance.now()`. */
interface Sign {
  readonly text: string
  readonly at: number
  readonly seenAt: number
}

export interface PartitionTable {
  /** Others find a partition here, or not any more. They hear of it, and this does not wait for that. */
  readonly open: (partition: Partition) => void
  readonly close: (partition: Partition) => void
  /** Others find nothing here any more. */
  readonly closeAll: () => void
  /** Ends when the table was looked at that is there now. */
  readonly look: Effect.Effect<void>
  /** Whoever else has the partition by the table as it was last looked at; null if nobody, undefined before. */
  readonly ownerOf: (partition: Partition) => Owner | null | undefined
  /** Waits until every partition was found to be served somewhere. */
  readonly found: Effect.Effect<void>
  /** Says of this runner that it is about to leave; ends when others can know it, or cannot be told. */
  readonly leave: Effect.Effect<void>
  /** Tells others that a lock has become free. */
  readonly freed: () => void
  /** Tells others that an account was written to, of which they have replicas. */
  readonly noteWritten: (account: AccountId) => void
  /** Waits until another runner has said something, or this one stirs. */
  readonly news: Effect.Effect<void>
  readonly stir: () => void
  /** Tells whether a runner has said so of itself. */
  readonly isLeaving: (url: string) => boolean
}

interface Look {
  readonly places: ReadonlyArray<readonly [Partition, string | null]> | null
  readonly leaving: ReadonlyArray<string> | null
  /** Addresses of runners, when each last gave a sign of life, and how long ago that was, in milliseconds. */
  readonly signs: ReadonlyArray<readonly [string, string, number]> | null
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
      ? Effect.logWarning("Where partitions are served is not known anew until there is a session", messageOf(cause))
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
  /** Unix seconds. */
  readonly #since: number
  readonly #open = new Set<Partition>()
  readonly #written = new Set<AccountId>()
  readonly #wakes = Effect.runSync(Queue.sliding<void>(1))
  readonly #found = Deferred.makeUnsafe<void>()
  #news = Deferred.makeUnsafe<void>()
  #waiting: Array<Deferred.Deferred<void>> = []
  #othersLeaving: ReadonlySet<string> = new Set()
  #isLeaving = false
  #hasFreed = false
  #isLost = false
  #owners: ReadonlyMap<Partition, string | null> | undefined
  /** By addresses. */
  #signs: ReadonlyMap<string, Sign> = new Map()
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

  readonly found: Effect.Effect<void> = Deferred.await(this.#found)
  readonly isLeaving = (url: string): boolean => this.#othersLeaving.has(url)
  readonly news: Effect.Effect<void> = Effect.suspend(() => Deferred.await(this.#news))

  readonly open = (partition: Partition): void => {
    this.#open.add(partition)
    this.#wake()
  }

  readonly close = (partition: Partition): void => {
    if (this.#open.delete(partition)) this.#wake()
  }

  readonly closeAll = (): void => {
    this.#open.clear()
    this.#wake()
  }

  readonly look: Effect.Effect<void> = Effect.suspend(() => {
    const looked = Deferred.makeUnsafe<void>()
    this.#waiting.push(looked)
    this.#wake()
    return Deferred.await(looked)
  })

  readonly ownerOf = (partition: Partition): Owner | null | undefined => {
    if (this.#owners === undefined) return undefined
    const url = this.#owners.get(partition) ?? null
    if (url === null || url === this.#self.url) return null
    const { host, port } = addressOf(url)
    const { at, seenAt } = this.#signs.get(`${host}:${port}`) ?? { at: Infinity, seenAt: Infinity }
    return { url, overAt: at + CONFIRMED_MILLIS, surelyOverAt: seenAt + CONFIRMED_MILLIS }
  }

  readonly leave: Effect.Effect<void> = Effect.suspend(() => {
    this.#isLeaving = true
    this.#notedAt = Number.NEGATIVE_INFINITY
    return Effect.asVoid(Effect.timeoutOption(this.look, TELL_MILLIS_MAX))
  })

  readonly noteWritten = (account: AccountId): void => {
    this.#written.add(account)
    this.#wake()
  }

  readonly freed = (): void => {
    this.#hasFreed = true
    this.#wake()
  }

  #wake(): void {
    Queue.offerUnsafe(this.#wakes, undefined)
  }

  /** Tells whether there was a session until now. */
  lose(): boolean {
    const wasThere = !this.#isLost
    this.#isLost = true
    return wasThere
  }

  /** Fails when it is lost. */
  get session(): Effect.Effect<never, SqlError.SqlError | Cause.TimeoutError, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const { applicationName: _, ...config } = this.#sessions.sql.config
      const connection = yield* PgConnection.make({ ...config, applicationName: this.#sessions.name })
      const session = yield* connection.pin
      for (const [name, value] of Object.entries(NOTICE_SECONDS)) yield* session.query(`SET ${name} = ${value}`)
      const notifications = yield* session.listen(CHANNEL)
      const hear = Effect.map(Queue.take(notifications), ({ payload, processId }) => {
        if (processId === session.processId) return
        if (payload !== "") return this.#placement.noteChanged(payload)
        this.#wake()
        this.stir()
      })
      const heard = yield* Effect.forkScoped(Effect.forever(hear))
      const next = Effect.timeoutOption(Queue.take(this.#wakes), LOOK_MILLIS)
      const watch = Effect.andThen(Effect.andThen(this.#lookIn(session), Effect.sleep(PAUSE_MILLIS)), next)
      return yield* Effect.raceFirst(Effect.forever(watch), Fiber.join(heard))
    })
  }

  readonly stir = (): void => {
    Deferred.doneUnsafe(this.#news, Effect.void)
    this.#news = Deferred.makeUnsafe()
  }

  #lookIn(session: PgConnection.PgConnection): Effect.Effect<void, SqlError.SqlError | Cause.TimeoutError> {
    return Effect.gen({ self: this }, function* () {
      const told = this.#waiting
      this.#waiting = []
      const begun = performance.now()
      const isDue = begun - this.#notedAt >= NOTE_MILLIS
      const before = yield* Clock.currentTimeMillis
      const { rows } = yield* session.query(LOOK, this.#parameters(isDue)).pipe(
        Effect.timeout(ANSWER_MILLIS_MAX),
        Effect.onError(() => Effect.sync(() => void this.#waiting.push(...told)))
      )
      const look = rows[0] as unknown as Look
      if (isDue) {
        this.#notedAt = begun
        this.#aheadMillis = yield* noteClock(before, look.now, this.#aheadMillis)
      }
      this.#take(look)
      if (this.#isLost) yield* Effect.logInfo("Where partitions are served is known anew")
      this.#isLost = false
      for (const one of told) Deferred.doneUnsafe(one, Effect.void)
    })
  }

  #parameters(isDue: boolean): ReadonlyArray<unknown> {
    const { url, version } = this.#self
    const note = [isDue, version, this.#aheadMillis, this.#isLeaving, this.#since]
    // What is lost with a session is found all the same: by whoever looks at a lock or an account again.
    const news = [this.#hasFreed, JSON.stringify([...this.#written])]
    this.#hasFreed = false
    this.#written.clear()
    return [url, `{${[...this.#open].join(",")}}`, this.#isConfirmed(), ...note, ...news]
  }

  #take({ leaving, places, signs }: Look): void {
    const now = performance.now()
    this.#owners = new Map(places)
    const before = this.#signs
    this.#signs = new Map(
      signs?.map(([address, text, age]) => {
        const known = before.get(address)
        return [address, { text, at: now - age, seenAt: known?.text === text ? known.seenAt : now }]
      })
    )
    let known = this.#open.size
    for (const [partition, url] of places ?? []) {
      if (this.#open.has(partition)) continue
      // What an earlier runner at this address has left.
      const place = url === this.#self.url ? null : url
      this.#placement.placed(partition, place)
      if (place !== null) known++
    }
    this.#othersLeaving = new Set(leaving)
    if (known === PARTITIONS) Deferred.doneUnsafe(this.#found, Effect.void)
  }
}

/** The clock was right at the start. Whoever sets it while Till runs is told, once each time. */
const noteClock = (before: number, now: number, was: number) =>
  Effect.gen(function* () {
    const after = yield* Clock.currentTimeMillis
    const ahead = Math.round((before + after) / 2 - now)
    const isOff = (millis: number) => Math.abs(millis) > CLOCK_OFF_MILLIS_MAX
    if (isOff(ahead) && !isOff(was)) {
      yield* Effect.logWarning(`This machine's clock is ${ahead} ms ahead of the database's`)
    }
    return Math.max(Math.min(ahead, 2 ** 31 - 1), -(2 ** 31))
  })

/** Corrects what is wrong of this runner's, and answers with everything as it was before. */
const LOOK = `WITH held AS (SELECT unnest($2::text::int[]) AS id),
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
      extract(epoch FROM clock_timestamp()::timestamp - last_heartbeat) * 1000)) FROM cluster_runners) AS signs,
    (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now, (SELECT count(*) FROM told) + (SELECT count(*) FROM told_of) AS told`
