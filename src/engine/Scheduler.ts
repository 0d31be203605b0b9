/**
 * The scheduler: one fiber that sleeps until the next timer is due, and wakes the timer's account, which fires it.
 *
 * Nobody depends on when it does: an account fires what is due before it carries out a command or answers a read. The
 * scheduler is there for accounts that nobody uses. What an account in memory has next, its actor knows; of all others
 * the views tell. A timer fires at least once after its time, however long the process was down, and has its effect
 * exactly once: the command that carries out its handler clears it in the same record.
 *
 * Of several processes, each wakes the accounts of its own partitions. A partition that comes here may have been left
 * in the middle of things: its views are brought up to date with the log, which may hold timers and deliveries that
 * they have not seen. Nobody waits for that: an account that is used is brought up to date before.
 *
 * It also keeps the running time by which idempotency keys are past their retention, and has the views forget them,
 * where it serves the replicated account (`Options`). Nobody sees when: every look at a key decides by the key's own
 * time.
 */
import { Clock, Effect, Latch, Layer, Schedule } from "effect"
import { Accounts } from "./Accounts.ts"
import { WakeUp } from "./process/WakeUp.ts"
import { CommitFeed } from "./views/CommitFeed.ts"
import type { AccountId, Millis } from "./log/Document.ts"
import type { StorageFailure } from "./log/Journal.ts"
import { Journal } from "./log/Journal.ts"
import { RETENTION_MILLIS } from "./actor/IdempotencyRetention.ts"
import * as Loop from "./process/Loop.ts"
import type { Partition } from "./process/Placement.ts"
import { partitionOf, PARTITIONS, Placement } from "./process/Placement.ts"
import { Projector } from "./actor/Projector.ts"
import type { RunningTimeShape } from "./actor/RunningTime.ts"
import { RunningTime } from "./actor/RunningTime.ts"
import { RETRY_MILLIS } from "./actor/Timers.ts"
import type { ViewsShape } from "./views/Views.ts"
import { Views } from "./views/Views.ts"

/** Timers of accounts that are not in memory that one look into the views finds. */
const TIMERS_MAX = 256
/** Accounts that are woken at the same time, at most. */
const WAKING_MAX = 64
/** Partitions that come within so many milliseconds are brought up to date together. */
const COMING_MILLIS = 50
/** Time between two looks for idempotency keys that are past their retention. */
const FORGET_KEYS_MILLIS = 60_000
const FORGET_KEYS_MAX = 10_000

/** Runs the scheduler as long as the layer lives. */
export const layer = (
  replicated: AccountId | null
): Layer.Layer<never, never, Accounts | WakeUp | Journal | CommitFeed | Placement | Projector | RunningTime | Views> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const placement = yield* Placement
      const catchUp = yield* makeCatchUp
      const round = yield* makeRound(replicated)
      if (placement.held() !== null) yield* catchUpWhatComes(catchUp)
      const first = placement.held() === null ? catchUp(() => true) : Effect.void
      yield* Effect.forkScoped(Loop.vital("firing of timers", Effect.andThen(first, Effect.forever(round))))
    })
  )

type CatchUp = (isWanted: (account: AccountId) => boolean) => Effect.Effect<void>

/** Brings partitions up to date, after they have come; several that come one right after the other, at once. */
const catchUpWhatComes = Effect.fnUntraced(function* (catchUp: CatchUp) {
  const placement = yield* Placement
  const alarm = yield* WakeUp
  const come = new Set<Partition>()
  const some = Latch.makeUnsafe(false)
  yield* placement.listen({
    onServed: (partition) => {
      come.add(partition)
      some.openUnsafe()
      alarm.set(0)
    }
  })
  const step = Effect.gen(function* () {
    yield* some.await
    yield* Effect.sleep(COMING_MILLIS)
    const wanted = new Set(come)
    come.clear()
    some.closeUnsafe()
    yield* catchUp((account) => wanted.has(partitionOf(account)) && placement.isHere(account))
    alarm.set(0)
  })
  yield* Effect.forkScoped(Loop.forever("bringing up to date of partitions", step))
})

