/**
 * Accounts in several databases. Accounts share nothing, so this is a map from partitions to databases and no
 * transaction over two of them: each database has an engine of its own, with its own group commit, projector, scheduler
 * and outbox, and one that hangs keeps none of the others. `Accounts` leads to the engine of an account's partition.
 *
 * - An engine serves what this process does of its own database's partitions, and refuses every other account.
 * - The replicated account lies in one database only. That engine follows it, and tells the others from memory in which
 *   version of the API they render events.
 * - Whoever carries deliveries, verifies, scrubs or anchors does so for each database: the engines are there by name.
 */
import type { Scope } from "effect"
import { Context, Effect, Layer } from "effect"
import type { AccountNumbers } from "./log/AccountNumbers.ts"
import type { AccountsShape } from "./Accounts.ts"
import { Accounts } from "./Accounts.ts"
import type { Options } from "./actor/Actors.ts"
import type { Deliveries } from "./Deliveries.ts"
import type { AccountId } from "./log/Document.ts"
import * as Engine from "./Engine.ts"
import type { EventVersions } from "./log/Events.ts"
import type { DocumentFormats } from "./views/DocumentFormats.ts"
import type { Journal } from "./log/Journal.ts"
import type { CommitFeed } from "./views/CommitFeed.ts"
import type { Attendant, Partition, PlacementShape } from "./process/Placement.ts"
import { partitionOf, PARTITIONS, Placement } from "./process/Placement.ts"
import type { Projector } from "./actor/Projector.ts"
import type { TimerHandler } from "./actor/Timers.ts"
import type { Views } from "./views/Views.ts"

/** Where accounts lie. */
export interface DatabaseMap<E, R> {
  /** The name of a partition's database. It must always be the same while processes run. */
  readonly databaseOf: (partition: Partition) => string
  /** Journal and views of each database. */
  readonly storages: Readonly<Record<string, Layer.Layer<Journal | Views, E, R>>>
}

/** The engine on one database. */
export type DatabaseEngine = Context.Context<Accounts | Deliveries | CommitFeed | Projector>

export interface DatabasesShape {
  /** By the names of the databases. */
  readonly engines: ReadonlyMap<string, DatabaseEngine>
}

type Needs = AccountNumbers | EventVersions | DocumentFormats | Placement | TimerHandler

export class Databases extends Context.Service<Databases, DatabasesShape>()("till/engine/Databases") {
  /** An engine on each database, and all accounts behind one door. Dies if the map names a database without storage. */
  static readonly layer = <E, R>(
    map: DatabaseMap<E, R>,
    options: Partial<Omit<Options, "versionsFrom">> = {}
  ): Layer.Layer<Accounts | Databases, E, Exclude<R, Scope.Scope> | Needs> => Layer.effectContext(make(map, options))
}

const make = Effect.fnUntraced(function* <E, R>(
  { databaseOf, storages }: DatabaseMap<E, R>,
  { replicated = null, ...options }: Partial<Omit<Options, "versionsFrom">>
): Effect.fn.Return<Context.Context<Accounts | Databases>, E, R | Needs | Scope.Scope> {
  const placement = yield* Placement
  const names = Array.from({ length: PARTITIONS }, (_, partition) => databaseOf(partition))
  const homeName = replicated === null ? null : names[partitionOf(replicated)]!
  const start = Effect.fnUntraced(function* (name: string, more: Partial<Options>) {
    const storage = storages[name]
    if (storage === undefined) return yield* Effect.die(new Error(`The database ${name} is not known`))
    const own = Layer.succeed(
      Placement,
      within(placement, (partition) => names[partition] === name)
    )
    const engine = Engine.layer({ ...options, ...more }).pipe(Layer.provide([storage, own]))
    // Two engines share no part.
    return yield* Layer.build(Layer.fresh(engine))
  })

  const engines = new Map<string, DatabaseEngine>()
  // It is there before the others ask it, and ends after them.
  if (homeName !== null) engines.set(homeName, yield* start(homeName, { replicated }))
  const home = homeName === null ? null : Context.get(engines.get(homeName)!, Accounts)
  for (const name of new Set(names)) {
    if (name !== homeName) engines.set(name, yield* start(name, { versionsFrom: home }))
  }
  const accounts = names.map((name) => Context.get(engines.get(name)!, Accounts))
  return Context.make(Databases, { engines }).pipe(Context.add(Accounts, routed(accounts)))
})

