/**
 * The actors of this process: activates an account's actor when it is needed, retires it when it is idle, and starts it
 * anew from the log when it was fenced or a flush failed.
 */
import type { Scope } from "effect"
import type { Cause } from "effect"
import { Clock, Effect, Schedule, Schema } from "effect"
import type { Activations } from "./Activations.ts"
import { intactTimers, makeActivations } from "./Activations.ts"
import type { Actor, ActorServices, ClosedReason } from "./Actor.ts"
import { Closed, storageFailed } from "./Actor.ts"
import { AccountNumbers } from "../log/AccountNumbers.ts"
import { WakeUp } from "../process/WakeUp.ts"
import * as Batcher from "../process/Batcher.ts"
import { CommitFeed } from "../views/CommitFeed.ts"
import type { AccountId, Document, Tombstone } from "../log/Document.ts"
import type { EventVersionsShape } from "../log/Events.ts"
import { EventVersions } from "../log/Events.ts"
import { DocumentFormats } from "../views/DocumentFormats.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { Journal, StorageFailure } from "../log/Journal.ts"
import { FilterRoom } from "./KeyFilter.ts"
import * as Loop from "../process/Loop.ts"
import { CACHE_BYTES_MAX, KEY_FILTERS_BYTES_MAX, makeShares } from "../process/Memory.ts"
import type { Attendant, Partition, PlacementShape } from "../process/Placement.ts"
import { PARTITIONS, Placement } from "../process/Placement.ts"
import type { ProjectorShape } from "./Projector.ts"
import { Projector } from "./Projector.ts"
import { JournalCorrupt } from "../log/Record.ts"
import * as Replica from "./Replica.ts"
import { RunningTime } from "./RunningTime.ts"
import { TimerHandler } from "./Timers.ts"
import type { Address } from "../views/Views.ts"
import { Views } from "../views/Views.ts"
import { MailboxFull } from "../process/BoundedQueue.ts"

/**
 * The log cannot be reached, or the account has more work than it may queue: what was asked for may yet have been done.
 * Or the account is another process': then nothing was done here, but perhaps what has an idempotency key, and is found
 * by it.
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
  /**
   * The account that can be read in every process, whoever serves it; null if there is none. Who serves it also does
   * what is to be done once for all accounts.
   */
  readonly replicated: AccountId | null
  /**
   * Where the documents are read that name the versions of events, if they lie in another database; null if they lie in
   * this one.
   */
  readonly versionsFrom: Pick<Actors, "peek" | "read"> | null
}

export const defaults: Options = {
  mailboxCapacity: 4096,
  cacheBytes: CACHE_BYTES_MAX,
  idleMillis: 300_000,
  replicated: null,
  versionsFrom: null
}

/** Times that a command is tried again on a fresh actor after a fence. */
const RETRIES = 16
/** Pause between attempts to restart an account whose flush failed. */
const RESTART_MILLIS = 500
/** The log is asked this often for records of active accounts that this process has not heard of. */
const WATCH_MILLIS = 30_000
/** A shutdown, or whoever gives a partition up, waits for the storage for so long at most. */
const DRAIN_MILLIS = 5000
/** Pause between two looks whether an account has come to rest. */
const REST_MILLIS = 5

type EngineFailure = Closed | MailboxFull | StorageFailure | JournalCorrupt

/**
 * Uses an account's actor, activating it if need be; once more on a fresh one if it was fenced or retired meanwhile, or
 * if nobody knows what has become of it, unless it may not be repeated.
 */
export type UseActor = <A, E>(
  account: AccountId,
  use: (actor: Actor) => Effect.Effect<A, E | Closed | MailboxFull | StorageFailure>,
  mayRepeat?: boolean
) => Effect.Effect<A, Exclude<E, EngineFailure> | Unavailable>

