/**
 * Activations load an account's actor into memory. Each account has at most one activation at a time, shared by all its
 * waiting requests, and none while an actor is active: with two actors in one process, reads of one would miss commands
 * answered by the other.
 *
 * The data that an activation has read may be outdated when it ends, because another process may have owned the
 * account's partition in between. Then its actor closes at once, and the waiting requests try again.
 */
import { Deferred, Effect, Schedule, type Scope, Semaphore } from "effect"
import { Actor, type ActorServices, type Head } from "./Actor.ts"
import * as Checksum from "../log/Checksum.ts"
import type { AccountId } from "../log/Document.ts"
import type { GroupCommit } from "./GroupCommit.ts"
import type { StorageFailure } from "../log/Journal.ts"
import { type Partition, partitionOf } from "../process/Placement.ts"
import type { SubscriptionRow, TimerRow } from "../views/Projection.ts"
import { Projector } from "./Projector.ts"
import { changedRecord, tryRead, type JournalCorrupt } from "../log/Record.ts"
import { RunningTime } from "./RunningTime.ts"
import { TIMERS_PAGE } from "./Timers.ts"
import { type ViewRow, Views } from "../views/Views.ts"
import { BoundedQueue, type MailboxFull } from "../process/BoundedQueue.ts"

/** Used keys read at a time, and the pause after a failure. */
const KEYS_PAGE = 2000
const GATHER_RETRY_MILLIS = 1000

/** Returns the rows if they match their checksums. Throws `JournalCorrupt`. */
export const intactTimers = (rows: ReadonlyArray<TimerRow>): ReadonlyArray<TimerRow> => {
  const other = rows.find((row) => row.checksum !== Checksum.ofTimer(row))
  if (other !== undefined) throw changedRecord(other.account, other.version, `timer ${other.id}`)
  return rows
}

const intactSubscriptions = (rows: ReadonlyArray<SubscriptionRow>): void => {
  const other = rows.find((row) => row.checksum !== Checksum.ofSubscription(row))
  if (other !== undefined) throw changedRecord(other.account, other.version, `who gets events, ${other.destination}`)
}

interface Activation {
  readonly outcome: Deferred.Deferred<Actor, StorageFailure | JournalCorrupt>
  readonly waiting: BoundedQueue
  /** Whether another process may have changed the account since it was read. */
  isOutdated: boolean
}

export interface Activations {
  /** Returns the account's actor, and activates it first if there is none. The actor may have closed again. */
  readonly activate: (account: AccountId) => Effect.Effect<Actor, StorageFailure | JournalCorrupt | MailboxFull>
  /** Waits until no activation in a partition is running. */
  readonly ended: (partition: Partition) => Effect.Effect<void>
  /** Makes the actors of running activations in a partition close when they are ready. */
  readonly outdate: (partition: Partition) => void
  /** Notes that an actor is closing. The account's next actor waits until all its records are decided. */
  readonly ending: (actor: Actor) => void
}

