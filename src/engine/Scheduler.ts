/**
 * The scheduler: one fiber that sleeps until the next timer is due, and wakes the timer's account, which fires it.
 *
 * Correctness does not depend on when it runs: an account fires its due timers before each command and read. The
 * scheduler serves accounts without requests. For accounts in memory, the actor knows the next timer; for all others,
 * the views. A timer fires at least once after its time, however long the process was down, and takes effect exactly
 * once: the command that runs its handler clears it in the same record.
 *
 * With several processes, each wakes the accounts of its own partitions. The previous owner of a partition may have
 * left its views behind the log, without some timers and deliveries: they are caught up after the partition has moved.
 * Requests do not wait for that, because an account is caught up before it is used. Then the followers of timers get
 * those that are set already (`CommitFeed.ts`).
 */
import { Clock, Effect, Latch, Layer, Schedule } from "effect"
import { Accounts } from "./Accounts.ts"
import { WakeUp } from "./process/WakeUp.ts"
import { CommitFeed } from "./views/CommitFeed.ts"
import type { AccountId, Millis } from "./log/Document.ts"
import { Journal, type StorageFailure } from "./log/Journal.ts"
import * as Loop from "./process/Loop.ts"
import { type Partition, partitionOf, PARTITIONS, Placement } from "./process/Placement.ts"
import { Projector } from "./actor/Projector.ts"
import { RETRY_MILLIS } from "./actor/Timers.ts"
import { Views, type ViewsShape } from "./views/Views.ts"
import { logOf } from "./process/Log.ts"

const log = logOf("engine")

/** Timers of accounts that are not in memory, read from the views at a time. */
const TIMERS_MAX = 256
/** Accounts woken at the same time, at most. */
const WAKING_MAX = 64
/** Partitions that arrive within this time are caught up together, in milliseconds. */
const ARRIVING_MILLIS = 50

/** Runs the scheduler as long as the layer lives. */
export const layer: Layer.Layer<
  never,
  never,
  Accounts | WakeUp | Journal | CommitFeed | Placement | Projector | Views
> = Layer.effectDiscard(
  Effect.gen(function* () {
    const placement = yield* Placement
    const catchUp = yield* makeCatchUp
    const round = yield* makeRound
    if (placement.held() !== null) yield* catchUpArrivals(catchUp)
    const first = placement.held() === null ? catchUp(() => true) : Effect.void
    yield* Effect.forkScoped(Loop.vital("firing of timers", Effect.andThen(first, Effect.forever(round))))
  })
)

type CatchUp = (isWanted: (account: AccountId) => boolean) => Effect.Effect<void>

/** Catches up partitions after they have arrived; partitions that arrive in quick succession, together. */
const catchUpArrivals = Effect.fnUntraced(function* (catchUp: CatchUp) {
  const placement = yield* Placement
  const wakeUp = yield* WakeUp
  const arrived = new Set<Partition>()
  const some = Latch.makeUnsafe(false)
  yield* placement.listen({
    onServed: (partition) => {
      arrived.add(partition)
      some.openUnsafe()
      wakeUp.set(0)
    }
  })
  const step = Effect.gen(function* () {
    yield* some.await
    yield* Effect.sleep(ARRIVING_MILLIS)
    const wanted = new Set(arrived)
    arrived.clear()
    some.closeUnsafe()
    yield* catchUp((account) => wanted.has(partitionOf(account)) && placement.isHere(account))
    wakeUp.set(0)
  })
  yield* Effect.forkScoped(Loop.forever("bringing up to date of partitions", step))
})

