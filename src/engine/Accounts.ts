/**
 * The one door to accounts: nothing outside may assume that an account's actor is in this process.
 *
 * Activates an account's actor when it is needed, retires it when it is idle, and starts it anew from the log when it
 * was fenced or a flush failed.
 */
import type { Cause } from "effect"
import { Clock, Context, Deferred, Effect, Layer, Schedule, Schema } from "effect"
import type { Head, Surroundings } from "./Actor.ts"
import { Actor, Closed, MailboxFull, storageFailed } from "./Actor.ts"
import { Alarm } from "./Alarm.ts"
import * as Batcher from "./Batcher.ts"
import type { AccountId, Document, Tombstone } from "./Document.ts"
import { stored } from "./Document.ts"
import * as GroupCommit from "./GroupCommit.ts"
import * as Idempotency from "./Idempotency.ts"
import { Journal, StorageFailure } from "./Journal.ts"
import { Projector } from "./Projector.ts"
import type { RequestIdentity } from "./Record.ts"
import { fromText, JournalCorrupt } from "./Record.ts"
import type { Transaction } from "./Transaction.ts"
import type { Address, EventPage, EventQuery, ListPage, ListQuery, StoredEvent } from "./Views.ts"
import { Views } from "./Views.ts"

/** The log cannot be reached, or the account has more work than it may queue. Nothing was done; try again. */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", { reason: Schema.String }) {}

/** The same idempotency key is still being worked on by another request (semantics I8). */
export class IdempotencyKeyInUse extends Schema.TaggedError<IdempotencyKeyInUse>()("IdempotencyKeyInUse", {}) {}

/** The idempotency key was used for another request (semantics I7). */
export class IdempotencyKeyReuse extends Schema.TaggedError<IdempotencyKeyReuse>()("IdempotencyKeyReuse", {}) {}

/** What a command answers. */
export interface Response {
  readonly status: number
  /** JSON text. Where it equals a document the command wrote, the journal holds it once. */
  readonly body: string
  /** Whether a repetition of the request gets this response again (semantics I9, I10). Successes always do. */
  readonly stored: boolean
}

export interface Reply {
  readonly status: number
  readonly body: string
  readonly apiVersion: string
  /** Id of the request that was really carried out, if this is a replay of its response. */
  readonly replayOf: string | null
}

export interface AccountsShape {
  /** Runs a command and waits until it is durable. */
  readonly run: <A, E>(
    account: AccountId,
    command: Effect.Effect<A, E, Transaction>
  ) => Effect.Effect<A, E | Unavailable>

  /**
   * Runs a request's command at most once per idempotency key, and waits until it is durable. The command answers on
   * both channels: what succeeds is committed, what fails leaves no change (only its response, if that is `stored`).
   */
  readonly execute: (
    account: AccountId,
    request: RequestIdentity,
    command: Effect.Effect<Response, Response, Transaction>
  ) => Effect.Effect<Reply, Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse>

  /** The newest durable state of one document, whatever its kind. */
  readonly read: (account: AccountId, id: string) => Effect.Effect<Document | Tombstone | undefined, Unavailable>

  /** One page of a kind's documents, newest first. Shows everything that was acknowledged before the call. */
  readonly list: (account: AccountId, query: ListQuery) => Effect.Effect<ListPage, Unavailable>

  readonly event: (account: AccountId, id: string) => Effect.Effect<StoredEvent | undefined, Unavailable>
  readonly events: (account: AccountId, query: EventQuery) => Effect.Effect<EventPage, Unavailable>
}

/** Bounds of the engine's memory and queues. */
export interface Options {
  /** Commands of one account that may wait for an answer; more are refused with `Unavailable`. */
  readonly mailboxCapacity: number
  /** Documents, keys and timers in memory, each, over all accounts. */
  readonly cacheCapacity: number
  /** How long an account stays in memory after its last command, in milliseconds. */
  readonly idleMillis: number
}

export const defaults: Options = { mailboxCapacity: 4096, cacheCapacity: 200_000, idleMillis: 300_000 }

/** Times that a command is tried again on a fresh actor after a fence. */
const RETRIES = 16
/** Pause between attempts to restart an account whose flush failed. */
const RESTART_MILLIS = 500
/** How long a shutdown waits for the storage. */
const DRAIN_MILLIS = 5000

