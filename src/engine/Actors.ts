/**
 * The actors of this process: activates an account's actor when it is needed, retires it when it is idle, and starts it
 * anew from the log when it was fenced or a flush failed.
 */
import type { Scope } from "effect"
import type { Cause } from "effect"
import { Clock, Deferred, Effect, Schedule, Schema, Semaphore } from "effect"
import type { Head, ActorServices } from "./Actor.ts"
import { Actor, Closed, storageFailed } from "./Actor.ts"
import { AccountNumbers } from "./AccountNumbers.ts"
import { Alarm } from "./Alarm.ts"
import * as Batcher from "./Batcher.ts"
import * as Checksum from "./Checksum.ts"
import { Outbox } from "./Outbox.ts"
import type { AccountId } from "./Document.ts"
import type { EventVersionsShape } from "./Events.ts"
import { EventVersions } from "./Events.ts"
import { Formats } from "./Formats.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { Journal, StorageFailure } from "./Journal.ts"
import { FilterRoom } from "./KeyFilter.ts"
import * as Loop from "./Loop.ts"
import { CACHE_BYTES_MAX, KEY_FILTERS_BYTES_MAX, makeShares } from "./Memory.ts"
import type { SubscriptionRow, TimerRow } from "./Projection.ts"
import { Projector } from "./Projector.ts"
import { changed, checked, JournalCorrupt } from "./Record.ts"
import { RunningTime } from "./RunningTime.ts"
import { TimerHandler, TIMERS_PAGE } from "./Timers.ts"
import type { Address, ViewRow } from "./Views.ts"
import { Views } from "./Views.ts"
import { MailboxFull, WaitingRoom } from "./WaitingRoom.ts"

/**
 * The log cannot be reached, or the account has more work than it may queue: what was asked for may yet have been done.
 * Or the account is another process': then nothing was done here.
 */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", {
  reason: Schema.String,
  isElsewhere: Schema.Boolean.pipe(Schema.withConstructorDefault(Effect.succeed(false))),
  /** The account that is another process'. */
  account: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return this.reason
  }

  /** Another process serves the account, or none at the moment. */
  static elsewhere(account: AccountId): Unavailable {
    return new Unavailable({ reason: "The account is served elsewhere.", isElsewhere: true, account })
  }
}

/** Bounds of the engine's memory and queues. */
export interface Options {
  /** Commands and reads of one account that may wait for an answer; more are refused with `Unavailable`. */
  readonly mailboxCapacity: number
  /** Documents, keys and timers in memory over all accounts that are in use (see `Memory.ts`), in bytes. */
  readonly cacheBytes: number
  /** An account stays in memory for so long after its last command, in milliseconds. */
  readonly idleMillis: number
}

export const defaults: Options = { mailboxCapacity: 4096, cacheBytes: CACHE_BYTES_MAX, idleMillis: 300_000 }

/** Times that a command is tried again on a fresh actor after a fence. */
const RETRIES = 16
/** Pause between attempts to restart an account whose flush failed. */
const RESTART_MILLIS = 500
/** Used keys that are read at once, and the pause after a failure. */
const KEYS_PAGE = 2000
const GATHER_RETRY_MILLIS = 1000
/** The log is asked this often for records of active accounts that this process has not heard of. */
const WATCH_MILLIS = 30_000
/** A shutdown waits for the storage for so long at most. */
const DRAIN_MILLIS = 5000

type EngineFailure = Closed | MailboxFull | StorageFailure | JournalCorrupt

/**
 * Uses an account's actor, activating it if need be; once more on a fresh one if it was fenced or retired meanwhile.
 */
export type UseActor = <A, E>(
  account: AccountId,
  use: (actor: Actor) => Effect.Effect<A, E | Closed | MailboxFull | StorageFailure>
) => Effect.Effect<A, Exclude<E, EngineFailure> | Unavailable>

