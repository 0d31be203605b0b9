/** The only access to accounts. Callers may not assume that an account's actor is in this process. */
import { Clock, Context, Effect, Layer, Option, Schedule } from "effect"
import { AccountNumbers, type AccountNumbersShape } from "./log/AccountNumbers.ts"
import type { Actor } from "./actor/Actor.ts"
import { type Options, Unavailable } from "./actor/Actors.ts"
import * as Actors from "./actor/Actors.ts"
import * as Batcher from "./process/Batcher.ts"
import type { AccountId, Document, Millis, Tombstone } from "./log/Document.ts"
import { EventVersions, type StoredEvent } from "./log/Events.ts"
import * as Events from "./log/Events.ts"
import { DocumentFormats } from "./views/DocumentFormats.ts"
import type { HistoryEntry, HistoryPage, RequestQuery } from "./read/History.ts"
import * as History from "./read/History.ts"
import {
  type AnsweringCommand,
  type Claim,
  type CommandResult,
  IdempotencyKeyInUse,
  IdempotencyKeyReuse,
  type Replay,
  runOnce,
  whenClaimed
} from "./actor/Idempotency.ts"
import * as Idempotency from "./actor/Idempotency.ts"
import * as Lists from "./read/Lists.ts"
import { Journal, type StorageFailure } from "./log/Journal.ts"
import { Placement } from "./process/Placement.ts"
import { Projector, type ProjectorShape } from "./actor/Projector.ts"
import type { DeliveryRow, TimerRow } from "./views/Projection.ts"
import { wasWithin } from "./log/Created.ts"
import type { CreatedQuery, Search } from "./read/Lists.ts"
import type { TalliesOfStep, TallyQuery } from "./log/Tallies.ts"
import { DELIVERY_PREFIX, EVENT_PREFIX, type Transaction } from "./actor/Transaction.ts"
import {
  type DeliveryPage,
  type DeliveryQuery,
  type EventPage,
  type EventQuery,
  type ListPage,
  type ListQuery,
  type RevisionQuery,
  Views,
  type ViewsShape
} from "./views/Views.ts"

export { IdempotencyKeyInUse, IdempotencyKeyReuse, runOnce, Unavailable, whenClaimed }
export type { AnsweringCommand, Claim, CommandResult, HistoryEntry, Replay }

/** Account numbers in memory, at most, of about 100 bytes each. */
const KNOWN_NUMBERS_MAX = 100_000
const NO_ACCOUNTS: ReadonlyArray<AccountId> = []
const UNNUMBERED_PAGE = 1000
const NUMBERING_RETRY_MILLIS = 1000

/** Times in milliseconds, by the account's clock. */
export interface Outlook {
  readonly now: Millis
  /** Offset of the account's clock from the wall clock. */
  readonly clockOffset: Millis
  readonly timers: ReadonlyArray<Pick<TimerRow, "id" | "name" | "dueAt">>
}

export interface AccountsShape extends Idempotency.Idempotency {
  /** Runs a command and waits until it is durable. */
  readonly run: <A, E>(
    account: AccountId,
    command: Effect.Effect<A, E, Transaction>
  ) => Effect.Effect<A, E | Unavailable>

  /** Returns the newest durable state of a document of any kind. */
  readonly read: (account: AccountId, id: string) => Effect.Effect<Document | Tombstone | undefined, Unavailable>

  /** Returns the result of `read` if the document is in memory; for callers on the path of every request. */
  readonly peek: (account: AccountId, id: string) => Document | Tombstone | undefined

  /**
   * Finds the account that holds the document with this id, deleted or not. The document's kind must be one that is
   * found by id alone, see `Kind`. Includes every write acknowledged before the call. If another process serves the
   * account, fails with `isElsewhere` and the account; that process decides whether the document exists.
   */
  readonly holder: (id: string) => Effect.Effect<AccountId | undefined, Unavailable>

  /**
   * Removes documents and answers to keys from memory whose texts the storage has replaced. Returns the newest version
   * of the account after that, once the views have it.
   */
  readonly dropReplaced: (
    account: AccountId,
    documents: ReadonlyArray<string>,
    keys: ReadonlyArray<string>
  ) => Effect.Effect<number, Unavailable>

