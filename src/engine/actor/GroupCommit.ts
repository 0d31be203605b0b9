/**
 * Group commit: whatever records have queued up while the last flush was under way go into the next single append.
 *
 * - One flush at a time, an account's records in queue order: a later one never becomes durable before an earlier one.
 *   Where not all that is queued fits into a flush, accounts take turns.
 * - A fenced account costs only itself: the others' records of the same flush are appended right after.
 * - Any other failure leaves the outcome open, so every actor in the flush closes and starts anew from the log.
 */
import { Cause, Effect, Exit, Latch, Option } from "effect"
import type { Scope } from "effect"
import type { Actor, ClosedReason } from "./Actor.ts"
import { Closed } from "./Actor.ts"
import type { AccountId } from "../log/Document.ts"
import type { Fenced, JournalShape, StorageFailure } from "../log/Journal.ts"
import { Journal } from "../log/Journal.ts"
import * as Loop from "../process/Loop.ts"
import type { ChainedRow, Sealed } from "../log/Record.ts"
import { unlessRefused } from "../process/Writing.ts"

/** A turn of the event loop that is shorter did nothing. */
const IDLE_TURN_MILLIS = 0.05
/** Of the records that the last flush appended or that came meanwhile, so many are flushed without waiting for more. */
const ENOUGH_PART = 2 / 3
/** A busy loop holds a flush up for so long at most. */
const GATHER_MILLIS_MAX = 5
/** Records in one flush, at most, and what they may weigh together unless one alone weighs more, in bytes. */
const FLUSH_MAX = 512
const FLUSH_BYTES_MAX = 16 * 1_048_576

export interface Entry {
  readonly actor: Actor
  readonly sealed: Sealed
  readonly settle: (exit: Exit.Exit<void, Closed>) => void
}

export interface GroupCommit {
  readonly append: (actor: Actor, sealed: Sealed, settle: Entry["settle"]) => void
  /** Waits until what was appended before has come to its end. */
  readonly drained: Effect.Effect<void>
}

interface Options {
  /** Waits until the projector can take more. */
  readonly room: Effect.Effect<void>
  /** Told of each record as it becomes durable, before its command is answered; says whether anybody may know. */
  readonly onDurable: (entry: Entry) => boolean
  /** Told before whoever waits for the actor. */
  readonly onClosed: (actor: Actor) => void
}

export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<GroupCommit, never, Journal | Scope.Scope> {
  const close = makeClose(options.onClosed)
  const append = makeAppend(yield* Journal, close)
  const queue: Array<Entry> = []
  const backlog = new Loop.Backlog()
  const work = Latch.makeUnsafe(false)
  let enough = 1

  const step = Effect.gen(function* () {
    yield* work.await
    yield* options.room
    yield* gathered(queue, enough)
    const batch = takePortion(queue)
    if (queue.length === 0) work.closeUnsafe()
    const durable = yield* append(batch)
    // Before anybody has an answer, and asks again at once: what has queued up shows how much comes during a flush.
    enough = Math.min(Math.ceil((batch.length + queue.length) * ENOUGH_PART), FLUSH_MAX)
    for (const entry of durable) {
      // In this order: whoever waits for the record may at once want to see it in the views.
      if (!options.onDurable(entry)) {
        close([entry], "lapsed")
        continue
      }
      entry.actor.markDurable(entry.sealed.record.version)
      entry.settle(Exit.void)
    }
    backlog.done(batch.length)
  })
  yield* Effect.forkScoped(Loop.forever("flushing of records", step))

  return {
    append: (actor, sealed, settle) => {
      backlog.take()
      queue.push({ actor, sealed, settle })
      work.openUnsafe()
    },
    drained: backlog.drained
  }
})

type Close = (entries: ReadonlyArray<Entry>, reason: ClosedReason) => void

