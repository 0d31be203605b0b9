/**
 * The replica of an account that another process serves, for data that every process reads from memory.
 *
 * - It is an actor that runs no commands, fires no timers and writes nothing. It follows the log: it removes documents
 *   that other processes have changed, and reads them again from the views.
 * - It reads the account's newest version from the log every second, and after each notification of a record. Its state
 *   is valid for two seconds after it was the newest, by the monotonic clock. So every change is visible in all
 *   processes after two seconds, even if notifications are lost or processes freeze.
 * - A read that must see all acknowledged commands (an unknown API key may be new) waits for the newest state. All such
 *   reads share one read of the log, and there is a pause between two of them: a flood of wrong keys causes no flood of
 *   queries.
 */
import { Clock, Effect, Exit, Latch, type Scope } from "effect"
import { Actor, type ActorServices } from "./Actor.ts"
import type { AccountId } from "../log/Document.ts"
import { Journal, type StorageFailure } from "../log/Journal.ts"
import * as Loop from "../process/Loop.ts"
import { Placement } from "../process/Placement.ts"
import { Projector } from "./Projector.ts"
import { type ChainHead, tryRead, GENESIS, type JournalCorrupt, type JournalRecord, unsealAll } from "../log/Record.ts"
import { BoundedQueue, type MailboxFull } from "../process/BoundedQueue.ts"

/** Interval of reads of the log without a notification. */
const POLL_MILLIS = 1000
/** How long a state is valid after the log was read. */
const RECENT_MILLIS = 2000
/** Pause between two reads of the log. */
const PAUSE_MILLIS = 25
const PAGE = 1000
const NANOS_PER_MILLI = 1_000_000n

export interface Replica {
  /** A state that was the newest within the last two seconds, if there is one in memory. */
  readonly recent: () => Actor | undefined
  /** Returns a state with all commands acknowledged before the call. */
  readonly newest: Effect.Effect<Actor, StorageFailure | JournalCorrupt | MailboxFull>
}

type Waiter = (exit: Exit.Exit<Actor, StorageFailure | JournalCorrupt>) => void

export const make = Effect.fnUntraced(function* (
  account: AccountId,
  services: ActorServices
): Effect.fn.Return<Replica, never, Journal | Placement | Projector | Scope.Scope> {
  const placement = yield* Placement
  const clock = yield* Clock.Clock
  const outdate = () => {
    confirmedAt = Number.NEGATIVE_INFINITY
  }
  const refresh = yield* makeRefresh(account, { ...services, lose: outdate })
  const waiting = new BoundedQueue(services.mailboxCapacity, services.clock)
  const wanted = Latch.makeUnsafe(false)
  let waiters: Array<Waiter> = []
  let actor: Actor | undefined
  let confirmedAt = Number.NEGATIVE_INFINITY
  const now = (): number => Number(clock.monotonicTimeNanosUnsafe() / NANOS_PER_MILLI)

  const step = Effect.gen(function* () {
    yield* actor === undefined ? wanted.await : Effect.timeoutOption(wanted.await, POLL_MILLIS)
    wanted.closeUnsafe()
    // The process that serves the account needs no replica of it.
    if (waiters.length === 0 && placement.isHere(account)) {
      actor?.close("passivated")
      actor = undefined
      return
    }
    const served = waiters.splice(0)
    const readAt = now()
    const exit = yield* Effect.exit(refresh(actor))
    if (Exit.isSuccess(exit)) {
      actor = exit.value
      confirmedAt = readAt
    }
    for (const waiter of served) waiter(exit)
    yield* Effect.sleep(PAUSE_MILLIS)
  })
  yield* Effect.forkScoped(Loop.forever("following of a replicated account", step))
  yield* placement.listen({
    onChanged: (other) => {
      if (other === account && actor !== undefined) wanted.openUnsafe()
    }
  })

  const newest = Effect.callback<Actor, StorageFailure | JournalCorrupt>((resume) => {
    waiters.push(resume)
    wanted.openUnsafe()
    return Effect.sync(() => {
      waiters = waiters.filter((waiter) => waiter !== resume)
    })
  })
  return {
    recent: () => (actor?.closed === null && now() - confirmedAt < RECENT_MILLIS ? actor : undefined),
    newest: waiting.during(newest)
  }
})

/** Makes a function that brings an actor to the newest state, or replaces it by a new one, and returns it. */
const makeRefresh = Effect.fnUntraced(function* (account: AccountId, services: ActorServices) {
  const journal = yield* Journal
  const projector = yield* Projector
  /** The last record that the actor has. */
  let last: ChainHead = { version: 0, hash: GENESIS }

  const begin = Effect.gen(function* () {
    yield* services.runningTime.ready
    const head = yield* projector.catchUp(account)
    last = head
    return new Actor(account, { head, subscriptions: [], timers: [] }, services)
  })
  const follow = Effect.fnUntraced(function* (actor: Actor) {
    const records: Array<JournalRecord> = []
    let from = last
    for (;;) {
      const rows = yield* journal.read(account, from.version, PAGE)
      if (rows.length === 0) break
      const sealed = yield* tryRead(() => unsealAll(from, rows))
      records.push(...sealed.map(({ record }) => record))
      from = rows.at(-1)!
    }
    // First the views, because the actor then reads changed documents from there.
    yield* projector.catchUp(account, records.at(-1)?.version)
    actor.follow(records)
    last = from
    return actor
  })
  return (actor: Actor | undefined): Effect.Effect<Actor, StorageFailure | JournalCorrupt> =>
    Effect.gen(function* () {
      if (actor === undefined || actor.closed !== null) return yield* begin
      const version = (yield* journal.versions([account])).get(account) ?? 0
      if (version === actor.version) return actor
      if (version > actor.version) return yield* follow(actor)
      // The storage was reset to an earlier state.
      actor.close("fenced")
      return yield* begin
    })
})
