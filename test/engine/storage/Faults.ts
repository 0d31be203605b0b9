/** Puts faults into a journal and views, for tests in which the storage fails, hangs or dies at any step. */
import { Context, Effect, Layer } from "effect"
import type { ErasureStoreShape } from "../../../src/engine/Erasures.ts"
import { Journal, type StorageFailure } from "../../../src/engine/log/Journal.ts"
import { Views } from "../../../src/engine/views/Views.ts"

/**
 * A failure after a write leaves its outcome unknown to the engine, like a lost connection. Writes that are repeated in
 * any case, such as the deletion of old keys, count as reads.
 */
export type FaultPoint =
  | "append.before"
  | "append.after"
  | "apply.before"
  | "apply.after"
  | "erase.before"
  | "erase.after"
  | "read"

/** Runs at a point: it may fail, wait, never return, or do nothing. */
export type Faults = (point: FaultPoint) => Effect.Effect<void, StorageFailure>

/** Puts faults into the replacement of records. */
export const erasures = (store: ErasureStoreShape, at: Faults): ErasureStoreShape => {
  const around = <A>(write: Effect.Effect<A, StorageFailure>) =>
    Effect.suspend(() => at("erase.before")).pipe(
      Effect.andThen(write),
      Effect.tap(() => Effect.suspend(() => at("erase.after")))
    )
  return {
    people: Effect.andThen(
      Effect.suspend(() => at("read")),
      store.people
    ),
    note: (person) => around(store.note(person)),
    replace: (account, replacement) => around(store.replace(account, replacement)),
    deleteRequests: (account, traces) => around(store.deleteRequests(account, traces))
  }
}

export const layer = (at: Faults): Layer.Layer<Journal | Views, never, Journal | Views> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const journal = yield* Journal
      const views = yield* Views
      const around = <A, E>(name: "append" | "apply", write: Effect.Effect<A, E>) =>
        Effect.suspend(() => at(`${name}.before`)).pipe(
          Effect.andThen(write),
          Effect.tap(() => Effect.suspend(() => at(`${name}.after`)))
        )
      const reading = <A, E>(read: Effect.Effect<A, E>) =>
        Effect.andThen(
          Effect.suspend(() => at("read")),
          read
        )
      const faultyJournal = Journal.of({
        ...journal,
        append: (rows) => around("append", journal.append(rows)),
        slices: (slices) => reading(journal.slices(slices)),
        read: (account, after, limit) => reading(journal.read(account, after, limit)),
        at: (places) => reading(journal.at(places)),
        versions: (accounts) => reading(journal.versions(accounts)),
        accounts: reading(journal.accounts),
        heads: reading(journal.heads)
      })
      const faultyViews = Views.of({
        ...views,
        apply: (projection, leasedUntil) => around("apply", views.apply(projection, leasedUntil)),
        checkpoint: (account) => reading(views.checkpoint(account)),
        documents: (addresses) => reading(views.documents(addresses)),
        keepNumber: (account, number) => reading(views.keepNumber(account, number)),
        accountsNumbered: (number) => reading(views.accountsNumbered(number)),
        accountsUnnumbered: (limit) => reading(views.accountsUnnumbered(limit)),
        keys: (addresses) => reading(views.keys(addresses)),
        standing: (account) => reading(views.standing(account)),
        outdated: reading(views.outdated),
        search: (account, query) => reading(views.search(account, query)),
        revisions: (account, query) => reading(views.revisions(account, query)),
        tallies: (account, query) => reading(views.tallies(account, query)),
        behind: reading(views.behind),
        accounts: reading(views.accounts),
        timers: (account, limit) => reading(views.timers(account, limit)),
        nextTimers: (...options) => reading(views.nextTimers(...options)),
        timersNamed: (...options) => reading(views.timersNamed(...options)),
        timerCounts: (name) => reading(views.timerCounts(name)),
        subscriptions: (account) => reading(views.subscriptions(account)),
        takeDeliveries: (options) => reading(views.takeDeliveries(options)),
        nextDelivery: (busy, partitions) => reading(views.nextDelivery(busy, partitions)),
        freeDeliveries: (partitions) => reading(views.freeDeliveries(partitions)),
        delivery: (account, destination, id) => reading(views.delivery(account, destination, id)),
        deliveries: (account, query) => reading(views.deliveries(account, query)),
        eventDeliveries: (events, limit) => reading(views.eventDeliveries(events, limit)),
        pendingDeliveries: (events) => reading(views.pendingDeliveries(events)),
        list: (account, query) => reading(views.list(account, query)),
        newest: (queries) => reading(views.newest(queries)),
        event: (address) => reading(views.event(address)),
        events: (account, query) => reading(views.events(account, query)),
        runningTime: (now) => reading(views.runningTime(now)),
        keepRunningTime: (at) => reading(views.keepRunningTime(at)),
        expireKeys: (before, limit) => reading(views.expireKeys(before, limit)),
        expireEvents: (account, before, limit) => reading(views.expireEvents(account, before, limit)),
        scan: (account, table, after, limit) => reading(views.scan(account, table, after, limit)),
        clear: (account) => reading(views.clear(account)),
        clearOutdated: (account) => reading(views.clearOutdated(account))
      })
      return Context.make(Journal, faultyJournal).pipe(Context.add(Views, faultyViews))
    })
  )