/** After a crash the journal may hold timers and deliveries that the views have not seen. */
const makeCatchUp = Effect.gen(function* () {
  const journal = yield* Journal
  const outbox = yield* CommitFeed
  const projector = yield* Projector
  const views = yield* Views
  const catchUp = ([account, version]: readonly [AccountId, number]) =>
    Effect.catchTag(projector.catchUp(account, version), "JournalCorrupt", (corrupt) =>
      Effect.logError(`The views of account ${account} could not be brought up to date`, corrupt.message)
    )
  return (isWanted: (account: AccountId) => boolean): Effect.Effect<void> =>
    Effect.flatMap(views.behind, (accounts) => journal.versions(accounts.filter(isWanted))).pipe(
      Effect.flatMap((versions) =>
        // It may have gone again since.
        Effect.forEach(versions, (each) => (isWanted(each[0]) ? catchUp(each) : Effect.void), { discard: true })
      ),
      Effect.tapError((failure) => Effect.logError("The views could not be brought up to date", failure.message)),
      Effect.retry({ schedule: Schedule.spaced(RETRY_MILLIS) }),
      Effect.ignore,
      Effect.andThen(Effect.sync(() => outbox.alarm.set(0)))
    )
})

/** Wakes the accounts that have something due, and sleeps if none has. */
const makeRound = Effect.fnUntraced(function* (replicated: AccountId | null) {
  const accounts = yield* Accounts
  const alarm = yield* WakeUp
  const placement = yield* Placement
  const projector = yield* Projector
  const views = yield* Views
  const forgetKeys = makeForgetKeys(
    views,
    yield* RunningTime,
    () => replicated === null || placement.isHere(replicated)
  )
  /** Accounts that could not be had, and when they are asked again. */
  const resting = new Map<AccountId, Millis>()

  const wake = (account: AccountId) =>
    Effect.catchCause(accounts.wake(account), (cause) =>
      Effect.gen(function* () {
        if (!placement.isHere(account)) return
        resting.set(account, (yield* Clock.currentTimeMillis) + RETRY_MILLIS)
        yield* Effect.logError(`The timers of account ${account} could not fire`, cause)
      })
    )

  return Effect.gen(function* () {
    yield* projector.drained
    const now = yield* Clock.currentTimeMillis
    // A clock that was set back must not keep an account waiting.
    for (const [account, until] of resting) {
      if (until <= now || until > now + RETRY_MILLIS || !placement.isHere(account)) resting.delete(account)
    }
    // In this order: whoever comes into memory meanwhile is among the first, and then knows better.
    const found = yield* stored(accounts, views, now, placement.held())
    const wakeTimes = new Map([...found, ...accounts.wakeTimes(now), ...resting])
    const due = [...wakeTimes].filter(([, at]) => at <= now).map(([account]) => account)
    yield* Effect.forEach(due, wake, { concurrency: WAKING_MAX, discard: true })
    const forgetAt = yield* forgetKeys(now)
    if (due.length === 0) yield* alarm.sleepUntil(Math.min(forgetAt, ...wakeTimes.values()))
  }).pipe(
    Effect.catch((failure) =>
      Effect.andThen(
        Effect.logError("The scheduler could not read or write the views", failure.message),
        Effect.sleep(RETRY_MILLIS)
      )
    )
  )
})

/**
 * Reads from the views when accounts are to be woken: those that have something due, and the next one not in memory.
 */
const stored = Effect.fnUntraced(function* (
  accounts: Accounts["Service"],
  views: ViewsShape,
  now: Millis,
  held: ReadonlyArray<Partition> | null
): Effect.fn.Return<ReadonlyMap<AccountId, Millis>, StorageFailure> {
  const found = new Map<AccountId, Millis>()
  if (held?.length === 0) return found
  const partitions = held?.length === PARTITIONS ? null : held
  for (;;) {
    // Of one account very many may be due: once met, it is passed over.
    const timers = yield* views.nextTimers(TIMERS_MAX, [...found.keys()], partitions)
    for (const { account, wakeAt } of timers) if (!found.has(account)) found.set(account, wakeAt)
    const active = accounts.wakeTimes(now)
    const isNextFound = [...found].some(([account, wakeAt]) => wakeAt > now && !active.has(account))
    if (timers.length < TIMERS_MAX || isNextFound) return found
  }
})

/**
 * Forgets keys now and then, a few at a time, so that no timer waits for all of them; answers when it wants to again.
 */
const makeForgetKeys = (views: ViewsShape, runningTime: RunningTimeShape, forgets: () => boolean) => {
  let next: Millis = 0
  return Effect.fnUntraced(function* (now: Millis) {
    // A clock that was set back must not put it off.
    if (next > now && next <= now + FORGET_KEYS_MILLIS) return next
    const time = yield* runningTime.keep
    const count = forgets() ? yield* views.expireKeys(time - RETENTION_MILLIS, FORGET_KEYS_MAX) : 0
    next = count < FORGET_KEYS_MAX ? now + FORGET_KEYS_MILLIS : now
    return next
  })
}