export interface Actors {
  readonly use: UseActor
  /** The account's actor, if it is active here and now. */
  readonly active: (account: AccountId) => Actor | undefined
  /** The active accounts' actors. */
  readonly all: () => Iterable<Actor>
}

type Needs =
  | AccountNumbers
  | Alarm
  | Outbox
  | EventVersions
  | Formats
  | Journal
  | Projector
  | RunningTime
  | Scope.Scope
  | TimerHandler
  | Views

export const make = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Actors, never, Needs> {
  const projector = yield* Projector
  const alarm = yield* Alarm
  const outbox = yield* Outbox
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const scope = yield* Effect.scope
  const active = new Map<AccountId, Actor>()
  const commit = yield* GroupCommit.make({
    room: projector.room,
    onDurable: ({ actor, sealed: { bytes, record } }) => {
      projector.offer({ actor, record, bytes: bytes.length, leased: outbox.publish(record) })
      for (const { dueAt } of record.timers) if (dueAt !== null) alarm.set(dueAt - record.clock)
      if (record.advanced > 0) alarm.set(0)
    },
    onClosed: (actor) => startAnew(actor)
  })
  const startAnew = (actor: Actor) => {
    const { account } = actor
    if (active.get(account) === actor) active.delete(account)
    runFork(Effect.forkIn(restart(account), scope))
  }
  const lose: ActorServices["lose"] = (actor, reason) => {
    startAnew(actor)
    actor.close(reason)
  }
  const versions = yield* EventVersions
  const eventVersion: ActorServices["eventVersion"] = (account) => eventVersionOf(versions, active, use, account)
  const services = { ...(yield* makeServices(options, active, commit)), lose, eventVersion, shownIn: versions.shownIn }
  const activate = yield* makeActivation(active, services)
  /**
   * Starts an account anew even if nobody asks for it: the failed flush may have left timers and deliveries in the log.
   */
  const restart = (account: AccountId) =>
    activate(account).pipe(
      // The failed flush has been logged; what is damaged stays so.
      Effect.retry({ schedule: Schedule.spaced(RESTART_MILLIS), while: ({ _tag }) => _tag !== "JournalCorrupt" }),
      Effect.tapErrorTag("JournalCorrupt", logNotRestarted),
      Effect.andThen(Effect.sync(ringAll)),
      Effect.ignore
    )
  const ringAll = () => {
    for (const { set } of [alarm, outbox.alarm]) set(0)
  }
  yield* retireIdle(options, active)
  yield* watchLog(active, lose)
  yield* Effect.addFinalizer(() =>
    Effect.ignore(Effect.timeoutOption(Effect.andThen(commit.drained, projector.drained), DRAIN_MILLIS))
  )

  const attempt = <A, E>(
    account: AccountId,
    f: (actor: Actor) => Effect.Effect<A, E | EngineFailure>,
    retries: number
  ): Effect.Effect<A, E | Unavailable> => {
    const actor = active.get(account)
    const used = actor?.closed === null ? f(actor) : Effect.flatMap(activate(account), f)
    return Effect.catchCause(used, (cause): Effect.Effect<A, E | Unavailable> => {
      const failure = cause.reasons.find((reason) => reason._tag === "Fail")?.error
      if (failure instanceof Closed && failure.reason !== "failed" && retries > 0) {
        return Effect.suspend(() => attempt(account, f, retries - 1))
      }
      return unavailable(cause, failure)
    })
  }
  // Suspended: what `f` looks at must be what is there when it runs, not when the effect was made.
  const use: UseActor = (account, f) => Effect.suspend(() => attempt(account, f as never, RETRIES)) as never
  return {
    use,
    active: (account) => {
      const actor = active.get(account)
      return actor?.closed === null ? actor : undefined
    },
    all: () => active.values()
  }
})

