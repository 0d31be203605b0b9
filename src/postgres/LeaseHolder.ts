/**
 * Who holds leases, and who of them is still alive.
 *
 * A process that leases deliveries has a number, and a lock under it that lives as long as a session of its own:
 * Postgres gives it back when the process dies. So others know a lease that nobody holds any more without waiting for
 * its end. Numbers that were used are in `lease_holders` until somebody has seen that nobody has their lock.
 *
 * A session that is lost is replaced with the next look; meanwhile others may take this process for dead, and attempt
 * what it is attempting. A server that allows no further session leaves the process without a number: its leases end
 * with their time, or when another process starts.
 */
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Effect, Exit, Scope } from "effect"
import { randomInt } from "node:crypto"
import type { StorageFailure } from "../engine/Journal.ts"
import { ask, integer, ints, storageFailure } from "./Rows.ts"
import { makeWithin } from "./StatementLimit.ts"

/** Locks of Till's that say who lives have this as their first number. */
const LOCKS = 1_414_089_804
const NUMBER_MAX = 2 ** 31 - 1
/** A server that is to notice that a machine is gone asks after so much silence, so often, so many times. */
const NOTICE_SECONDS = { tcp_keepalives_idle: 10, tcp_keepalives_interval: 5, tcp_keepalives_count: 3 }

/** The processes with numbers, but for this one. */
export interface Others {
  readonly living: ReadonlyArray<number>
  readonly dead: ReadonlyArray<number>
}

export interface LeaseHolder {
  /** Under it this process leases; null as long as it has none. */
  readonly number: () => number | null
  /** Sees to it that this process is known to live, as long as the scope is open, and looks who else does. */
  readonly others: Effect.Effect<Others, StorageFailure>
  /** Nothing is leased under these numbers any more. */
  readonly forget: (numbers: ReadonlyArray<number>) => Effect.Effect<void, StorageFailure>
}

interface Session {
  readonly connection: PgConnection.PgConnection
  readonly scope: Scope.Closeable
}

export const make: Effect.Effect<LeaseHolder, never, PgClient.PgClient | Scope.Scope> = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const { within } = yield* makeWithin
  const scope = yield* Effect.scope
  let number: number | null = null
  let session: Session | null = null

  const open = Effect.gen(function* () {
    const inner = yield* Scope.fork(scope)
    const { applicationName, ...config } = sql.config
    const opened = Effect.gen(function* () {
      const connection = yield* PgConnection.make({ ...config, applicationName: `${applicationName} leases` })
      for (const [name, value] of Object.entries(NOTICE_SECONDS)) yield* connection.query(`SET ${name} = ${value}`)
      number = yield* locked(connection, number)
      session = { connection, scope: inner }
    })
    yield* Effect.onError(Scope.provide(opened, inner), () => Scope.close(inner, Exit.void))
  })

  const close = Effect.suspend(() => {
    const closing = session === null ? Effect.void : Scope.close(session.scope, Exit.void)
    session = null
    return closing
  })

  const check = Effect.suspend(() => (session === null ? Effect.void : session.connection.query("SELECT")))

  /** One that cannot have a session goes on without. */
  const live = within(storageFailure(Effect.tapCause(check, () => close))).pipe(
    Effect.ignore,
    Effect.andThen(Effect.suspend(() => (session === null ? within(storageFailure(open)) : Effect.void))),
    Effect.catch((failure) =>
      Effect.logWarning("Other processes will not know that this one lives, and may repeat webhooks", failure.message)
    )
  )

  return {
    number: () => number,
    others: Effect.andThen(
      live,
      Effect.suspend(() => within(lookFor(sql, number)))
    ),
    forget: (numbers) =>
      numbers.length === 0
        ? Effect.void
        : within(ask(sql`DELETE FROM lease_holders WHERE holder = ANY(${ints(numbers)})`, () => undefined))
  }
})

const lookFor = (sql: PgClient.PgClient, own: number | null) =>
  ask(
    sql<{ holder: number; lives: boolean }>`WITH kept AS (
        INSERT INTO lease_holders (holder) SELECT ${integer(own)} WHERE ${integer(own)} IS NOT NULL
        ON CONFLICT DO NOTHING
      )
      SELECT holder, EXISTS (
        SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = ${sql.literal(String(LOCKS))}
          AND objid = holder::oid AND objsubid = 2 AND granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      ) AS lives
      FROM lease_holders WHERE holder IS DISTINCT FROM ${integer(own)}`,
    (rows): Others => {
      const numbersOf = (lives: boolean) => rows.filter((row) => row.lives === lives).map(({ holder }) => holder)
      return { living: numbersOf(true), dead: numbersOf(false) }
    }
  )

const randomNumber = (): number => randomInt(1, NUMBER_MAX)

/** Takes the lock of the number that is wanted, or of another one; answers with the number. */
const locked = Effect.fnUntraced(function* (connection: PgConnection.PgConnection, wanted: number | null) {
  // A server that has not noticed yet that the session before this one is gone still has that one's lock.
  for (let number = wanted ?? randomNumber(); ; number = randomNumber()) {
    const { rows } = yield* connection.query(`SELECT pg_try_advisory_lock(${LOCKS}, ${number}) AS taken`)
    if (rows[0]!["taken"] === true) return number
  }
})
