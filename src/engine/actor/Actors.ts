/** The actors of this process: activated on first use, retired when idle, restarted after a fence or failure. */
import type { Scope } from "effect"
import { type Cause, Clock, Effect, Schedule, Schema } from "effect"
import { type Activations, intactTimers, makeActivations } from "./Activations.ts"
import { type Actor, type ActorServices, Closed, type ClosedReason, storageFailed } from "./Actor.ts"
import { AccountNumbers } from "../log/AccountNumbers.ts"
import { WakeUp } from "../process/WakeUp.ts"
import * as Batcher from "../process/Batcher.ts"
import { CommitFeed } from "../views/CommitFeed.ts"
import type { AccountId, Document, Tombstone } from "../log/Document.ts"
import { EventVersions, type EventVersionsShape } from "../log/Events.ts"
import { DocumentFormats } from "../views/DocumentFormats.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { Journal, StorageFailure } from "../log/Journal.ts"
import { FilterRoom } from "./KeyFilter.ts"
import * as Loop from "../process/Loop.ts"
import * as Metrics from "../process/Metrics.ts"
import { CACHE_BYTES_MAX, KEY_FILTERS_BYTES_MAX, makeShares, MEMORY, MEMORY_LIMIT } from "../process/Memory.ts"
import {
  type Partition,
  type PartitionListener,
  PARTITIONS,
  Placement,
  type PlacementShape
} from "../process/Placement.ts"
import { Projector, type ProjectorShape } from "./Projector.ts"
import { JournalCorrupt } from "../log/Record.ts"
import * as Replica from "./Replica.ts"
import { RunningTime } from "./RunningTime.ts"
import { TimerHandler } from "./Timers.ts"
import { type Address, Views } from "../views/Views.ts"
import { MailboxFull } from "../process/BoundedQueue.ts"
import { logOf } from "../process/Log.ts"

const log = logOf("engine")

/**
 * The log cannot be reached, or the account's queue is full; the command may have happened all the same. Or another
 * process serves the account (`isElsewhere`): then nothing has happened here, except a command that its idempotency key
 * finds.
 */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", {
  reason: Schema.String,
  isElsewhere: Schema.Boolean.pipe(Schema.withConstructorDefault(Effect.succeed(false))),
  /** The account that another process serves. */
  account: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return this.reason
  }

  /** Another process serves the account, or no process does. */
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
  /** How long an account stays in memory after its last command, in milliseconds. */
  readonly idleMillis: number
  /**
   * The account that every process reads from a replica. Requests of all accounts read its documents, so a part of the
   * cache is reserved for it. Its owner does the work that is done once for all.
   */
  readonly replicated: AccountId | null
}

export const defaults: Options = {
  mailboxCapacity: 4096,
  cacheBytes: CACHE_BYTES_MAX,
  idleMillis: 300_000,
  replicated: null
}

/** Part of the cache that the replicated account may fill, however many other accounts are in memory. */
const RESERVED_PART = 1 / 4
/** Retries of a command on a fresh actor after a fence. */
const RETRIES = 16
/** Pause between attempts to restart an account whose flush failed. */
const RESTART_MILLIS = 500
/** Interval at which the log is checked for records of active accounts that this process has not seen. */
const WATCH_MILLIS = 30_000
/** How long a shutdown, or the release of a partition, waits for the storage. */
const DRAIN_MILLIS = 5000
/** Pause between two checks whether an account is at rest. */
const REST_MILLIS = 5

type EngineFailure = Closed | MailboxFull | StorageFailure | JournalCorrupt

/**
 * Uses an account's actor, which is activated if necessary. If the actor was fenced or retired before the use ended, it
 * is used again on a fresh one; also if the outcome is unknown, where `mayRepeat` allows it.
 */
export type UseActor = <A, E>(
  account: AccountId,
  use: (actor: Actor) => Effect.Effect<A, E | Closed | MailboxFull | StorageFailure>,
  mayRepeat?: boolean
) => Effect.Effect<A, Exclude<E, EngineFailure> | Unavailable>