export class Accounts extends Context.Service<Accounts, AccountsShape>()("till/engine/Accounts") {
  static readonly layer = (
    options: Partial<Options> = {}
  ): Layer.Layer<Accounts, never, Journal | Views | Projector | Alarm> =>
    Layer.effect(Accounts, make({ ...defaults, ...options }))
}

const make = Effect.fnUntraced(function* (options: Options) {
  const views = yield* Views
  const journal = yield* Journal
  const projector = yield* Projector
  const actors = yield* makeActors(options)

  const list = (account: AccountId, query: ListQuery): Effect.Effect<ListPage, Unavailable> =>
    actors.use(account, (actor) =>
      Effect.map(
        Effect.andThen(
          projector.reach(actor, actor.durable),
          views.list(account, { ...query, limit: query.limit + 1 })
        ),
        (rows) => {
          const { hasMore, page } = pageOf(rows, query)
          return { documents: page.map(stored) as Array<Document>, hasMore }
        }
      )
    )

  const eventsAt = Effect.fnUntraced(function* (
    account: AccountId,
    rows: ReadonlyArray<{ id: string; version: number }>
  ) {
    const versions = [...new Set(rows.map(({ version }) => version))]
    const records = new Map((yield* journal.at(account, versions)).map((row) => [row.version, fromText(row)] as const))
    return rows.flatMap(({ id, version }): Array<StoredEvent> => {
      const record = records.get(version)
      const event = record?.events.find((candidate) => candidate.id === id)
      return record === undefined || event === undefined ? [] : [{ ...event, at: record.at, request: record.request }]
    })
  })

  const idempotency = yield* Idempotency.make

  return Accounts.of({
    run: (account, program) =>
      actors.use(account, (actor) => actor.submit({ program, request: null, responseOf: none })),
    execute: (account, request, program) => idempotency.execute(account, request, program, actors.use),
    read: (account, id) => actors.use(account, (actor) => readDurable(actor, id)),
    list,
    event: (account, id) =>
      actors.use(account, (actor) =>
        Effect.gen(function* () {
          yield* projector.reach(actor, actor.durable)
          const row = yield* views.event({ account, id })
          return row === undefined ? undefined : (yield* eventsAt(account, [row]))[0]
        })
      ),
    events: (account, query) =>
      actors.use(account, (actor) =>
        Effect.gen(function* () {
          yield* projector.reach(actor, actor.durable)
          const { hasMore, page } = pageOf(yield* views.events(account, { ...query, limit: query.limit + 1 }), query)
          return { events: yield* eventsAt(account, page), hasMore }
        })
      )
  })
})

const none = () => null

/** Cuts the row that was asked for beyond the limit, and puts the newest first. */
const pageOf = <Row>(
  rows: ReadonlyArray<Row>,
  { limit, newerThan }: { readonly limit: number; readonly newerThan?: string }
) => {
  const page = rows.slice(0, limit)
  return { page: newerThan === undefined ? page : page.toReversed(), hasMore: rows.length > limit }
}

/** A read never shows what is not durable: it waits for that record's flush. */
const readDurable = (
  actor: Actor,
  id: string
): Effect.Effect<Document | Tombstone | undefined, StorageFailure | Closed> => {
  const known = actor.documents.get(id)
  if (known !== undefined && known.version <= actor.durable) return Effect.succeed(known)
  return Effect.flatMap(actor.document(id), (entry) => {
    // A miss is an answer about the account's newest version as well.
    const version = entry?.version ?? actor.version
    return version <= actor.durable ? Effect.succeed(entry) : Effect.as(actor.whenDurable(version), entry)
  })
}

type EngineFailure = Closed | MailboxFull | StorageFailure | JournalCorrupt

/** Uses an account's actor, activating it if need be; once more on a fresh one if it was fenced or retired meanwhile. */
export type UseActor = <A, E>(
  account: AccountId,
  use: (actor: Actor) => Effect.Effect<A, E | Closed | MailboxFull | StorageFailure>
) => Effect.Effect<A, Exclude<E, EngineFailure> | Unavailable>

