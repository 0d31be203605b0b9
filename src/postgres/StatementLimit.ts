/**
 * Limits how long a statement may take that a command waits for, or a fiber that serves all: every one of the journal,
 * and those of the views that load what a command needs, write, or say what is due. A Postgres that hangs neither
 * answers nor fails, nor does a network that swallows everything; a statement that exceeds the limit is interrupted and
 * is a storage failure, with its outcome open as after any other failure.
 *
 * A database that is known to hang is asked nothing at all (`Breaker.ts`): statements fail at once, and those under way
 * are given up before their limit.
 *
 * A network that was away may have forgotten its connections and say so to nobody. Each would keep a statement for its
 * whole limit, one after the other. So when a database answers over a new connection while it is silent over another,
 * all connections are tried at once, and those that are dead are closed.
 *
 * A projection that was given up is tried again, and finds by its checkpoint whether it was carried out.
 *
 * The interruption asks Postgres to cancel the statement, and if that goes unanswered as well it closes the connection,
 * within 5 more seconds, for which nobody waits. So the statement may still be carried out later, by a server that has
 * not noticed. The account has started anew from the journal by then: of the late record and the account's next one,
 * which have the same version, the journal takes one, and an account that loses starts anew again; one that writes
 * nothing hears of it within 30 seconds.
 */
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Context, Effect, Exit, Fiber } from "effect"
import type { Scope } from "effect"
import { StorageFailure } from "../engine/log/Journal.ts"
import type { HangLimits as Limits } from "./Breaker.ts"
import { Breaker } from "./Breaker.ts"
import { connectionsMax } from "./Database.ts"

/** In milliseconds. By the machine's clock: the time of tests stands still or jumps. */
export const StatementLimit: Context.Reference<number> = Context.Reference("till/postgres/StatementLimit", {
  defaultValue: () => 15_000
})

/**
 * When a database counts as hanging. It takes several round trips to ask over a new connection, and a second is not
 * much for those where the database is far away.
 */
export const HangLimits: Context.Reference<Limits> = Context.Reference("till/postgres/HangLimits", {
  defaultValue: () => ({ silentMillis: 1500, probeMillis: 2000, pauseMillis: 500 })
})

export interface Within {
  /** Carries a statement out within the limit, unless the database hangs. */
  readonly within: <A, E>(statement: Effect.Effect<A, E>) => Effect.Effect<A, E | StorageFailure>
  /** True while the database is known to hang. */
  readonly isHanging: () => boolean
}

/** Gives a storage's statements the limit that is in force where the storage is built. */
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

/** All that is asked over the same connections shares what is known of them. */
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
  // A try that waits for a connection has tried none. One that its connection does not answer closes that.
  const tryAll = Effect.all(
    Array.from({ length: connectionsMax }, () => Effect.exit(Effect.timeout(sql`SELECT`, limits.probeMillis))),
    { concurrency: "unbounded", discard: true }
  )
  const breaker = new Breaker(limits, {
    now: () => performance.now(),
    after: (millis, step) => void setTimeout(step, millis).unref(),
    ask: (answered) => {
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
