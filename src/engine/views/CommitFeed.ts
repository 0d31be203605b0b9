/**
 * The feed of durable records within this process. It passes new deliveries through memory to the dispatcher, wakes the
 * dispatcher for later ones by its wake-up, and notifies the watchers of an account, such as open dashboard pages.
 *
 * It also passes on the timers of a name when they are set. After a start, and when a partition arrives, `Scheduler.ts`
 * passes on those of its near future that are set already.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import type { WakeUpShape } from "../process/WakeUp.ts"
import * as WakeUp from "../process/WakeUp.ts"
import type { AccountId, Millis } from "../log/Document.ts"
import type { JournalRecord } from "../log/Record.ts"
import { type StoredEvent, storedEvents } from "../log/Events.ts"
import type { DueDelivery } from "./Views.ts"

export interface Committed {
  readonly account: AccountId
  /** New deliveries, in the order of their events; due now. `content` is null for an event of an earlier record. */
  readonly deliveries: ReadonlyArray<DueDelivery & { readonly content: StoredEvent | null }>
  /** Destinations whose subscriptions ended: their pending deliveries are canceled. */
  readonly canceled: ReadonlyArray<string>
  /** Set if the record deleted all earlier data of the account. */
  readonly wiped: boolean
}

type Listener = (committed: Committed) => void

/** The kinds of the documents that a record changes, and `event` or `delivery` if it has any. */
export type Changed = ReadonlySet<string>

type Watcher = (changed: Changed) => void

export interface SetTimer {
  readonly account: AccountId
  readonly id: string
  /** Whether a record has set it now; false for a timer that was set before the start, or by another process. */
  readonly isNew: boolean
}

/** Follows the timers of one name. */
export interface TimerFollower {
  readonly name: string
  /** Timers that are set already are passed on if they are due within this time, in milliseconds. */
  readonly aheadMillis: Millis
  /** Called with each timer that a durable record sets. It must not throw. */
  readonly onSet: (timer: SetTimer) => void
}

export interface CommitFeedShape {
  readonly wakeUp: WakeUpShape
  readonly listen: (listener: Listener) => Effect.Effect<void, never, Scope.Scope>
  /** Calls the watcher with each durable record of the account, until the scope closes. It must not throw. */
  readonly watch: (account: AccountId, watcher: Watcher) => Effect.Effect<void, never, Scope.Scope>
  /** Calls the observer with each durable record, until the scope closes. It must be quick and must not throw. */
  readonly observe: (observer: (record: JournalRecord) => void) => Effect.Effect<void, never, Scope.Scope>
  readonly follow: (follower: TimerFollower) => Effect.Effect<void, never, Scope.Scope>
  readonly followers: ReadonlySet<TimerFollower>
  /** Publishes a durable record; returns whether a listener has taken its deliveries. */
  readonly publish: (record: JournalRecord) => boolean
}

export class CommitFeed extends Context.Service<CommitFeed, CommitFeedShape>()("till/engine/CommitFeed") {
  static readonly layer: Layer.Layer<CommitFeed> = Layer.sync(CommitFeed, () => {
    const wakeUp = WakeUp.make()
    const listeners = new Set<Listener>()
    const watchers = new Map<AccountId, Set<Watcher>>()
    const observers = new Set<(record: JournalRecord) => void>()
    const followers = new Set<TimerFollower>()
    return CommitFeed.of({
      wakeUp,
      listen: (listener) =>
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.sync(() => listeners.add(listener)),
            () => Effect.sync(() => listeners.delete(listener))
          )
        ),
      watch: (account, watcher) =>
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.sync(() => {
              const others = watchers.get(account)
              if (others === undefined) watchers.set(account, new Set([watcher]))
              else others.add(watcher)
            }),
            () =>
              Effect.sync(() => {
                const others = watchers.get(account)!
                others.delete(watcher)
                if (others.size === 0) watchers.delete(account)
              })
          )
        ),
      observe: (observer) =>
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.sync(() => observers.add(observer)),
            () => Effect.sync(() => observers.delete(observer))
          )
        ),
      follow: (follower) =>
        Effect.asVoid(
          Effect.acquireRelease(
            Effect.sync(() => followers.add(follower)),
            () => Effect.sync(() => followers.delete(follower))
          )
        ),
      followers,
      publish: (record) => {
        for (const observer of observers) observer(record)
        if (record.timers.length > 0) for (const follower of followers) passOn(record, follower)
        const watching = watchers.get(record.account)
        if (watching !== undefined) {
          const changed = changedBy(record)
          for (const watcher of watching) watcher(changed)
        }
        if (record.advanced > 0 || record.hastened.length > 0) wakeUp.set(0)
        for (const { nextAttemptAt } of record.attempts) {
          if (nextAttemptAt !== null) wakeUp.set(nextAttemptAt - record.clock)
        }
        const { deliveries, subscriptions, wiped } = record
        if (deliveries.length === 0 && subscriptions.length === 0 && !wiped) return false
        if (listeners.size === 0) {
          wakeUp.set(0)
          return false
        }
        const committed = committedOf(record)
        for (const listener of listeners) listener(committed)
        return true
      }
    })
  })
}

const passOn = ({ account, timers }: JournalRecord, { name, onSet }: TimerFollower): void => {
  for (const timer of timers)
    if (timer.name === name && timer.dueAt !== null) onSet({ account, id: timer.id, isNew: true })
}

const changedBy = ({ attempts, changes, deliveries, events, hastened }: JournalRecord): Changed => {
  const changed = new Set(changes.map(({ kind }) => kind))
  if (events.length > 0) changed.add("event")
  if (deliveries.length + attempts.length + hastened.length > 0) changed.add("delivery")
  return changed
}

const committedOf = (record: JournalRecord): Committed => {
  const { account, deliveries, subscriptions, wiped } = record
  const contents = storedEvents(record)
  return {
    account,
    deliveries: deliveries.map(({ destination, event, eventVersion, id }) => {
      return { account, id, destination, event, eventVersion, attempt: 1, content: contents.get(event) ?? null }
    }),
    canceled: subscriptions.filter(({ types }) => types === null).map(({ destination }) => destination),
    wiped
  }
}