/** Ends the actors of records, and tells whoever waits for the records why they get no answer. */
const makeClose =
  (onClosed: Options["onClosed"]): Close =>
  (entries, reason) => {
    for (const { actor } of entries) {
      if (actor.closed !== null) continue
      // Whoever waits for the actor learns of its end at once, and must not find it again.
      onClosed(actor)
      actor.close(reason)
    }
    const closed = Exit.fail(new Closed(reason))
    for (const { settle } of entries) settle(closed)
  }

/**
 * Appends records and answers which of them are durable; tells whoever waits for another one that its actor is closed.
 */
const makeAppend = (journal: JournalShape, close: Close) => {
  const append = (batch: ReadonlyArray<Entry>): Effect.Effect<ReadonlyArray<Entry>> =>
    Effect.suspend(() => {
      const live = batch.filter(({ actor }) => actor.closed === null)
      if (live.length < batch.length) {
        for (const { actor, settle } of batch) if (actor.closed !== null) settle(Exit.fail(actor.closed))
      }
      if (live.length === 0) return Effect.succeed([])
      return Effect.flatMap(Effect.exit(journal.append(live.map(rowOf))), (exit) => {
        if (Exit.isSuccess(exit)) return Effect.succeed(live)
        const lost = fencedAccounts(exit.cause)
        const fenced = live.filter(({ actor }) => lost.includes(actor.account))
        if (fenced.length > 0) {
          close(fenced, "fenced")
          return append(live.filter((entry) => !fenced.includes(entry)))
        }
        close(live, "failed")
        return Effect.as(unlessRefused(Effect.logError("A flush of the journal failed", exit.cause)), [])
      })
    })
  return append
}

/**
 * Takes out of the queue what may go into one flush. If that is not all, accounts take turns: of each its first record,
 * then of each its second, so that nobody's flush waits for a neighbour's flood.
 */
const takePortion = (queue: Array<Entry>): Array<Entry> => {
  if (queue.length <= FLUSH_MAX && weightOf(queue) <= FLUSH_BYTES_MAX) return queue.splice(0)
  let turns = [...Map.groupBy(queue, ({ actor }) => actor).values()].map((entries) => entries.values())
  const portion = new Set<Entry>()
  let bytes = 0
  while (turns.length > 0) {
    const going: typeof turns = []
    for (const entries of turns) {
      const { done, value: entry } = entries.next()
      if (done === true) continue
      bytes += entry.sealed.bytes.length
      if (portion.size >= FLUSH_MAX || (bytes > FLUSH_BYTES_MAX && portion.size > 0)) {
        const left = queue.filter((other) => !portion.has(other))
        queue.splice(0, queue.length, ...left)
        return [...portion]
      }
      portion.add(entry)
      going.push(entries)
    }
    turns = going
  }
  return queue.splice(0)
}

const weightOf = (queue: ReadonlyArray<Entry>): number =>
  queue.reduce((bytes, { sealed }) => bytes + sealed.bytes.length, 0)

const rowOf = ({ sealed: { bytes, hash, previous, record } }: Entry): ChainedRow => {
  return { account: record.account, version: record.version, hash, bytes, previous }
}

/**
 * Waits until there is enough to flush, or the event loop has nothing else to do: whoever is about to append something
 * may come along. A flush has a price of its own, however few records are in it, so on a busy process many small ones
 * would take the time that the commands need; an idle process turns its loop at once, and the flush is not held up.
 */
const gathered = (queue: ReadonlyArray<Entry>, enough: number) =>
  Effect.callback<void>((resume) => {
    if (queue.length >= enough) return resume(Effect.void)
    const start = performance.now()
    let turned = start
    const turn = () => {
      const now = performance.now()
      const isIdle = now - turned < IDLE_TURN_MILLIS
      if (queue.length >= enough || isIdle || now - start > GATHER_MILLIS_MAX) return resume(Effect.void)
      turned = now
      setImmediate(turn)
    }
    setImmediate(turn)
  })

const fencedAccounts = (cause: Cause.Cause<Fenced | StorageFailure>): ReadonlyArray<AccountId> => {
  const failure = Option.getOrNull(Cause.findErrorOption(cause))
  return failure?._tag === "Fenced" ? failure.accounts : []
}
