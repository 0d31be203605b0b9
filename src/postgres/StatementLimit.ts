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
import { Context, Effect, Exit, Fiber, type Scope } from "effect"
import { StorageFailure } from "../engine/log/Journal.ts"
import { Breaker, type HangLimits as Limits } from "./Breaker.ts"
import { connectionsMax } from "./Database.ts"

/** The limit in milliseconds, by the machine's clock: the time of tests stands still or jumps. */
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
  /** True while the database is known to hang. */
  readonly isHanging: () => boolean
}

/** Makes the limiter of a storage, with the limit in force where the storage is built. */
export const makeWithin: Effect.Effect<Within, never, PgClient.PgClient | Scope.Scope> = Effect.gen(function* () {
  const limitMillis = yield* StatementLimit
  const breaker = yield* breakerOf(yield* PgClient.PgClient)

  const run = <A, E>(statement: Effect.Effect<A, E>, context: Context.Context<never>) =>
    Effect.callback<A, E | StorageFailure>((resume) => {
      if (breaker.isHanging) return resume(hanging)
      const fiber = Effect.runForkWith(context)(statement)
      const giveUp = (failure: Exit.Exit<never, StorageFailure>) => {
        clearTimeout(timer)
        resume(failure)
        fiber.interruptUnsafe()
      }
      const timer = setTimeout(() => {
        breaker.end(underWay, false)
        giveUp(Exit.fail(new StorageFailure({ cause: `No answer within ${limitMillis} ms` })))
      }, limitMillis)
      const underWay = breaker.begin(() => giveUp(hanging))
      fiber.addObserver((exit) => {
        clearTimeout(timer)
        breaker.end(underWay, Exit.isSuccess(exit))
        resume(exit)
      })
      return Effect.suspend(() => {
        clearTimeout(timer)
        breaker.end(underWay, false)
        return Fiber.interrupt(fiber)
      })
    })

  return {
    within: (statement) => Effect.flatMap(Effect.context<never>(), (context) => run(statement, context)),
    isHanging: () => breaker.isHanging
  }
})

const hanging = Exit.fail(new StorageFailure({ cause: "The database hangs" }))

const breakers = new WeakMap<PgClient.PgClient, Breaker>()

/** Returns the breaker of a pool, which all storages on the pool share. */
const breakerOf = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const known = breakers.get(sql)
  if (known !== undefined) return known
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const limits = yield* HangLimits
  const { applicationName, ...config } = sql.config
  const probe = Effect.scoped(
    Effect.flatMap(PgConnection.make({ ...config, applicationName: `${applicationName} probe` }), (connection) =>
      connection.query("SELECT FROM journal LIMIT 1")
    )
  )
  // A statement per connection, all at the same time. A statement without an answer closes its connection.
  const tryAll = Effect.all(
    Array.from({ length: connectionsMax }, () => Effect.exit(Effect.timeout(sql`SELECT`, limits.probeMillis))),
    { concurrency: "unbounded", discard: true }
  )
  const breaker = new Breaker(limits, {
    now: () => performance.now(),
    after: (millis, step) => void setTimeout(step, millis).unref(),
    probe: (answered) => {
      const fiber = runFork(Effect.exit(probe))
      fiber.addObserver((exit) => {
        if (Exit.isFailure(exit)) return
        answered()
        runFork(tryAll)
      })
      return () => fiber.interruptUnsafe()
    },
    onChange: (isHanging) =>
      void runFork(
        isHanging
          ? Effect.logError("The database hangs: what needs it is refused until it answers")
          : Effect.logWarning("The database answers again")
      )
  })
  breakers.set(sql, breaker)
  yield* Effect.addFinalizer(() => Effect.sync(() => breaker.close()))
  return breaker
})