export interface Actors {
  readonly use: UseActor
  /** Uses an actor to read: the replica's, brought up to date, for a replicated account that another process serves. */
  readonly consult: UseActor
  /** Reads the newest document; from the replica, one that was the newest within the last two seconds. */
  readonly read: (account: AccountId, id: string) => Effect.Effect<Document | Tombstone | undefined, Unavailable>
  /** Returns the result of `read` if the document is in memory. */
  readonly peek: (account: AccountId, id: string) => Document | Tombstone | undefined
  /** Returns the account's actor if it is active in this process. */
  readonly active: (account: AccountId) => Actor | undefined
  readonly all: () => ReadonlyArray<Actor>
}

export type Needs =
  | AccountNumbers
  | WakeUp
  | CommitFeed
  | EventVersions
  | DocumentFormats
  | Journal
  | Placement
  | Projector
  | RunningTime
  | TimerHandler
  | Views

export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Actors, never, Needs | Scope.Scope> {
  const placement = yield* Placement
  const projector = yield* Projector
  const wakeUp = yield* WakeUp
  const feed = yield* CommitFeed
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const scope = yield* Effect.scope
  const active = new Map<AccountId, Actor>()
  const commit = yield* GroupCommit.make({
    room: projector.room,
    onDurable: ({ actor, sealed: { bytes, record } }) => {
      // Deliveries of a partition that is being released belong to its next owner.
      const leased = placement.isHere(actor.account) && feed.publish(record)
      projector.offer({ actor, record, bytes: bytes.length, since: performance.now(), leased })
      for (const { dueAt } of record.timers) if (dueAt !== null) wakeUp.set(dueAt - record.clock)
      if (record.advanced > 0) wakeUp.set(0)
      if (record.account === options.replicated) placement.noteWritten(record.account)
      // A new owner may have read the log just before this record and answer without it. So the record is acknowledged
      // only while the account is owned here.
      return placement.isOwned(actor.account)
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
  const eventVersion: ActorServices["eventVersion"] = (account) => eventVersionOf(versions, actors, account)
  const services = { ...(yield* makeServices(options, active, commit)), lose, eventVersion, shownIn: versions.shownIn }
  const activations = yield* makeActivations(active, services, commit)
  /** Restarts an account without a request: the failed flush may have left timers and deliveries in the log. */
  const restart = (account: AccountId) =>
    Effect.suspend(() => (placement.isHere(account) ? activations.activate(account) : Effect.void)).pipe(
      // The failed flush has been logged; a corrupt account stays corrupt.
      Effect.retry({ schedule: Schedule.spaced(RESTART_MILLIS), while: ({ _tag }) => _tag !== "JournalCorrupt" }),
      Effect.tapErrorTag("JournalCorrupt", logNotRestarted),
      Effect.andThen(Effect.sync(ringAll)),
      Effect.ignore
    )
  const ringAll = () => {
    for (const { set } of [wakeUp, feed.wakeUp]) set(0)
  }
  yield* observeActors(active, options, services.filterRoom)
  yield* retireIdle(options, active)
  yield* watchLog(active, lose)
  yield* Effect.addFinalizer(() =>
    Effect.ignore(Effect.timeoutOption(Effect.andThen(commit.drained, projector.drained), DRAIN_MILLIS))
  )
  yield* placement.listen(makeListener(active, activations, projector, ringAll))

  const here: Here = {
    use: makeUse((account) => active.get(account), activations.activate, placement.isHere),
    active: (account) => {
      const actor = active.get(account)
      return actor?.closed === null && placement.isHere(account) ? actor : undefined
    },
    all: () => [...active.values()].filter(({ account }) => placement.isHere(account))
  }
  const actors: Actors = { ...here, ...(yield* makeReading(here, options.replicated, services)) }
  return actors
})

type Here = Pick<Actors, "use" | "active" | "all">
type Reading = Pick<Actors, "consult" | "read" | "peek">
const NOT_THERE = Effect.succeed(undefined)

/** Reads accounts that are served here, and the replicated account in every process. */
const makeReading = Effect.fnUntraced(function* (
  { active, use }: Here,
  replicated: AccountId | null,
  services: ActorServices
): Effect.fn.Return<Reading, never, Journal | Placement | Projector | Scope.Scope> {
  const placement = yield* Placement
  const peek: Actors["peek"] = (account, id) => active(account)?.peek(id)
  const read: Actors["read"] = (account, id) => use(account, (actor) => actor.read(id))
  if (replicated === null || placement.held() === null) return { consult: use, read, peek }

  const replica = yield* Replica.make(replicated, services)
  const isReplica = (account: AccountId) => account === replicated && !placement.isHere(account)
  const useRecent = makeUse(replica.recent, () => replica.newest, isReplica)
  const useNewest = makeUse(
    () => undefined,
    () => replica.newest,
    isReplica
  )
  const readReplica: Actors["read"] = Effect.fnUntraced(function* (account, id) {
    const recently = (actor: Actor) => Effect.map(actor.read(id), (entry) => ({ entry, version: actor.version }))
    const { entry, version } = yield* useRecent(account, recently)
    if (entry !== undefined) return entry
    // A document that the replica lacks may be newer than the replica: read the newest state.
    return yield* useNewest(account, (actor) => (actor.version === version ? NOT_THERE : actor.read(id)))
  })
  return {
    consult: (account, f) => (isReplica(account) ? useNewest(account, f) : use(account, f)),
    read: (account, id) => (isReplica(account) ? readReplica(account, id) : read(account, id)),
    peek: (account, id) => (isReplica(account) ? replica.recent()?.peek(id) : peek(account, id))
  }
})

const makeUse = (
  known: (account: AccountId) => Actor | undefined,
  activate: Activations["activate"],
  isHere: PlacementShape["isHere"]
): UseActor => {
  const attempt = <A, E>(
    account: AccountId,
    f: (actor: Actor) => Effect.Effect<A, E | EngineFailure>,
    mayRepeat: boolean,
    retries: number
  ): Effect.Effect<A, E | Unavailable> => {
    if (!isHere(account)) return Effect.fail(Unavailable.elsewhere(account))
    const actor = known(account)
    const used = actor?.closed === null ? f(actor) : Effect.flatMap(activate(account), useIfOpen(f))
    return Effect.catchCause(used, (cause): Effect.Effect<A, E | Unavailable> => {
      const failure = cause.reasons.find((reason) => reason._tag === "Fail")?.error
      if (failure instanceof Closed && isRepeatedAfter(failure.reason, mayRepeat) && retries > 0) {
        return Effect.suspend(() => attempt(account, f, mayRepeat, retries - 1))
      }
      return unavailable(cause, failure)
    })
  }
  // Suspended, so that `f` sees the state at the time it runs.
  return (account, f, mayRepeat = true) =>
    Effect.suspend(() => attempt(account, f as never, mayRepeat, RETRIES)) as never
}

const isRepeatedAfter = (reason: ClosedReason, mayRepeat: boolean): boolean =>
  reason === "lapsed" ? mayRepeat : reason !== "failed"

/** An actor may have ended again before its activation is seen. */
const useIfOpen =
  <A, E>(f: (actor: Actor) => Effect.Effect<A, E>) =>
  (actor: Actor): Effect.Effect<A, E | Closed> =>
    actor.closed === null ? f(actor) : Effect.fail(actor.closed)

/**
 * Ends the accounts of a partition that is released, after running commands are answered and projected, as far as the
 * storage allows. Accounts that another process may have written to end immediately.
 */
const makeListener = (
  active: Map<AccountId, Actor>,
  activations: Activations,
  { reach }: ProjectorShape,
  ringAll: () => void
): PartitionListener => {
  const end = (actors: Iterable<Actor>) => {
    for (const actor of actors) {
      if (active.get(actor.account) === actor) active.delete(actor.account)
      activations.ending(actor)
      actor.close("fenced")
    }
  }
  const of = (partition: Partition) => [...active.values()].filter((actor) => actor.partition === partition)
  const rest = Effect.fnUntraced(function* (actor: Actor) {
    while (actor.closed === null && !actor.idle) {
      yield* Effect.ignore(reach(actor, actor.version))
      yield* Effect.sleep(REST_MILLIS)
    }
    end([actor])
  })
  return {
    onReleasing: (partition) =>
      Effect.gen(function* () {
        const rested = Effect.suspend(() => Effect.forEach(of(partition), rest, { concurrency: "unbounded" }))
        yield* Effect.timeoutOption(Effect.andThen(activations.ended(partition), rested), DRAIN_MILLIS)
        activations.outdate(partition)
        end(of(partition))
      }),
    onUnconfirmed: () => {
      for (let partition = 0; partition < PARTITIONS; partition++) activations.outdate(partition)
      end([...active.values()])
      ringAll()
    }
  }
}

/** Returns the version that a document names: immediately if it is in memory, else through its account's actor. */
const eventVersionOf = (
  versions: EventVersionsShape,
  { peek, read }: Pick<Actors, "peek" | "read">,
  account: AccountId
): string | Effect.Effect<string, StorageFailure> => {
  const place = versions.namedBy(account)
  if (place === null) return versions.versionOf(undefined)
  const document = peek(place.account, place.id)
  if (document !== undefined) return versions.versionOf(document)
  return Effect.mapBoth(read(place.account, place.id), {
    onFailure: (cause) => new StorageFailure({ cause }),
    onSuccess: versions.versionOf
  })
}

const logNotRestarted = ({ account, message }: JournalCorrupt) =>
  log.error(`Account ${account} could not be restarted`, message, { cause: "not restarted" })

/** Converts a failure of the engine to `Unavailable`. Every other failure is the caller's own. */
const unavailable = <E>(
  cause: Cause.Cause<E | EngineFailure>,
  failure: unknown
): Effect.Effect<never, E | Unavailable> => {
  if (failure instanceof MailboxFull) return Effect.fail(new Unavailable({ reason: "Too many requests wait." }))
  // A corrupt log is a defect: nothing may be built on it.
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
  const formats = yield* DocumentFormats
  const views = yield* Views
  const documents = yield* Batcher.make((addresses: ReadonlyArray<Address>) => views.documents(addresses))
  const shareOf = makeShares(options.cacheBytes, active, (actor) => actor.weight)
  const services: Omit<ActorServices, "lose" | "eventVersion" | "shownIn"> = {
    clock: yield* Clock.Clock,
    context: yield* Effect.context<never>(),
    scope: yield* Effect.scope,
    isStorageHanging: (yield* Journal).isHanging,
    numbers: yield* AccountNumbers,
    mailboxCapacity: options.mailboxCapacity,
    cacheShare: (actor) =>
      actor.account === options.replicated
        ? Math.max(options.cacheBytes * RESERVED_PART, shareOf(actor))
        : shareOf(actor),
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

/** Commands that wait, and caches, of all accounts in memory. */
const observeActors = Effect.fnUntraced(function* (
  active: ReadonlyMap<AccountId, Actor>,
  options: Options,
  filterRoom: FilterRoom
) {
  const sum = (of: (actor: Actor) => number) => active.values().reduce((all, actor) => all + of(actor), 0)
  const most = () => active.values().reduce((most, { waiting }) => Math.max(most, waiting), 0)
  yield* Metrics.observeGauge(IN_MEMORY, () => active.size)
  yield* Metrics.observeGauge(WAITING, () => sum(({ waiting }) => waiting))
  yield* Metrics.observeGauge(WAITING_MAX, most)
  yield* Metrics.observeGauge(MEMORY, () => sum(({ weight }) => weight), { owner: "documents" })
  yield* Metrics.observeGauge(MEMORY_LIMIT, () => options.cacheBytes, { owner: "documents" })
  yield* Metrics.observeGauge(MEMORY, () => filterRoom.bytes, { owner: "key_filters" })
  yield* Metrics.observeGauge(MEMORY_LIMIT, () => filterRoom.bytesMax, { owner: "key_filters" })
})

const IN_MEMORY = { name: "till_accounts_in_memory", description: "Accounts with an actor in this process." }
const WAITING = {
  name: "till_mailbox_waiting",
  description: "Commands and reads that wait in the mailboxes of all accounts."
}
const WAITING_MAX = {
  name: "till_mailbox_waiting_max",
  description: "Commands and reads that wait in the longest mailbox."
}

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
 * Checks the log at an interval for records of active accounts that this process has not seen, and restarts those
 * accounts. An actor's next write would be fenced by such a record; until then the actor would serve stale state (a key
 * that another process revoked) and not fire the timers of a record whose flush was given up but succeeded.
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
