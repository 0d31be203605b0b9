/**
 * Engines on storage that outlives them: a test starts one, lets it die or hang, and starts the next on what it left.
 * Several engines on one storage stand for several processes. No starter of Till: the engine runs alone, with the toy
 * objects of its tests instead of payments.
 */
import { assert } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Layer, Redacted, References, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { Anchored } from "../../src/engine/verify/Anchors.ts"
import { AccountNumbers, type AccountNumbersShape, make as makeNumbers } from "../../src/engine/log/AccountNumbers.ts"
import { Accounts, type AccountsShape } from "../../src/engine/Accounts.ts"
import { WakeUp } from "../../src/engine/process/WakeUp.ts"
import { CommitFeed } from "../../src/engine/views/CommitFeed.ts"
import { Deliveries, type DeliveriesShape } from "../../src/engine/Deliveries.ts"
import type { Document } from "../../src/engine/log/Document.ts"
import * as Engine from "../../src/engine/Engine.ts"
import { DocumentFormats, type Formatted } from "../../src/engine/views/DocumentFormats.ts"
import { Journal, type JournalShape, StorageFailure } from "../../src/engine/log/Journal.ts"
import { Placement, type PlacementShape } from "../../src/engine/process/Placement.ts"
import { Projector, type ProjectorShape } from "../../src/engine/actor/Projector.ts"
import { GENESIS, type JournalRecord, unseal } from "../../src/engine/log/Record.ts"
import { RunningTime } from "../../src/engine/actor/RunningTime.ts"
import * as Scheduler from "../../src/engine/Scheduler.ts"
import { TimerHandler } from "../../src/engine/actor/Timers.ts"
import { type Manner, rebuild, SWIFTLY, verify } from "../../src/engine/verify/Verify.ts"
import { EventVersions, type EventVersionsShape, type StoredEvent } from "../../src/engine/log/Events.ts"
import { recordId, revisionId, Views, type ViewsShape } from "../../src/engine/views/Views.ts"
import type { RevisionRow } from "../../src/engine/views/Projection.ts"
import * as Faults from "./storage/Faults.ts"
import * as JournalMemory from "./storage/JournalMemory.ts"
import * as ViewsMemory from "./storage/ViewsMemory.ts"
import { COUNTER, handleTimer, type Model } from "./Toy.ts"

/** A journal and views, without an engine. */
export type Storage = Context.Context<Journal | Views>

export const journalOf = (storage: Storage): JournalShape => Context.get(storage, Journal)
export const viewsOf = (storage: Storage): ViewsShape => Context.get(storage, Views)

export const withJournal = (storage: Storage, journal: JournalShape): Storage => Context.add(storage, Journal, journal)

/** Builds a layer separately from all others, like another process, which shares nothing. */
export const buildAlone = <A>(layer: Layer.Layer<A>, scope: Scope.Scope) =>
  Layer.buildWithMemoMap(layer, Layer.makeMemoMapUnsafe(), scope)

/** Fresh storage in memory. */
export const storageInMemory: Effect.Effect<Storage> = Effect.suspend(() =>
  buildAlone(ViewsMemory.layerMemory.pipe(Layer.provideMerge(JournalMemory.layerMemory)), Scope.makeUnsafe())
)

export interface EngineOptions extends NonNullable<Parameters<typeof Engine.layer>[0]> {
  readonly faults?: Faults.Faults
  /** Kinds with older formats or search terms; all others have one format. */
  readonly kinds?: ReadonlyArray<Formatted>
  readonly handler?: TimerHandler["Service"]
  /** API versions in which its events are rendered; one by default. */
  readonly eventVersions?: EventVersionsShape
  /** Numbers of its accounts, and the kinds whose ids carry them. */
  readonly numbers?: AccountNumbersShape
  /** Schedulers that wake accounts for their timers; one by default. */
  readonly schedulers?: 0 | 1 | 2
  /** The accounts that it serves; all by default. */
  readonly placement?: Layer.Layer<Placement>
}

export interface RunningEngine {
  readonly accounts: AccountsShape
  readonly projector: ProjectorShape
  readonly deliveries: DeliveriesShape
  readonly placement: PlacementShape
  /** Stops the engine in order. */
  readonly stop: Effect.Effect<void>
  /** Kills the engine: none of its operations reaches the storage or returns from there after that. */
  readonly kill: Effect.Effect<void>
}

const ONE_VERSION: EventVersionsShape = { namedBy: () => null, versionOf: () => "1", shownIn: (_, event) => event }

