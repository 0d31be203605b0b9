/**
 * The scheduler: one fiber that sleeps until the next timer is due and turns due timers into commands, in due order.
 *
 * A timer fires at least once after its time, however long the process was down, and has its effect exactly once: the
 * command that carries out its handler clears it in the same record, and does nothing if it is not set as it was.
 *
 * It also has the views forget the idempotency keys that are past their retention. Nobody sees when: every look at a key
 * decides by the key's own time.
 */
import { Cause, Clock, Context, Data, Effect, Layer, Schedule } from "effect"
import type { Unavailable } from "./Accounts.ts"
import { Accounts } from "./Accounts.ts"
import { Alarm } from "./Alarm.ts"
import { DeliveryFeed } from "./DeliveryFeed.ts"
import type { AccountId, Millis } from "./Document.ts"
import { RETENTION_MILLIS } from "./KeyFilter.ts"
import * as Loop from "./Loop.ts"
import type { TimerRow } from "./Projection.ts"
import { Projector } from "./Projector.ts"
import { Transaction } from "./Transaction.ts"
import type { ViewsShape } from "./Views.ts"
import { Views } from "./Views.ts"

/** Timers that fire at the same time, at most, not counting those that have failed before. */
const FIRING_MAX = 256
/** Pause after a timer could not fire; each further one is twice as long, up to the maximum. */
const RETRY_MILLIS = 1000
const RETRY_MILLIS_MAX = 60_000
/** Time between two looks for idempotency keys that are past their retention. */
const FORGET_KEYS_MILLIS = 60_000
const FORGET_KEYS_MAX = 10_000

/**
 * What came of a due timer; stale is one that stands differently in its account than in the views. What was put off because
 * the account could not be had is nothing that the timer could help.
 */
type Outcome = "fired" | "stale" | "failed" | "put off"

/** A timer cannot be carried out for now, which is nobody's mistake. It stays set, and is tried again. */
export class Postponed extends Data.TaggedError("Postponed") {}

/** A timer that is due. */
export interface DueTimer {
  readonly id: string
  readonly name: string
}

/** What happens when a timer is due: a command, by the timer's name. */
export class TimerHandler extends Context.Service<
  TimerHandler,
  (timer: DueTimer) => Effect.Effect<void, Postponed, Transaction>
>()("till/engine/TimerHandler") {}

/** Runs the scheduler as long as the layer lives. */
export const layer: Layer.Layer<never, never, Accounts | Alarm | DeliveryFeed | Projector | Views | TimerHandler> =
  Layer.effectDiscard(
    Effect.gen(function* () {
      const caughtUp = yield* makeCaughtUp
      const round = yield* makeRound
      yield* Effect.forkScoped(Loop.vital("firing of timers", Effect.andThen(caughtUp, Effect.forever(round))))
    })
  )

/** After a crash the journal may hold timers and deliveries that the views have not seen. */
const makeCaughtUp = Effect.gen(function* () {
  const feed = yield* DeliveryFeed
  const projector = yield* Projector
  const views = yield* Views
  const catchUp = (account: AccountId) =>
    Effect.catchTag(projector.catchUp(account), "JournalCorrupt", (corrupt) =>
      Effect.logError(`The views of account ${account} could not be brought up to date`, corrupt.message)
    )
  return Effect.flatMap(views.behind, (accounts) => Effect.forEach(accounts, catchUp, { discard: true })).pipe(
    Effect.tapError((failure) => Effect.logError("The views could not be brought up to date", failure.message)),
    Effect.retry({ schedule: Schedule.spaced(RETRY_MILLIS) }),
    Effect.ignore,
    Effect.andThen(Effect.sync(() => feed.alarm.set(0)))
  )
})

