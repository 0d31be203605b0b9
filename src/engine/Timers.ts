/**
 * The scheduler: one fiber that sleeps until the next timer is due and turns due timers into commands, in due order.
 *
 * A timer fires at least once after its time, however long the process was down, and has its effect exactly once: the
 * command that carries out its handler clears it in the same record, and does nothing if it is not set as it was.
 */
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import type { Unavailable } from "./Accounts.ts"
import { Accounts } from "./Accounts.ts"
import { Alarm } from "./Alarm.ts"
import type { TimerRow } from "./Projection.ts"
import { Projector } from "./Projector.ts"
import { Transaction } from "./Transaction.ts"
import { Views } from "./Views.ts"

/** Timers that fire at the same time, at most. */
const FIRING_MAX = 256
/** Pause after a timer could not fire. */
const RETRY_MILLIS = 1000

/** A timer that is due. */
export interface DueTimer {
  readonly id: string
  readonly name: string
}

/** What happens when a timer is due: a command, by the timer's name. */
export class TimerHandler extends Context.Service<
  TimerHandler,
  (timer: DueTimer) => Effect.Effect<void, never, Transaction>
>()("till/engine/TimerHandler") {}

/** Runs the scheduler as long as the layer lives. */
export const layer: Layer.Layer<never, never, Accounts | Alarm | Projector | Views | TimerHandler> =
  Layer.effectDiscard(
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const alarm = yield* Alarm
      const projector = yield* Projector
      const views = yield* Views
      const handler = yield* TimerHandler

      const fire = (timer: TimerRow): Effect.Effect<void, Unavailable> =>
        accounts.run(
          timer.account,
          Effect.gen(function* () {
            const transaction = yield* Transaction
            if ((yield* transaction.timerDueAt(timer.id)) !== timer.dueAt) return
            transaction.clearTimer(timer.id)
            yield* handler(timer)
          })
        )

      // One timer that cannot fire must not hold back the others.
      const attempt = (timer: TimerRow): Effect.Effect<boolean> =>
        Effect.as(fire(timer), true).pipe(
          Effect.catchCause((cause) =>
            Effect.as(Effect.logError(`Timer ${timer.id} of account ${timer.account} could not fire`, cause), false)
          )
        )

      const round = Effect.gen(function* () {
        yield* projector.drained
        const timers = yield* views.nextTimers(FIRING_MAX)
        const now = yield* Clock.currentTimeMillis
        const due = timers.filter(({ dueAt }) => dueAt <= now)
        const fired = yield* Effect.forEach(due, attempt, { concurrency: "unbounded" })
        if (fired.includes(false)) return yield* Effect.sleep(RETRY_MILLIS)
        if (due.length === 0) yield* alarm.sleepUntil(timers[0]?.dueAt ?? Infinity)
      }).pipe(
        Effect.catch((failure) =>
          Effect.andThen(Effect.logError("The timers could not be read", failure.message), Effect.sleep(RETRY_MILLIS))
        )
      )
      // After a crash the journal may hold timers that the views have not seen.
      const catchUp = Effect.flatMap(views.behind, (accounts) =>
        Effect.forEach(accounts, (account) => projector.catchUp(account), { discard: true })
      ).pipe(
        Effect.tapError((failure) => Effect.logError("The views could not be brought up to date", failure.message)),
        Effect.retry({ schedule: Schedule.spaced(RETRY_MILLIS) }),
        Effect.ignore
      )
      yield* Effect.forkScoped(Effect.andThen(catchUp, Effect.forever(round)))
    })
  )