/** Numbers under a key. Ids of counters lead to their accounts. */
export const numbersUnder = (key: string): AccountNumbersShape =>
  makeNumbers([{ prefix: "ctr", foundById: true }], Redacted.make(Buffer.from(key)))

const alive: Faults.Faults = () => Effect.void

const layerWith = (schedulers: 0 | 1 | 2, options: Parameters<typeof Engine.layer>[0]) => {
  if (schedulers === 1) return Engine.layer(options)
  const alone = Deliveries.layer
  const scheduler = Scheduler.layer
  return (schedulers === 0 ? alone : Layer.mergeAll(alone, scheduler, Layer.fresh(scheduler))).pipe(
    Layer.provideMerge(Accounts.layer(options)),
    Layer.provide(Layer.mergeAll(WakeUp.layer, CommitFeed.layer, RunningTime.layer)),
    Layer.provideMerge(Projector.layer)
  )
}

/** Starts an engine; it lives until it is stopped or killed. */
export const startEngine = Effect.fnUntraced(function* (
  storage: Storage,
  {
    faults = alive,
    handler = handleTimer,
    kinds = [COUNTER],
    eventVersions = ONE_VERSION,
    numbers = numbersUnder("a key"),
    schedulers = 1,
    placement = Placement.layerSole,
    ...options
  }: EngineOptions = {}
): Effect.fn.Return<RunningEngine> {
  let dead = false
  const scope = yield* Scope.make()
  const layer = layerWith(schedulers, options).pipe(
    Layer.provideMerge(placement),
    Layer.provide(Faults.layer((point) => (dead ? Effect.never : Effect.andThen(faults(point), dying)))),
    Layer.provide(Layer.succeedContext(storage)),
    Layer.provide(Layer.succeed(TimerHandler, handler)),
    Layer.provide(Layer.succeed(AccountNumbers, numbers)),
    Layer.provide(Layer.succeed(EventVersions, eventVersions)),
    Layer.provide(formatsOf(kinds)),
    Layer.provide(Layer.succeed(References.MinimumLogLevel, "None"))
  )
  // Operations that were running when the process died do not return either.
  const dying = Effect.suspend(() => (dead ? Effect.never : Effect.void))
  const services = yield* Effect.provideService(buildAlone(layer, scope), References.MinimumLogLevel, "None")
  return {
    accounts: Context.get(services, Accounts),
    projector: Context.get(services, Projector),
    deliveries: Context.get(services, Deliveries),
    placement: Context.get(services, Placement),
    stop: Scope.close(scope, Exit.void),
    kill: Effect.suspend(() => {
      dead = true
      return Effect.asVoid(Effect.forkDetach(Scope.close(scope, Exit.void)))
    })
  }
})

/** A failure of the storage set by a test. */
export const outage = (what: string) => new StorageFailure({ cause: new Error(what) })

/** Advances the test clock by a few milliseconds in each turn of the event loop, until the scope closes. */
export const flowingTime: Effect.Effect<void, never, Scope.Scope> = Effect.suspend(() =>
  Effect.asVoid(Effect.forkScoped(flowing))
)

export const flowing: Effect.Effect<never> = Effect.forever(Effect.andThen(TestClock.adjust(5), Effect.yieldNow))

/** Lets fibers run until all wait for time. */
export const settled: Effect.Effect<void> = Effect.repeat(Effect.yieldNow, { times: 100 }).pipe(Effect.asVoid)

/**
 * Lets time pass, in steps. At a step's start and end, fibers run as far as they can without time. Within a step the
 * clock waits for the fibers that it wakes, but not for other fibers that these start and that yield.
 */
export const pass = (millis: number, stepMillis: number = millis): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* settled
    for (let passed = 0; passed < millis || passed === 0; passed += Math.max(stepMillis, 1)) {
      yield* TestClock.adjust(Math.min(stepMillis, millis - passed))
      yield* settled
    }
  })

/** Sets the clock to a realistic day; ids need a time of 9 characters. */
export const START = Date.UTC(2026, 10, 20)
export const startClock = TestClock.setTime(START)

/** The records of an account, each checked against its predecessor. */
export const recordsOf = Effect.fnUntraced(function* (storage: Storage, account: string) {
  const rows = yield* Effect.orDie(journalOf(storage).read(account, 0, 1_000_000))
  let head = { version: 0, hash: GENESIS }
  return rows.map((row): JournalRecord => {
    const { hash, record } = unseal(head, row)
    head = { version: record.version, hash }
    return record
  })
})