/** Fires what is due, and sleeps if nothing is. */
const makeRound = Effect.gen(function* () {
  const alarm = yield* Alarm
  const projector = yield* Projector
  const views = yield* Views
  const attempt = yield* makeAttempt
  const forgetKeys = makeForgetKeys(views)
  // Those that failed stay the first in due order: the others are read from behind them.
  const pauses = new Pauses()
  return Effect.gen(function* () {
    yield* projector.drained
    const timers = yield* views.nextTimers(FIRING_MAX + pauses.size)
    const now = yield* Clock.currentTimeMillis
    pauses.keepFor(timers)
    const due = timers.filter((timer) => pauses.readyAt(timer, now) <= now)
    const outcomes = yield* Effect.forEach(due, attempt, { concurrency: "unbounded" })
    const ended = yield* Clock.currentTimeMillis
    due.forEach((timer, i) => {
      if (outcomes[i] === "failed") pauses.lengthen(timer, ended)
      if (outcomes[i] === "put off") pauses.set(timer, ended, RETRY_MILLIS)
    })
    const forgetAt = yield* forgetKeys(now)
    if (due.length === 0) {
      return yield* alarm.sleepUntil(
        timers.reduce((nearest, timer) => Math.min(nearest, pauses.readyAt(timer, now)), forgetAt)
      )
    }
    if (outcomes.includes("stale") && !outcomes.includes("fired")) yield* Effect.sleep(RETRY_MILLIS)
  }).pipe(
    Effect.catch((failure) =>
      Effect.andThen(
        Effect.logError("The scheduler could not read or write the views", failure.message),
        Effect.sleep(RETRY_MILLIS)
      )
    )
  )
})

/** Fires a timer. One that cannot fire must not hold back the others. */
const makeAttempt = Effect.gen(function* () {
  const accounts = yield* Accounts
  const handler = yield* TimerHandler

  const fire = (timer: TimerRow): Effect.Effect<Outcome, Unavailable | Postponed> =>
    accounts.run(
      timer.account,
      Effect.gen(function* () {
        const transaction = yield* Transaction
        if ((yield* transaction.timerDueAt(timer.id)) !== timer.dueAt) return "stale"
        transaction.clearTimer(timer.id)
        yield* handler(timer)
        return "fired"
      })
    )

  return (timer: TimerRow): Effect.Effect<Outcome> =>
    fire(timer).pipe(
      Effect.catchTag("Postponed", () => Effect.succeed("failed" as const)),
      Effect.catchCause((cause) =>
        Effect.as(
          Effect.logError(`Timer ${timer.id} of account ${timer.account} could not fire`, cause),
          Cause.hasDies(cause) ? ("failed" as const) : ("put off" as const)
        )
      )
    )
})

/** Forgets keys now and then, a few at a time, so that no timer waits for all of them; answers when it wants to again. */
const makeForgetKeys = (views: ViewsShape) => {
  let next: Millis = 0
  return Effect.fnUntraced(function* (now: Millis) {
    // A clock that was set back must not put it off.
    if (next > now && next <= now + FORGET_KEYS_MILLIS) return next
    const count = yield* views.expireKeys(now - RETENTION_MILLIS, FORGET_KEYS_MAX)
    next = count < FORGET_KEYS_MAX ? now + FORGET_KEYS_MILLIS : now
    return next
  })
}

/** When timers that could not fire are tried again. */
class Pauses {
  #pauses = new Map<string, { readonly until: Millis; readonly millis: Millis }>()

  get size(): number {
    return this.#pauses.size
  }

  /** Forgets all others: they have fired, or are not set any more. */
  keepFor(timers: ReadonlyArray<TimerRow>): void {
    const known = this.#pauses
    this.#pauses = new Map()
    for (const timer of timers) {
      const pause = known.get(nameOf(timer))
      if (pause !== undefined) this.#pauses.set(nameOf(timer), pause)
    }
  }

  readyAt(timer: TimerRow, now: Millis): Millis {
    const until = this.#pauses.get(nameOf(timer))?.until ?? 0
    // A clock that was set back must not put it off.
    return until > now + RETRY_MILLIS_MAX ? timer.wakeAt : Math.max(timer.wakeAt, until)
  }

  /** A pause twice as long as the one before. */
  lengthen(timer: TimerRow, now: Millis): void {
    const before = this.#pauses.get(nameOf(timer))?.millis ?? RETRY_MILLIS / 2
    this.set(timer, now, Math.min(2 * before, RETRY_MILLIS_MAX))
  }

  set(timer: TimerRow, now: Millis, millis: Millis): void {
    this.#pauses.set(nameOf(timer), { until: now + millis, millis })
  }
}

/** A timer that is set anew is another one. */
const nameOf = ({ account, id, version }: TimerRow): string => `${account} ${id} ${version}`
