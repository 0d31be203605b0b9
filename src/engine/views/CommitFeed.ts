/**
 * The outbox leads straight through memory from a durable record to whoever carries its deliveries. Its alarm wakes the
 * carrier for what is due later. Whoever shows an account to somebody is told of each of its records as well.
 */
import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import type { WakeUpShape } from "../process/WakeUp.ts"
import * as WakeUp from "../process/WakeUp.ts"
import type { AccountId } from "../log/Document.ts"
import type { JournalRecord } from "../log/Record.ts"
import type { StoredEvent } from "../log/Events.ts"
import { storedEvents } from "../log/Events.ts"
import type { DueDelivery } from "./Views.ts"

/** `Committed` says what a record means for deliveries. */
export interface Committed {
  readonly account: AccountId
  /** New ones, in the order of their events; due now. `content` is null for an event of an earlier record. */
  readonly deliveries: ReadonlyArray<DueDelivery & { readonly content: StoredEvent | null }>
  /** Destinations that are not subscribed any more: what was pending for them is canceled. */
  readonly canceled: ReadonlyArray<string>
  /** The account has forgotten everything. */
  readonly wiped: boolean
}

type Listener = (committed: Committed) => void

/** Kinds of the documents that a record changes, and `event` or `delivery` if it has any. */
export type Changed = ReadonlySet<string>

type Watcher = (changed: Changed) => void

export interface CommitFeedShape {
  readonly alarm: WakeUpShape
  readonly listen: (listener: Listener) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Tells, until the scope closes, what changes in an account with each record that becomes durable in this process.
   * The watcher must not throw.
   */
  readonly watch: (account: AccountId, watcher: Watcher) => Effect.Effect<void, never, Scope.Scope>
  /** Tells of a record that is durable now; answers whether somebody has taken its deliveries over. */
  readonly publish: (record: JournalRecord) => boolean
}

export class CommitFeed extends Context.Service<CommitFeed, CommitFeedShape>()("till/engine/CommitFeed") {
  static readonly layer: Layer.Layer<CommitFeed> = Layer.sync(CommitFeed, () => {
    const alarm = WakeUp.make()
    const listeners = new Set<Listener>()
    const watchers = new Map<AccountId, Set<Watcher>>()
    return CommitFeed.of({
      alarm,
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
      publish: (record) => {
        const watching = watchers.get(record.account)
        if (watching !== undefined) {
          const changed = changedBy(record)
          for (const watcher of watching) watcher(changed)
        }
        if (record.advanced > 0 || record.hastened.length > 0) alarm.set(0)
        for (const { nextAttemptAt } of record.attempts) {
          if (nextAttemptAt !== null) alarm.set(nextAttemptAt - record.clock)
        }
        const { deliveries, subscriptions, wiped } = record
        if (deliveries.length === 0 && subscriptions.length === 0 && !wiped) return false
        if (listeners.size === 0) {
          alarm.set(0)
          return false
        }
        const committed = committedOf(record)
        for (const listener of listeners) listener(committed)
        return true
      }
    })
  })
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