  /** Waits until all due timers of the account have fired, for `millisMax` at most. */
  readonly settled: (account: AccountId, millisMax: Millis) => Effect.Effect<void, Unavailable>

  /** Fires all due timers of the account, and those whose retry is due. */
  readonly wake: (account: AccountId) => Effect.Effect<void, Unavailable>

  /** Returns the wall-clock time at which each account in memory has to be woken for its timers. */
  readonly wakeTimes: (now: Millis) => ReadonlyMap<AccountId, Millis>

  readonly outlook: (account: AccountId, limit: number) => Effect.Effect<Outlook, Unavailable>

  /** Returns a page of a kind's documents, newest first. Includes every write acknowledged before the call. */
  readonly list: (account: AccountId, query: ListQuery & CreatedQuery) => Effect.Effect<ListPage, Unavailable>

  /** Returns a page of matching documents, newest first. Includes every write acknowledged before the call. */
  readonly search: (account: AccountId, search: Search) => Effect.Effect<ListPage, Unavailable>

  /** Returns the account's tallies from an hour on, step by step. Includes every write acknowledged before the call. */
  readonly tallies: (account: AccountId, query: TallyQuery) => Effect.Effect<ReadonlyArray<TalliesOfStep>, Unavailable>

  /** Returns a page of the records that wrote any of the documents, newest first, with all acknowledged writes. */
  readonly history: (account: AccountId, query: RevisionQuery) => Effect.Effect<HistoryPage, Unavailable>

  /** Returns a request's record, if it wrote any of the given documents. */
  readonly recordOf: (account: AccountId, query: RequestQuery) => Effect.Effect<HistoryEntry | undefined, Unavailable>

  readonly event: (account: AccountId, id: string) => Effect.Effect<StoredEvent | undefined, Unavailable>
  readonly events: (account: AccountId, query: EventQuery & CreatedQuery) => Effect.Effect<EventPage, Unavailable>

