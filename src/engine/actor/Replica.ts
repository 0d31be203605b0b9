/**
 * The replica of an account that another process serves: what is to be known everywhere, read here from memory.
 *
 * - It is an actor that takes no commands, fires no timers and writes nothing. It follows the log: what others have
 *   changed, it forgets, and finds again in the views.
 * - It asks the log for the account's newest version every second, and at once when it hears of a record. What it has
 *   in memory counts for two seconds after it was found to be the newest, by the monotonic clock. So what was changed
 *   counts everywhere after two seconds, whatever was lost or frozen meanwhile.
 * - Who must not miss what was acknowledged before (a key that nobody knows may just have been made) asks for the
 *   newest. All who ask meanwhile wait for the same look, and looks have a pause between them: a flood of wrong keys is
 *   no flood of queries.
 */
import type { Scope } from "effect"
import { Clock, Effect, Exit, Latch } from "effect"
import type { ActorServices } from "./Actor.ts"
import { Actor } from "./Actor.ts"
import type { AccountId } from "../log/Document.ts"
import type { StorageFailure } from "../log/Journal.ts"
import { Journal } from "../log/Journal.ts"
import * as Loop from "../process/Loop.ts"
import { Placement } from "../process/Placement.ts"
import { Projector } from "./Projector.ts"
import type { ChainHead, JournalCorrupt, JournalRecord } from "../log/Record.ts"
import { checked, GENESIS, unsealAll } from "../log/Record.ts"
import type { MailboxFull } from "../process/BoundedQueue.ts"
import { BoundedQueue } from "../process/BoundedQueue.ts"

/** The log is asked so often for what nobody has told of. */
const POLL_MILLIS = 1000
/** What was the newest when the log was asked counts for so long. */
const RECENT_MILLIS = 2000
/** Pause between two looks into the log. */
const PAUSE_MILLIS = 25
const PAGE = 1000
const NANOS_PER_MILLI = 1_000_000n

export interface Replica {
  /** What was the account's newest state within the last two seconds, if it is in memory. */
  readonly recent: () => Actor | undefined
  /** The newest state: it has everything that was acknowledged before the call. */
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
  const look = yield* makeLook(account, { ...services, lose: outdate })
  const waiting = new BoundedQueue(services.mailboxCapacity)
  const wanted = Latch.makeUnsafe(false)
  let waiters: Array<Waiter> = []
  let actor: Actor | undefined
  let confirmedAt = Number.NEGATIVE_INFINITY
  const now = (): number => Number(clock.monotonicTimeNanosUnsafe() / NANOS_PER_MILLI)

  const step = Effect.gen(function* () {
    yield* actor === undefined ? wanted.await : Effect.timeoutOption(wanted.await, POLL_MILLIS)
    wanted.closeUnsafe()
    // Who serves the account needs no replica of it.
    if (waiters.length === 0 && placement.isHere(account)) {
      actor?.close("passivated")
      actor = undefined
      return
    }
    const asking = waiters.splice(0)
    const askedAt = now()
    const exit = yield* Effect.exit(look(actor))
    if (Exit.isSuccess(exit)) {
      actor = exit.value
      confirmedAt = askedAt
    }
    for (const waiter of asking) waiter(exit)
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

/** Gives the actor that it is given once that has the newest state, or another one. */
const makeLook = Effect.fnUntraced(function* (account: AccountId, services: ActorServices) {
  const journal = yield* Journal
  const projector = yield* Projector
  /** The record that the actor has come to. */
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
      const sealed = yield* checked(() => unsealAll(from, rows))
      records.push(...sealed.map(({ record }) => record))
      from = rows.at(-1)!
    }
    // Before the actor forgets what it has: it finds the newest there.
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
      // The storage was put back to an earlier state.
      actor.close("fenced")
      return yield* begin
    })
})
