/**
 * Group commit: whatever records have queued up while the last flush was under way go into the next single append.
 *
 * - One flush at a time, in queue order: a later record of an account never becomes durable before an earlier one.
 * - A fenced account costs only itself: the others' records of the same flush are appended right after.
 * - Any other failure leaves the outcome open, so every actor in the flush closes and starts anew from the log.
 */
import { Cause, Effect, Exit, Option, Queue } from "effect"
import type { Scope } from "effect"
import type { Actor, ClosedReason } from "./Actor.ts"
import { Closed } from "./Actor.ts"
import type { AccountId } from "./Document.ts"
import type { Fenced, StorageFailure } from "./Journal.ts"
import { Journal } from "./Journal.ts"
import type { Sealed } from "./Record.ts"

/** Records in one flush, at most. */
const FLUSH_MAX = 512

export interface Entry {
  readonly actor: Actor
  readonly sealed: Sealed
  readonly settle: (exit: Exit.Exit<void, Closed>) => void
}

export interface GroupCommit {
  readonly append: (actor: Actor, sealed: Sealed, settle: Entry["settle"]) => void
  /** Waits until nothing is queued. */
  readonly drained: Effect.Effect<void>
}

export const make = Effect.fnUntraced(function* (options: {
  /** Waits until the projector can take more. */
  readonly room: Effect.Effect<void>
  /** Told of each record as it becomes durable, before its command is answered. */
  readonly onDurable: (entry: Entry) => void
  readonly onClosed: (actor: Actor) => void
}): Effect.fn.Return<GroupCommit, never, Journal | Scope.Scope> {
  const journal = yield* Journal
  const queue = yield* Queue.unbounded<Entry>()
  let unsettled = 0
  const drainWaiters: Array<() => void> = []

  const settle = (entry: Entry, exit: Exit.Exit<void, Closed>) => {
    entry.settle(exit)
    if (--unsettled === 0) for (const resume of drainWaiters.splice(0)) resume()
  }

  const close = (entries: ReadonlyArray<Entry>, reason: ClosedReason) => {
    for (const { actor } of entries) {
      if (actor.closed !== null) continue
      actor.close(reason)
      options.onClosed(actor)
    }
    for (const entry of entries) settle(entry, Exit.fail(entry.actor.closed ?? new Closed(reason)))
  }

  const flush = (batch: ReadonlyArray<Entry>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const live = batch.filter(({ actor }) => actor.closed === null)
      if (live.length < batch.length) {
        close(
          batch.filter(({ actor }) => actor.closed !== null),
          "failed"
        )
      }
      if (live.length === 0) return Effect.void
      const rows = live.map(({ sealed: { hash, record, text } }) => ({
        account: record.account,
        version: record.version,
        hash,
        text
      }))
      return Effect.flatMap(Effect.exit(journal.append(rows)), (exit) => {
        if (Exit.isSuccess(exit)) return Effect.sync(() => live.forEach(durable))
        const lost = fencedAccounts(exit.cause)
        const fenced = live.filter(({ actor }) => lost.includes(actor.account))
        if (fenced.length > 0) {
          close(fenced, "fenced")
          return flush(live.filter(({ actor }) => actor.closed === null))
        }
        close(live, "failed")
        return Effect.logError("A flush of the journal failed", exit.cause)
      })
    })

  const durable = (entry: Entry) => {
    entry.actor.markDurable(entry.sealed.record.version)
    options.onDurable(entry)
    settle(entry, Exit.void)
  }

  const flushes = Effect.andThen(options.room, Effect.flatMap(Queue.takeBetween(queue, 1, FLUSH_MAX), flush))
  yield* Effect.forkScoped(Effect.forever(flushes))

  return {
    append: (actor, sealed, settle) => {
      unsettled++
      Queue.offerUnsafe(queue, { actor, sealed, settle })
    },
    drained: Effect.callback<void>((resume) => {
      if (unsettled === 0) resume(Effect.void)
      else drainWaiters.push(() => resume(Effect.void))
    })
  }
})

const fencedAccounts = (cause: Cause.Cause<Fenced | StorageFailure>): ReadonlyArray<AccountId> => {
  const failure = Option.getOrNull(Cause.findErrorOption(cause))
  return failure?._tag === "Fenced" ? failure.accounts : []
}