/** What the placement says of the partitions of one database. */
const within = (placement: PlacementShape, has: (partition: Partition) => boolean): PlacementShape => {
  const hasAccount = (account: AccountId) => has(partitionOf(account))
  return {
    ...placement,
    isHere: (account) => hasAccount(account) && placement.isHere(account),
    isOwned: (account) => hasAccount(account) && placement.isOwned(account),
    // Whoever has all partitions always has all of the database.
    held: () => placement.held()?.filter(has) ?? null,
    attend: (attendant) => placement.attend(attendantOf(attendant, has, hasAccount))
  }
}

/** Calls an attendant for the partitions and accounts of its database only. */
const attendantOf = (
  { gained, heard, lapsed, leaving, releasing, served, wrote }: Attendant,
  has: (partition: Partition) => boolean,
  hasAccount: (account: AccountId) => boolean
): Attendant => ({
  gained: (partition) => (has(partition) && gained?.(partition)) || Effect.void,
  leaving: (partition) => (has(partition) && leaving?.(partition)) || Effect.void,
  releasing: (partition) => (has(partition) && releasing?.(partition)) || Effect.void,
  served: (partition) => has(partition) && served?.(partition),
  lapsed: () => lapsed?.(),
  heard: (account) => hasAccount(account) && heard?.(account),
  wrote: (account) => hasAccount(account) && wrote?.(account)
})

/** Leads to the accounts of each partition. */
const routed = (byPartition: ReadonlyArray<AccountsShape>): AccountsShape => {
  const all = [...new Set(byPartition)]
  if (all.length === 1) return all[0]!
  const of = (account: AccountId) => byPartition[partitionOf(account)]!
  return {
    run: (account, command) => of(account).run(account, command),
    execute: (account, request, makeCommand) => of(account).execute(account, request, makeCommand),
    read: (account, id) => of(account).read(account, id),
    peek: (account, id) => of(account).peek(account, id),
    holder: (id) => holderAmong(all, id),
    settled: (account, millisMax) => of(account).settled(account, millisMax),
    wake: (account) => of(account).wake(account),
    wakeTimes: (now) => new Map(all.flatMap(({ wakeTimes }) => [...wakeTimes(now)])),
    outlook: (account, limit) => of(account).outlook(account, limit),
    list: (account, query) => of(account).list(account, query),
    search: (account, search) => of(account).search(account, search),
    tallies: (account, query) => of(account).tallies(account, query),
    history: (account, query) => of(account).history(account, query),
    recordOf: (account, query) => of(account).recordOf(account, query),
    event: (account, id) => of(account).event(account, id),
    events: (account, query) => of(account).events(account, query),
    deliveries: (account, query) => of(account).deliveries(account, query),
    delivery: (account, destination, id) => of(account).delivery(account, destination, id),
    eventDeliveries: (account, events, limit) => of(account).eventDeliveries(account, events, limit),
    pendingDeliveries: (account, events) => of(account).pendingDeliveries(account, events)
  }
}

/**
 * Asks all databases at once, so that one that hangs keeps nobody from what another one has. If none has it, it may be
 * where nobody could say so: in an account that is elsewhere, or in a database that does not answer.
 */
const holderAmong = (all: ReadonlyArray<AccountsShape>, id: string): ReturnType<AccountsShape["holder"]> => {
  const found = all.map(({ holder }) =>
    Effect.flatMap(holder(id), (account) => (account === undefined ? Effect.fail(null) : Effect.succeed(account)))
  )
  return Effect.catchCause(Effect.raceAll(found), ({ reasons }) => {
    const died = reasons.find((reason) => reason._tag === "Die")
    if (died !== undefined) return Effect.die(died.defect)
    const unavailable = reasons.flatMap((reason) =>
      reason._tag === "Fail" && reason.error !== null ? [reason.error] : []
    )
    const failure = unavailable.find(({ isElsewhere }) => isElsewhere) ?? unavailable[0]
    return failure === undefined ? Effect.succeed(undefined) : Effect.fail(failure)
  })
}