export const formatsOf = (kinds: ReadonlyArray<Formatted>) => DocumentFormats.layer(kinds, (type) => type.split(".")[0])

/** Verifies as `till verify` does, in this manner. */
export const verification = (
  storage: Storage,
  manner: Partial<Manner> = {},
  kinds: ReadonlyArray<Formatted> = [COUNTER],
  anchored?: Anchored["heads"]
) => verify({ ...SWIFTLY, ...manner }, anchored).pipe(Effect.provideContext(storage), Effect.provide(formatsOf(kinds)))

/** Checks that verification finds no problem. */
export const verified = Effect.fnUntraced(function* (storage: Storage, kinds?: ReadonlyArray<Formatted>) {
  const report = yield* Effect.orDie(verification(storage, {}, kinds))
  assert.deepStrictEqual(report.problems, [])
  return report
})

/** Runs an effect on the views outside of an engine. */
export const projecting = <A, E>(
  storage: Storage,
  effect: Effect.Effect<A, E, Journal | Views | Projector>,
  kinds: ReadonlyArray<Formatted> = [COUNTER]
): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const layer = Projector.layer.pipe(
      Layer.provideMerge(Layer.succeedContext(storage)),
      Layer.provide(formatsOf(kinds))
    )
    return Effect.scoped(
      Effect.flatMap(Effect.scope, (scope) =>
        Effect.flatMap(buildAlone(layer, scope), (services) => Effect.provideContext(effect, services))
      )
    )
  })

/** Rewrites all views from the journal, as `till rebuild` does. */
export const rebuilt = (storage: Storage, kinds?: ReadonlyArray<Formatted>): Effect.Effect<void> =>
  Effect.asVoid(Effect.orDie(projecting(storage, rebuild, kinds)))

/** Walks all pages of a list in one direction. */
export const walk = Effect.fnUntraced(function* <Row extends { readonly id: string }, E>(
  direction: "older" | "newer",
  limit: number,
  pageAt: (cursor: {
    olderThan?: string
    newerThan?: string
    limit: number
  }) => Effect.Effect<{ readonly rows: ReadonlyArray<Row>; readonly hasMore: boolean }, E>
) {
  const all: Array<Row> = []
  for (;;) {
    const edge = direction === "older" ? all.at(-1)?.id : all[0]?.id
    const from = direction === "older" ? edge && { olderThan: edge } : { newerThan: edge ?? "" }
    const { hasMore, rows } = yield* pageAt({ ...from, limit })
    assert.isAtMost(rows.length, limit)
    if (all.length > 0) assert.isNotEmpty(rows, "the previous page has more")
    if (direction === "older") all.push(...rows)
    else all.unshift(...rows)
    if (!hasMore) return all
    assert.strictEqual(rows.length, limit, "a page that is not the last is full")
  }
})

export const allDocuments = (
  { accounts }: RunningEngine,
  account: string,
  direction: "older" | "newer",
  limit: number,
  kind: string = COUNTER.name
): Effect.Effect<ReadonlyArray<Document>> =>
  Effect.orDie(
    walk(direction, limit, (page) =>
      Effect.map(accounts.list(account, { kind, ...page }), ({ documents: rows, hasMore }) => ({ rows, hasMore }))
    )
  )

export const allEvents = (
  { accounts }: RunningEngine,
  account: string,
  direction: "older" | "newer",
  limit: number
): Effect.Effect<ReadonlyArray<StoredEvent>> =>
  Effect.orDie(
    walk(direction, limit, (page) =>
      Effect.map(accounts.events(account, page), ({ events: rows, hasMore }) => ({ rows, hasMore }))
    )
  )

/** Checks memory, lists and events of an account against the model. */
export const agrees = Effect.fnUntraced(function* (
  engine: RunningEngine,
  account: string,
  model: Model,
  limit: number
) {
  for (const counter of model.counters.values()) {
    const read = yield* engine.accounts.read(account, counter.id)
    assert.strictEqual(read?.deleted === false ? read.json : undefined, JSON.stringify(counter))
  }
  for (const id of model.deleted) assert.isTrue((yield* engine.accounts.read(account, id))?.deleted)
  const newestFirst = [...model.counters.values()].map((counter) => JSON.stringify(counter)).toReversed()
  for (const direction of ["older", "newer"] as const) {
    const documents = yield* allDocuments(engine, account, direction, limit)
    assert.deepStrictEqual(
      documents.map(({ json }) => json),
      newestFirst
    )
    const events = yield* allEvents(engine, account, direction, limit)
    assert.deepStrictEqual(
      events.toReversed().map(({ object, previous, type }) => ({ type, object: JSON.parse(object), previous })),
      model.events
    )
  }
})