/** Asks the document that names the version: at once if it is in memory, and through its account's actor otherwise. */
const eventVersionOf = (
  versions: EventVersionsShape,
  active: ReadonlyMap<AccountId, Actor>,
  use: UseActor,
  account: AccountId
): string | Effect.Effect<string, StorageFailure> => {
  const place = versions.namedBy(account)
  if (place === null) return versions.versionOf(undefined)
  const actor = active.get(place.account)
  const document = actor?.closed === null ? actor.peek(place.id) : undefined
  if (document !== undefined) return versions.versionOf(document)
  return Effect.mapBoth(
    use(place.account, (actor) => actor.read(place.id)),
    { onFailure: (cause) => new StorageFailure({ cause }), onSuccess: versions.versionOf }
  )
}

const logNotRestarted = ({ account, message }: JournalCorrupt) =>
  Effect.logError(`Account ${account} could not be restarted`, message)

/** Tells a caller of a failure of the engine. Everything else is the caller's own. */
const unavailable = <E>(
  cause: Cause.Cause<E | EngineFailure>,
  failure: unknown
): Effect.Effect<never, E | Unavailable> => {
  if (failure instanceof MailboxFull) return Effect.fail(new Unavailable({ reason: "Too many requests wait." }))
  // The log cannot be trusted: nothing may be built on it.
  if (failure instanceof JournalCorrupt) return Effect.die(failure)
  if (failure instanceof Closed || failure instanceof StorageFailure || storageFailed(cause)) {
    return Effect.fail(new Unavailable({ reason: "The database does not answer." }))
  }
  return Effect.failCause(cause as Cause.Cause<E>)
}

const makeServices = Effect.fnUntraced(function* (
  options: Options,
  active: ReadonlyMap<AccountId, Actor>,
  commit: GroupCommit.GroupCommit
) {
  const formats = yield* Formats
  const views = yield* Views
  const documents = yield* Batcher.make((addresses: ReadonlyArray<Address>) => views.documents(addresses))
  const services: Omit<ActorServices, "lose" | "eventVersion" | "shownIn"> = {
    clock: yield* Clock.Clock,
    context: yield* Effect.context<never>(),
    scope: yield* Effect.scope,
    isStorageHanging: (yield* Journal).isHanging,
    numbers: yield* AccountNumbers,
    mailboxCapacity: options.mailboxCapacity,
    cacheShare: makeShares(options.cacheBytes, active, (actor) => actor.weight),
    runningTime: yield* RunningTime,
    filterRoom: new FilterRoom(KEY_FILTERS_BYTES_MAX),
    loadDocument: (account, id) => Effect.map(documents({ account, id }), (row) => row && formats.document(row)),
    loadTimers: (account, limit) => Effect.map(views.timers(account, limit), intactTimers),
    handleTimer: yield* TimerHandler,
    reach: (yield* Projector).reach,
    append: commit.append
  }
  return services
})

/** Gives the rows, if they are as they were written. Throws `JournalCorrupt`. */
const intactTimers = (rows: ReadonlyArray<TimerRow>): ReadonlyArray<TimerRow> => {
  const other = rows.find((row) => row.checksum !== Checksum.ofTimer(row))
  if (other !== undefined) throw changed(other.account, other.version, `timer ${other.id}`)
  return rows
}

const intactSubscriptions = (rows: ReadonlyArray<SubscriptionRow>): void => {
  const other = rows.find((row) => row.checksum !== Checksum.ofSubscription(row))
  if (other !== undefined) throw changed(other.account, other.version, `who gets events, ${other.destination}`)
}

interface Activation {
  readonly outcome: Deferred.Deferred<Actor, StorageFailure | JournalCorrupt>
  readonly waiting: WaitingRoom
}

/**
 * Activations: one at a time per account, shared by all who wait for it, and none while an actor is active. Of two
 * actors in one process, one would serve reads that do not show what the other has answered.
 */