  readonly deliveries: (
    account: AccountId,
    query: DeliveryQuery & CreatedQuery
  ) => Effect.Effect<DeliveryPage, Unavailable>
  readonly delivery: (
    account: AccountId,
    destination: string,
    id: string
  ) => Effect.Effect<DeliveryRow | undefined, Unavailable>
  /** Returns up to `limit` deliveries of each event, newest first, in the order of the events. */
  readonly eventDeliveries: (
    account: AccountId,
    events: ReadonlyArray<string>,
    limit: number
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<DeliveryRow>>, Unavailable>
  /** Counts the deliveries of each event that are pending, in the order of the events. */
  readonly pendingDeliveries: (
    account: AccountId,
    events: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<number>, Unavailable>
}

export class Accounts extends Context.Service<Accounts, AccountsShape>()("till/engine/Accounts") {
  static readonly layer = (options: Partial<Options> = {}): Layer.Layer<Accounts, never, Actors.Needs> =>
    Layer.effect(Accounts, make({ ...Actors.defaults, ...options }))
}

const make = Effect.fnUntraced(function* (options: Options) {
  const views = yield* Views
  const projector = yield* Projector
  const actors = yield* Actors.make(options)

  /** Reads the views after all due timers have fired and the views include every acknowledged write. */
  const reading: Reading = (account, read) =>
    actors.consult(account, (actor) =>
      actor.timely(
        Effect.suspend(() => actor.reading(Effect.andThen(projector.reach(actor, actor.durable), read(actor))))
      )
    )

  const { list, peek: peekList, search } = yield* Lists.make
  const readEvents = yield* Events.makeReader(Lists.LISTS_MAX)
  const formats = yield* DocumentFormats
  const { shownIn } = yield* EventVersions
  const today = (account: AccountId, event: StoredEvent): StoredEvent => {
    const newest = formats.event(account, event)
    // A format step made the object a current one; the event keeps its own API version.
    if (newest === event) return event
    return { ...newest, object: shownIn(event.apiVersion, { object: newest.object, previous: null }).object }
  }
  const eventsAt = (places: ReadonlyArray<Events.EventPlace>) =>
    Effect.map(readEvents(places), (events) => events.map((event, i) => today(places[i]!.account, event)))
  const pendingOf = yield* Batcher.makeForLists(views.pendingDeliveries, Lists.LISTS_MAX)

  const { peek } = actors
  const read: AccountsShape["read"] = (account, id) =>
    Effect.suspend(() => {
      // Nearly every read is answered from memory.
      const known = peek(account, id)
      if (known !== undefined) return Effect.succeed(known)
      return actors.read(account, id)
    })
  const numbers = yield* AccountNumbers
  yield* Effect.forkScoped(numberAll(numbers, views))

  return Accounts.of({
    run: (account, program) =>
      actors.use(account, (actor) => actor.submit({ program, request: null, responseOf: none }), false),
    ...(yield* Idempotency.make(actors)),
    read,
    peek,
    holder: yield* makeHolder(read),
    dropReplaced: dropReplacedOf(actors, projector),
    ...timersOf(actors),
    outlook: (account, limit) => reading(account, (actor) => outlook(views, actor, limit)),
    list: (account, query) =>
      Effect.suspend(() => {
        const actor = actors.active(account)
        const known = actor && peekList(actor, query)
        return known === undefined ? reading(account, (actor) => list(actor, query)) : Effect.succeed(known)
      }),
    search: (account, wanted) => reading(account, (actor) => search(actor, wanted)),
    tallies: (account, query) => reading(account, () => views.tallies(account, query)),
    ...historyOf(yield* History.make(today), reading),
    event: (account, id) =>
      reading(account, () =>
        Effect.gen(function* () {
          const row = yield* views.event({ account, id })
          return row === undefined ? undefined : (yield* eventsAt([row]))[0]
        })
      ),
    ...datedLists(views, reading, eventsAt),
    delivery: (account, destination, id) => reading(account, () => views.delivery(account, destination, id)),
    eventDeliveries: (account, events, limit) =>
      reading(account, () =>
        views.eventDeliveries(
          events.map((id) => ({ account, id })),
          limit
        )
      ),
    pendingDeliveries: (account, events) => reading(account, () => pendingOf(events.map((id) => ({ account, id }))))
  })
})

const dropReplacedOf =
  ({ use }: Actors.Actors, { reach }: ProjectorShape): AccountsShape["dropReplaced"] =>
  (account, documents, keys) =>
    use(account, (actor) => {
      const program = Effect.sync(() => actor.dropReplaced(documents, keys))
      const dropped = actor.submit({ program, request: null, responseOf: none })
      return Effect.tap(dropped, (version) => reach(actor, version))
    })

type Reading = <A>(
  account: AccountId,
  read: (actor: Actor) => Effect.Effect<A, StorageFailure>
) => Effect.Effect<A, Unavailable>

const historyOf = (
  { ofRequest, page }: History.History,
  reading: Reading
): Pick<AccountsShape, "history" | "recordOf"> => ({
  history: (account, query) => reading(account, () => page(account, query)),
  recordOf: (account, query) => reading(account, () => ofRequest(account, query))
})

/** Lists of rows that carry their time in a column, not in a document. */
const datedLists = (
  views: ViewsShape,
  reading: Reading,
  eventsAt: Events.ReadEvents
): Pick<AccountsShape, "events" | "deliveries"> => ({
  events: (account, { created, ...query }) =>
    reading(account, () =>
      Effect.gen(function* () {
        const { between, isExact } = yield* Lists.createdBetween(views, account, EVENT_PREFIX, created)
        const { hasMore, page } = yield* Lists.pageOf(
          { ...query, ...between },
          (query) => Effect.flatMap(views.events(account, query), eventsAt),
          ({ at }) => isExact || wasWithin(at, created!)
        )
        return { events: page, hasMore }
      })
    ),
  deliveries: (account, { created, ...query }) =>
    reading(account, () =>
      Effect.gen(function* () {
        const { between } = yield* Lists.createdBetween(views, account, DELIVERY_PREFIX, created)
        const { hasMore, page } = yield* Lists.pageOf(
          { ...query, ...between },
          (query) => views.deliveries(account, query),
          ({ at }) => created === undefined || wasWithin(at, created)
        )
        return { deliveries: page, hasMore }
      })
    )
})

const outlook = Effect.fnUntraced(function* (views: ViewsShape, { account, clockOffset }: Actor, limit: number) {
  const timers = yield* views.timers(account, limit)
  const answer: Outlook = { now: (yield* Clock.currentTimeMillis) + clockOffset, clockOffset, timers }
  return answer
})

const none = () => null

/**
 * Makes `holder`. An id holds its account's number, which nearly always belongs to one account or to none; each account
 * with that number is asked for the document. An invented id costs two index lookups.
 *
 * An account that another process serves cannot be asked. If it is the only candidate, it is the answer. Among several,
 * the views decide after they have caught up with the log.
 */
const makeHolder = Effect.fnUntraced(function* (
  read: AccountsShape["read"]
): Effect.fn.Return<AccountsShape["holder"], never, AccountNumbers | Journal | Placement | Projector | Views> {
  const { isHere } = yield* Placement
  const journal = yield* Journal
  const numbers = yield* AccountNumbers
  const projector = yield* Projector
  const views = yield* Views
  /** Accounts by number. Another process may add accounts, so these are only the first candidates. */
  const known = new Map<number, ReadonlyArray<AccountId>>()
  const lookUp = (number: number) =>
    Effect.map(views.accountsNumbered(number), (accounts) => {
      if (accounts.length === 0) return accounts
      if (known.size >= KNOWN_NUMBERS_MAX) known.delete(known.keys().next().value!)
      known.set(number, accounts)
      return accounts
    })
  const among = (accounts: ReadonlyArray<AccountId>, id: string) =>
    Effect.findFirst(accounts, (account) => Effect.map(read(account, id), (entry) => entry !== undefined))

  const viewsHave = Effect.fnUntraced(function* (account: AccountId, id: string) {
    const version = (yield* journal.versions([account])).get(account) ?? 0
    yield* Effect.catchTag(projector.catchUp(account, version), "JournalCorrupt", Effect.die)
    const [row] = yield* views.documents([{ account, id }])
    return row !== undefined
  })
  const away = Effect.fnUntraced(function* (accounts: ReadonlyArray<AccountId>, isOnly: boolean, id: string) {
    for (const account of accounts) {
      if (isOnly || (yield* viewsHave(account, id))) return yield* Unavailable.elsewhere(account)
    }
    return undefined
  })
  const numbered = Effect.fnUntraced(function* (number: number, id: string) {
    const likely = (known.get(number) ?? NO_ACCOUNTS).filter(isHere)
    const found = yield* among(likely, id)
    if (Option.isSome(found)) return found.value
    const accounts = yield* lookUp(number)
    const others = accounts.filter((account) => !likely.includes(account))
    const here = others.filter(isHere)
    const foundHere = yield* among(here, id)
    if (Option.isSome(foundHere)) return foundHere.value
    const elsewhere = others.filter((account) => !here.includes(account))
    return yield* away(elsewhere, accounts.length === 1, id)
  })

  return Effect.fnUntraced(
    function* (id) {
      const number = numbers.numberIn(id)
      return number === undefined ? undefined : yield* numbered(number, id)
    },
    Effect.catchTag("StorageFailure", () => Effect.fail(new Unavailable({ reason: "The database does not answer." })))
  )
})

/** Stores the numbers of accounts whose checkpoint a restore or a rebuild has created without one. */
const numberAll = (numbers: AccountNumbersShape, views: ViewsShape) =>
  Effect.gen(function* () {
    for (;;) {
      const accounts = yield* views.accountsUnnumbered(UNNUMBERED_PAGE)
      for (const account of accounts) {
        const number = numbers.of(account)
        if (number === null) return
        yield* views.keepNumber(account, number)
      }
      if (accounts.length === 0) return
    }
  }).pipe(Effect.retry({ schedule: Schedule.spaced(NUMBERING_RETRY_MILLIS) }), Effect.ignore)

const timersOf = (actors: Actors.Actors): Pick<AccountsShape, "settled" | "wake" | "wakeTimes"> => ({
  settled: (account, millisMax) => {
    const settled = actors.use(account, (actor) => actor.settle)
    return Effect.asVoid(Effect.timeoutOption(settled, millisMax))
  },
  wake: (account) => actors.use(account, (actor) => actor.wake),
  wakeTimes: (now) => new Map(actors.all().map((actor) => [actor.account, actor.wakeAt(now)]))
})
