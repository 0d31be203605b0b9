/**
 * A time limit for statements that commands or shared fibers wait for: all statements of the journal, and those of the
 * views that load data for commands, write, or read due work. A Postgres that hangs, or a network that drops all
 * packets, neither answers nor fails. A statement that exceeds the limit is interrupted and is a storage failure, whose
 * outcome is unknown as after any other failure.
 *
 * While the database is known to hang, no statement is sent (`Breaker.ts`): statements fail immediately, and running
 * ones are abandoned before their limit.
 *
 * After a network outage, connections may be dead without notice, and each would hold a statement for its whole limit.
 * So when the database answers over a new connection while another is silent, all connections are tried at the same
 * time, and dead ones are closed.
 *
 * An abandoned projection is tried again; its checkpoint shows whether it was applied.
 *
 * The interruption sends Postgres a cancel request and, if that is not answered, closes the connection within 5
 * more seconds, in the background. So a server that has not noticed may still execute the statement later. By then the
 * account has restarted from the journal. The late record and the account's next one have the same version, and the
 * journal accepts one of them; if that is the late one, the account restarts again. An account that writes nothing
 * detects the late record within 30 seconds.
 */
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Clock, Context, Effect, type Scope } from "effect"
import { StorageFailure } from "../engine/log/Journal.ts"
import * as Metrics from "../engine/process/Metrics.ts"
import { Breaker, type HangLimits as Limits } from "./Breaker.ts"
import { connectionsMax } from "./Database.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("postgres")

/** The limit in milliseconds. */
export const StatementLimit: Context.Reference<number> = Context.Reference("till/postgres/StatementLimit", {
  defaultValue: () => 15_000
})

/**
 * When the database counts as hanging. A probe over a new connection takes several round trips, which may take more
 * than a second to a distant database.
 */
export const HangLimits: Context.Reference<Limits> = Context.Reference("till/postgres/HangLimits", {
  defaultValue: () => ({ silentMillis: 1500, probeMillis: 2000, pauseMillis: 500 })
})

export interface Within {
  /** Runs a statement within the limit; fails immediately while the database hangs. */
  readonly within: <A, E>(statement: Effect.Effect<A, E>) => Effect.Effect<A, E | StorageFailure>
  readonly isHanging: () => boolean
}

/** Makes the limiter of a storage, with the limits in force where the first storage on its pool is built. */
export const makeWithin: Effect.Effect<Within, never, PgClient.PgClient | Scope.Scope> = Effect.gen(function* () {
  const breaker = yield* breakerOf(yield* PgClient.PgClient)
  const scope = yield* Effect.scope
  return { within: (statement) => breaker.guard(statement, scope), isHanging: () => breaker.isHanging }
})

/** Clock of the limits: the time of tests stands still or jumps, but not that of their database. */
const machineClock = Clock.Clock.defaultValue()

const HANGING = {
  name: "till_database_hanging",
  description: "1 while the database does not answer, and Till sends it no statements; 0 otherwise."
}
const HANGS = { name: "till_database_hangs_total", description: "How often the database has begun to hang." }

const breakers = new WeakMap<PgClient.PgClient, Breaker<StorageFailure>>()

/** Returns the breaker of a pool, which all storages on the pool share. */
const breakerOf = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const known = breakers.get(sql)
  if (known !== undefined) return known
  const statementMillis = yield* StatementLimit
  const limits = { ...(yield* HangLimits), statementMillis }
  const scope = yield* Effect.scope
  const { applicationName, ...config } = sql.config
  // A statement per connection, all at the same time. A statement without an answer closes its connection.
  const tryAll = Effect.all(
    Array.from({ length: connectionsMax }, () => Effect.exit(Effect.timeout(sql`SELECT`, limits.probeMillis))),
    { concurrency: "unbounded", discard: true }
  )
  const probe = Effect.scoped(
    Effect.flatMap(PgConnection.make({ ...config, applicationName: `${applicationName} probe` }), (connection) =>
      connection.query("SELECT FROM journal LIMIT 1")
    )
  )
  const countHangs = yield* Metrics.counter(HANGS)
  const breaker = yield* Effect.provideService(
    Breaker.make(limits, {
      probe: Effect.andThen(probe, Effect.forkIn(tryAll, scope)),
      onChange: (isHanging) =>
        isHanging
          ? Effect.andThen(
              Effect.sync(() => countHangs()),
              log.error("The database hangs: what needs it is refused until it answers")
            )
          : log.warning("The database answers again"),
      failure: new StorageFailure({ cause: "The database hangs" }),
      late: new StorageFailure({ cause: `No answer within ${statementMillis} ms` })
    }),
    Clock.Clock,
    machineClock
  )
  yield* Metrics.observeGauge(HANGING, () => (breaker.isHanging ? 1 : 0))
  breakers.set(sql, breaker)
  return breaker
})