/** Makes a catch-up of the views: after a crash they may lack timers and deliveries of the journal. */
const makeCatchUp = Effect.gen(function* () {
  const journal = yield* Journal
  const feed = yield* CommitFeed
  const projector = yield* Projector
  const views = yield* Views
  const catchUp = ([account, version]: readonly [AccountId, number]) =>
    Effect.catchTag(projector.catchUp(account, version), "JournalCorrupt", (corrupt) =>
      log.error(`The views of account ${account} could not be brought up to date`, corrupt.message, { cause: "views" })
    )
  const { held } = yield* Placement
  /** Passes on the timers that the views have, and that have followers. */
  const passOn = (isWanted: (account: AccountId) => boolean) =>
    Effect.forEach(
      feed.followers,
      Effect.fnUntraced(function* ({ aheadMillis, name, onSet }) {
        const before = (yield* Clock.currentTimeMillis) + aheadMillis
        for (const { account, id } of yield* views.timersNamed(name, held(), before)) {
          if (isWanted(account)) onSet({ account, id, isNew: false })
        }
      }),
      { discard: true }
    )
  return (isWanted: (account: AccountId) => boolean): Effect.Effect<void> =>
    Effect.flatMap(views.behind, (accounts) => journal.versions(accounts.filter(isWanted))).pipe(
      Effect.flatMap((versions) =>
        // The partition may have left again.
        Effect.forEach(versions, (each) => (isWanted(each[0]) ? catchUp(each) : Effect.void), { discard: true })
      ),
      Effect.andThen(passOn(isWanted)),
      Effect.tapError((failure) => log.error("The views could not be brought up to date", failure.message)),
      Effect.retry({ schedule: Schedule.spaced(RETRY_MILLIS) }),
      Effect.ignore,
      Effect.andThen(Effect.sync(() => feed.wakeUp.set(0)))
    )
})

/** Wakes the accounts with due timers, and sleeps if there are none. */
const makeRound = Effect.gen(function* () {
  const accounts = yield* Accounts
  const wakeUp = yield* WakeUp
  const placement = yield* Placement
  const projector = yield* Projector
  const views = yield* Views
  /** Accounts that could not be woken, and the time of the next try. */
  const resting = new Map<AccountId, Millis>()

  const wake = (account: AccountId) =>
    Effect.catchCause(accounts.wake(account), (cause) =>
      Effect.gen(function* () {
        if (!placement.isHere(account)) return
        resting.set(account, (yield* Clock.currentTimeMillis) + RETRY_MILLIS)
        yield* log.error(`The timers of account ${account} could not fire`, cause, { cause: "timers" })
      })
    )

  return Effect.gen(function* () {
    yield* projector.drained
    const now = yield* Clock.currentTimeMillis
    // A clock that was set back must not keep an account waiting.
    for (const [account, until] of resting) {
      if (until <= now || until > now + RETRY_MILLIS || !placement.isHere(account)) resting.delete(account)
    }
    // First the views: an account that comes into memory in between is in both, and its actor's time is newer.
    const found = yield* readWakeTimes(accounts, views, now, placement.held())
    const wakeTimes = new Map([...found, ...accounts.wakeTimes(now), ...resting])
    const due = [...wakeTimes].filter(([, at]) => at <= now).map(([account]) => account)
    yield* Effect.forEach(due, wake, { concurrency: WAKING_MAX, discard: true })
    if (due.length === 0) yield* wakeUp.sleepUntil(Math.min(...wakeTimes.values()))
  }).pipe(
    Effect.catch((failure) =>
      Effect.andThen(log.error("The scheduler could not read the views", failure.message), Effect.sleep(RETRY_MILLIS))
    )
  )
})

/** Reads wake times from the views: of accounts with due timers, and of the next account that is not in memory. */
const readWakeTimes = Effect.fnUntraced(function* (
  accounts: Accounts["Service"],
  views: ViewsShape,
  now: Millis,
  held: ReadonlyArray<Partition> | null
): Effect.fn.Return<ReadonlyMap<AccountId, Millis>, StorageFailure> {
  const found = new Map<AccountId, Millis>()
  if (held?.length === 0) return found
  const partitions = held?.length === PARTITIONS ? null : held
  for (;;) {
    // An account may have very many due timers: after its first, it is skipped.
    const timers = yield* views.nextTimers(TIMERS_MAX, [...found.keys()], partitions)
    for (const { account, wakeAt } of timers) if (!found.has(account)) found.set(account, wakeAt)
    const active = accounts.wakeTimes(now)
    const isNextFound = [...found].some(([account, wakeAt]) => wakeAt > now && !active.has(account))
    if (timers.length < TIMERS_MAX || isNextFound) return found
  }
})