export interface Actors {
  readonly use: UseActor
  /** The same to read: of the replicated account, where another process serves it, the replica's newest state. */
  readonly consult: UseActor
  /** Reads the newest document; of the replicated account, one that was the newest within the last two seconds. */
  readonly read: (account: AccountId, id: string) => Effect.Effect<Document | Tombstone | undefined, Unavailable>
  /** The document that `read` would give, if it is in memory. */
  readonly peek: (account: AccountId, id: string) => Document | Tombstone | undefined
  /** The account's actor, if it is active here and now. */
  readonly active: (account: AccountId) => Actor | undefined
  /** The actors that are active here and now. */
  readonly all: () => ReadonlyArray<Actor>
}

/** What the actors of accounts are made of. */
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
  const alarm = yield* WakeUp
  const outbox = yield* CommitFeed
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const scope = yield* Effect.scope
  const active = new Map<AccountId, Actor>()
  const commit = yield* GroupCommit.make({
    room: projector.room,
    onDurable: ({ actor, sealed: { bytes, record } }) => {
      // Deliveries of a partition that is given up are for whoever has it next.
      const leased = placement.isHere(actor.account) && outbox.publish(record)
      projector.offer({ actor, record, bytes: bytes.length, leased })
      for (const { dueAt } of record.timers) if (dueAt !== null) alarm.set(dueAt - record.clock)
      if (record.advanced > 0) alarm.set(0)
      if (record.account === options.replicated) placement.wrote(record.account)
      // Whoever owns the account now may have looked into the log just before this record came, and answers without it.
      // So nobody may be told here that it is there.
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
  const eventVersion: ActorServices["eventVersion"] = (account) =>
    eventVersionOf(versions, options.versionsFrom ?? actors, account)
  const services = { ...(yield* makeServices(options, active, commit)), lose, eventVersion, shownIn: versions.shownIn }
  const activations = yield* makeActivations(active, services, commit)
  /**
   * Starts an account anew even if nobody asks for it: the failed flush may have left timers and deliveries in the log.
   */
  const restart = (account: AccountId) =>
    Effect.suspend(() => (placement.isHere(account) ? activations.activate(account) : Effect.void)).pipe(
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
  yield* placement.attend(makeAttendant(active, activations, projector, ringAll))

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

/** Reads accounts that are served here, and the replicated one everywhere. */
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
    // What nobody knows may just have been made.
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
  // Suspended: what `f` looks at must be what is there when it runs, not when the effect was made.
  return (account, f, mayRepeat = true) =>
    Effect.suspend(() => attempt(account, f as never, mayRepeat, RETRIES)) as never
}

const isRepeatedAfter = (reason: ClosedReason, mayRepeat: boolean): boolean =>
  reason === "lapsed" ? mayRepeat : reason !== "failed"

/** An actor that somebody waited for may have ended again. */
const useIfOpen =
  <A, E>(f: (actor: Actor) => Effect.Effect<A, E>) =>
  (actor: Actor): Effect.Effect<A, E | Closed> =>
    actor.closed === null ? f(actor) : Effect.fail(actor.closed)

/**
 * Has the accounts of a partition end where it is given up: what has begun is answered and projected first, if the
 * storage takes it. What another process may have changed meanwhile ends at once.
 */
const makeAttendant = (
  active: Map<AccountId, Actor>,
  activations: Activations,
  { reach }: ProjectorShape,
  ringAll: () => void
): Attendant => {
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
    releasing: (partition) =>
      Effect.gen(function* () {
        const rested = Effect.suspend(() => Effect.forEach(of(partition), rest, { concurrency: "unbounded" }))
        yield* Effect.timeoutOption(Effect.andThen(activations.ended(partition), rested), DRAIN_MILLIS)
        activations.outdate(partition)
        end(of(partition))
      }),
    lapsed: () => {
      for (let partition = 0; partition < PARTITIONS; partition++) activations.outdate(partition)
      end([...active.values()])
      ringAll()
    }
  }
}

/** Asks the document that names the version: at once if it is in memory, and through its account's actor otherwise. */
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
  const formats = yield* DocumentFormats
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