const makeActors = Effect.fnUntraced(function* (options: Options) {
  const views = yield* Views
  const projector = yield* Projector
  const alarm = yield* Alarm
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const active = new Map<AccountId, Actor>()
  const activating = new Map<AccountId, Deferred.Deferred<Actor, StorageFailure | JournalCorrupt>>()
  const documents = yield* Batcher.make((addresses: ReadonlyArray<Address>) => views.documents(addresses))
  const commit = yield* GroupCommit.make({
    room: projector.room,
    onDurable: (entry) => {
      projector.offer(entry)
      for (const { dueAt } of entry.sealed.record.timers) if (dueAt !== null) alarm.set(dueAt)
    },
    onClosed: (actor) => {
      if (active.get(actor.account) === actor) active.delete(actor.account)
      // What the failed flush may have left in the log counts, its timers too, even if nobody asks for the account.
      Effect.runForkWith(context)(Effect.forkIn(restart(actor.account), scope))
    }
  })
  const context = yield* Effect.context<never>()

  const surroundings: Surroundings = {
    clock,
    mailboxCapacity: options.mailboxCapacity,
    cacheCapacity: () => Math.max(1024, Math.floor(options.cacheCapacity / Math.max(active.size, 1))),
    loadDocument: (account, id) => Effect.map(documents({ account, id }), (row) => row && stored(row)),
    loadTimer: (account, id) => views.timer({ account, id }),
    append: commit.append
  }

  const activate = (account: AccountId): Effect.Effect<Actor, StorageFailure | JournalCorrupt> =>
    Effect.suspend(() => {
      const running = activating.get(account)
      if (running !== undefined) return Deferred.await(running)
      const activation = Deferred.makeUnsafe<Actor, StorageFailure | JournalCorrupt>()
      activating.set(account, activation)
      const start = (head: Head) =>
        Effect.tap(Actor.make(account, head, surroundings), (actor) => {
          active.set(account, actor)
          return Effect.forkIn(actor.run, scope)
        })
      const activated = Effect.onExit(Effect.flatMap(projector.catchUp(account), start), (exit) =>
        Effect.sync(() => {
          activating.delete(account)
          Deferred.doneUnsafe(activation, exit)
        })
      )
      // Callers come and go; the activation is everybody's.
      return Effect.andThen(Effect.forkIn(activated, scope), Deferred.await(activation))
    })

  const restart = (account: AccountId) =>
    activate(account).pipe(
      Effect.tapError((error) => Effect.logError(`Account ${account} could not be restarted`, error.message)),
      Effect.retry({ schedule: Schedule.spaced(RESTART_MILLIS) }),
      Effect.ignore
    )

  // Suspended: what `f` looks at must be what is there when it runs, not when the effect was made.
  const use: UseActor = (account, f) => Effect.suspend(() => attempt(account, f as never, RETRIES)) as never
  const attempt = <A, E>(
    account: AccountId,
    f: (actor: Actor) => Effect.Effect<A, E | EngineFailure>,
    retries: number
  ): Effect.Effect<A, E | Unavailable> => {
    const actor = active.get(account)
    const used = actor === undefined ? Effect.flatMap(activate(account), f) : f(actor)
    return Effect.catchCause(used, (cause): Effect.Effect<A, E | Unavailable> => {
      const failure = cause.reasons.find((reason) => reason._tag === "Fail")?.error
      if (failure instanceof MailboxFull) return Effect.fail(new Unavailable({ reason: "Too many requests wait." }))
      // The log cannot be trusted: nothing may be built on it.
      if (failure instanceof JournalCorrupt) return Effect.die(failure)
      if (failure instanceof Closed && failure.reason !== "failed" && retries > 0) {
        return Effect.suspend(() => attempt(account, f, retries - 1))
      }
      if (failure instanceof Closed || failure instanceof StorageFailure || storageFailed(cause)) {
        return Effect.fail(new Unavailable({ reason: "The database does not answer." }))
      }
      return Effect.failCause(cause as Cause.Cause<E>)
    })
  }

  const retireIdle = Effect.sync(() => {
    const since = clock.currentTimeMillisUnsafe() - options.idleMillis
    for (const [account, actor] of active) {
      if (!actor.idle || actor.lastUsed > since) continue
      active.delete(account)
      actor.close("passivated")
    }
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(options.idleMillis), retireIdle)))
  yield* Effect.addFinalizer(() =>
    Effect.ignore(Effect.timeoutOption(Effect.andThen(commit.drained, projector.drained), DRAIN_MILLIS))
  )
  return { use }
})