const makeActivation = Effect.fnUntraced(function* (active: Map<AccountId, Actor>, services: ActorServices) {
  const views = yield* Views
  const projector = yield* Projector
  const scope = yield* Effect.scope
  const gatherKeys = yield* makeGatherKeys
  const activating = new Map<AccountId, Activation>()

  const start = Effect.fnUntraced(function* (account: AccountId, head: Head) {
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
    yield* checked(() => {
      intactTimers(timers)
      intactSubscriptions(subscriptions)
    })
    const actor = new Actor(account, { head, subscriptions, timers }, services)
    active.set(account, actor)
    if (isNew) actor.usedKeys.complete()
    else yield* Effect.forkIn(gatherKeys(actor), scope)
    return actor
  })

  const wait = ({ outcome, waiting }: Activation) => waiting.during(Deferred.await(outcome))

  return (account: AccountId): Effect.Effect<Actor, StorageFailure | JournalCorrupt | MailboxFull> =>
    // Nothing may come between announcing an activation and starting it: others wait for it.
    Effect.uninterruptibleMask((restore) => {
      const current = active.get(account)
      if (current?.closed === null) return Effect.succeed(current)
      const running = activating.get(account)
      if (running !== undefined) return restore(wait(running))
      const activation: Activation = {
        outcome: Deferred.makeUnsafe(),
        waiting: new WaitingRoom(services.mailboxCapacity)
      }
      activating.set(account, activation)
      const activated = Effect.onExit(
        Effect.flatMap(projector.catchUp(account), (head) => start(account, head)),
        (exit) =>
          Effect.sync(() => {
            activating.delete(account)
            Deferred.doneUnsafe(activation.outcome, exit)
          })
      )
      // Callers come and go; the activation is everybody's.
      return Effect.andThen(Effect.forkIn(activated, scope), restore(wait(activation)))
    })
})

/**
 * Tells an actor's filter which keys were used before it was there. Until it knows them all, each new key costs the
 * account a look-up: nobody waits for this. Pages of all accounts are read one at a time, so that what somebody waits
 * for finds the database free.
 */
const makeGatherKeys = Effect.gen(function* () {
  const views = yield* Views
  const runningTime = yield* RunningTime
  const turn = yield* Semaphore.make(1)
  const pageAfter = (actor: Actor, after: string) =>
    turn
      .withPermits(1)(views.scan(actor.account, "keys", after, KEYS_PAGE))
      .pipe(
        // Whoever asks for something meanwhile finds the storage failing as well, and it is logged then.
        Effect.retry({ schedule: Schedule.spaced(GATHER_RETRY_MILLIS), while: () => actor.closed === null })
      )
  const gather = Effect.fnUntraced(function* (actor: Actor) {
    // A row may have been changed, and the key's record alone says when it was used: it may have been just now.
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

const retireIdle = (options: Options, active: Map<AccountId, Actor>) => {
  const retire = Effect.gen(function* () {
    yield* Effect.sleep(options.idleMillis)
    const since = (yield* Clock.currentTimeMillis) - options.idleMillis
    for (const [account, actor] of active) {
      if (!actor.idle || actor.lastUsed > since) continue
      active.delete(account)
      actor.close("passivated")
    }
  })
  return Effect.forkScoped(Loop.forever("retirement of idle accounts", retire))
}

/**
 * Asks the log now and then for records of active accounts that this process has not heard of, and starts those
 * accounts anew. An actor notices such a record with its next write at the latest; until then it would serve what it
 * knows, a key that was revoked through another process, say, and nobody would fire the timers of a record that was
 * given up and got into the log after all.
 */
const watchLog = Effect.fnUntraced(function* (
  active: ReadonlyMap<AccountId, Actor>,
  lose: ActorServices["lose"]
): Effect.fn.Return<void, never, Journal | Scope.Scope> {
  const journal = yield* Journal
  const look = Effect.gen(function* () {
    yield* Effect.sleep(WATCH_MILLIS)
    if (active.size === 0) return
    const versions = yield* journal.versions([...active.keys()])
    for (const actor of active.values()) if ((versions.get(actor.account) ?? 0) > actor.version) lose(actor, "fenced")
  })
  yield* Effect.forkScoped(Loop.forever("watch over the log", Effect.ignore(look)))
})