/** The records of an account since its last wipe. */
const keptRecords = (records: ReadonlyArray<JournalRecord>): ReadonlyArray<JournalRecord> =>
  records.slice(records.findLastIndex(({ wiped }) => wiped) + 1)

/**
 * Checks that the views and the engine name the same records for documents as a walk over the whole journal: for all
 * documents together, for each one, and for those with a label.
 */
export const historyAgrees = Effect.fnUntraced(function* (
  { accounts, projector }: RunningEngine,
  storage: Storage,
  account: string,
  limit: number
) {
  yield* projector.drained
  const records = keptRecords(yield* recordsOf(storage, account))
  const rows = yield* Effect.forEach(["revisions", "documents"] as const, (table) =>
    viewsOf(storage).scan(account, table, "", 1_000_000)
  )
  assert.deepStrictEqual(
    rows
      .flat()
      .map(({ row }) => revisionId(row as RevisionRow))
      .toSorted(),
    records.flatMap(({ changes, version }) => changes.map(({ id }) => revisionId({ id, version }))).toSorted()
  )
  const newest = new Map(records.flatMap(({ changes }) => changes.map((change) => [change.id, change] as const)))
  const labelled = [...newest.values()].filter(({ labels }) => labels["slot"] === "a").map(({ id }) => id)
  const every = [...newest.keys()]
  for (const { ids, labels, wanted } of [
    { ids: [...every, "missing"], labels: {}, wanted: every },
    { ids: every.slice(-1), labels: {}, wanted: every.slice(-1) },
    { ids: every.slice(0, 1), labels: { slot: "a" }, wanted: [...every.slice(0, 1), ...labelled] }
  ]) {
    const expected = records.flatMap(({ changes, events, now, request, version }) => {
      const documents = changes.filter(({ id }) => wanted.includes(id)).map(({ document, id }) => [id, document])
      const isAbout = ({ object }: { readonly object: string }) =>
        documents.some(([id]) => id === (JSON.parse(object) as { readonly id: string }).id)
      const eventIds = events.filter(isAbout).map(({ id }) => id)
      return documents.length === 0 ? [] : [{ id: recordId(version), at: now, request, documents, events: eventIds }]
    })
    for (const direction of ["older", "newer"] as const) {
      const entries = yield* walk(direction, limit, (page) =>
        Effect.map(accounts.history(account, { ids, labels, ...page }), ({ entries: rows, hasMore }) => ({
          rows,
          hasMore
        }))
      )
      const found = entries.map(({ at, documents, events, id, request }) => ({
        id,
        at,
        request,
        documents: documents.map((document) => [document.id, document.deleted ? null : document.json]),
        events: events.map(({ id }) => id)
      }))
      assert.deepStrictEqual(found, expected.toReversed(), `${ids.join()} ${direction}`)
    }
  }
}, Effect.orDie)

/** Checks that the ids in the records are strictly ascending in order of creation, byte by byte. */
export const idsAscend = (records: ReadonlyArray<JournalRecord>): void => {
  const seen = new Set<string>()
  let last = ""
  for (const { changes, events } of records) {
    const made = changes.filter(({ id, kind }) => kind === COUNTER.name && !seen.has(id)).map(({ id }) => id)
    for (const id of [...made, ...events.map(({ id }) => id)]) {
      seen.add(id)
      const counter = id.slice(id.indexOf("_") + 1)
      assert.isTrue(Buffer.compare(Buffer.from(last), Buffer.from(counter)) < 0, `${counter} does not follow ${last}`)
      last = counter
    }
  }
}

/** Checks that every event belongs to a change of its object, and every change of a counter has its event. */
export const eventsMatchChanges = (records: ReadonlyArray<JournalRecord>): void => {
  for (const { changes, events, version } of records) {
    const changed = changes.filter(({ kind }) => kind === COUNTER.name).map(({ id }) => id)
    const objects = events.map(({ object }) => (JSON.parse(object) as { id: string }).id)
    assert.deepStrictEqual([...new Set(objects)].toSorted(), changed.toSorted(), `record ${version}`)
  }
}

export const now: Effect.Effect<number> = Clock.currentTimeMillis