export const makeActivations = Effect.fnUntraced(function* (
  active: Map<AccountId, Actor>,
  services: ActorServices,
  commit: GroupCommit
): Effect.fn.Return<Activations, never, Projector | RunningTime | Scope.Scope | Views> {
  const projector = yield* Projector
  const scope = yield* Effect.scope
  const start = yield* makeStart(services)
  const gatherKeys = yield* makeGatherKeys
  const activating = new Map<AccountId, Activation>()
  /** Accounts whose last actor has closed with records that may still become durable. */
  const undecided = new Set<AccountId>()
  const wait = ({ outcome, waiting }: Activation) => waiting.during(Deferred.await(outcome))

  const activated = Effect.fnUntraced(function* (account: AccountId, activation: Activation) {
    if (undecided.has(account)) {
      yield* commit.drained
      undecided.delete(account)
    }
    const head = yield* projector.catchUp(account)
    const actor = yield* start(account, head)
    if (activation.isOutdated) {
      actor.close("fenced")
      return actor
    }
    active.set(account, actor)
    if (head.version === 0) actor.usedKeys.complete()
    else yield* Effect.forkIn(gatherKeys(actor), scope)
    return actor
  })

  const of = (partition: Partition) =>
    [...activating].filter(([account]) => partitionOf(account) === partition).map(([, activation]) => activation)

  const activate: Activations["activate"] = (account) =>
    // Uninterruptible from announcing an activation to starting it: other requests wait for it.
    Effect.uninterruptibleMask((restore) => {
      const current = active.get(account)
      if (current?.closed === null) return Effect.succeed(current)
      const running = activating.get(account)
      if (running !== undefined) return restore(wait(running))
      const activation: Activation = {
        outcome: Deferred.makeUnsafe(),
        waiting: new BoundedQueue(services.mailboxCapacity, services.clock),
        isOutdated: false
      }
      activating.set(account, activation)
      const shared = Effect.onExit(activated(account, activation), (exit) =>
        Effect.sync(() => {
          activating.delete(account)
          Deferred.doneUnsafe(activation.outcome, exit)
        })
      )
      // In a fiber of its own: an interrupted caller does not end the shared activation.
      return Effect.andThen(Effect.forkIn(shared, scope), restore(wait(activation)))
    })
  return {
    activate,
    ended: (partition) =>
      Effect.forEach(of(partition), ({ outcome }) => Effect.exit(Deferred.await(outcome)), { discard: true }),
    outdate: (partition) => {
      for (const activation of of(partition)) activation.isOutdated = true
    },
    ending: ({ account, durable, version }) => {
      if (version > durable) undecided.add(account)
    }
  }
})

const makeStart = Effect.fnUntraced(function* (services: ActorServices) {
  const views = yield* Views
  return Effect.fnUntraced(function* (account: AccountId, head: Head) {
    const isNew = head.version === 0
    const number = services.numbers.of(account)
    const [subscriptions, timers] = yield* Effect.all(
      [
        isNew ? Effect.succeed([]) : views.subscriptions(account),
        isNew ? Effect.succeed([]) : views.timers(account, TIMERS_PAGE),
        services.runningTime.ready,
        // The views have the number before the account makes an id that carries it.
        number === null ? Effect.void : views.keepNumber(account, number)
      ],
      { concurrency: 4 }
    )
    yield* tryRead(() => {
      intactTimers(timers)
      intactSubscriptions(subscriptions)
    })
    return new Actor(account, { head, subscriptions, timers }, services)
  })
})

/**
 * Adds the keys used before the activation to an actor's filter, in the background. Until the filter is complete, each
 * new key costs the account a look-up. Pages of all accounts are read one at a time, to leave the database to requests.
 */
const makeGatherKeys = Effect.gen(function* () {
  const views = yield* Views
  const runningTime = yield* RunningTime
  const turn = yield* Semaphore.make(1)
  const pageAfter = (actor: Actor, after: string) =>
    turn
      .withPermits(1)(views.scan(actor.account, "keys", after, KEYS_PAGE))
      .pipe(
        // Without a log line: requests meet the same failure of the storage, and log it.
        Effect.retry({ schedule: Schedule.spaced(GATHER_RETRY_MILLIS), while: () => actor.closed === null })
      )
  const gather = Effect.fnUntraced(function* (actor: Actor) {
    // A row may be corrupt, and only the key's record has its true time of use, so the newest possible time is assumed.
    const now = runningTime.now()
    for (let after = ""; actor.closed === null;) {
      const page: ReadonlyArray<ViewRow> = yield* pageAfter(actor, after)
      for (const { row } of page) if ("key" in row) actor.usedKeys.add(row.key, now)
      if (page.length < KEYS_PAGE) return actor.usedKeys.complete()
      after = page.at(-1)!.id
    }
  })
  return (actor: Actor): Effect.Effect<void> => Effect.ignore(gather(actor))
})
