/**
 * Group commit: all records that have queued up during a flush go into the next one, which is a single append.
 *
 * - One flush runs at a time, with an account's records in queue order: a later record never becomes durable before an
 *   earlier one. If the queue does not fit into a flush, accounts take turns.
 * - A fenced account fails alone: the other accounts' records of the same flush are appended right after.
 * - After any other failure the records may be durable or not, so every actor in the flush closes, and starts anew from
 *   the log.
 */
import { Cause, Effect, Exit, Latch, Option, type Scope } from "effect"
import { type Actor, Closed, type ClosedReason } from "./Actor.ts"
import type { AccountId } from "../log/Document.ts"
import { type Fenced, Journal, type JournalShape, type StorageFailure } from "../log/Journal.ts"
import * as Loop from "../process/Loop.ts"
import type { ChainedRow, Sealed } from "../log/Record.ts"
import { unlessRefused } from "../process/Writing.ts"

/** Duration below which a turn of the event loop counts as idle. */
const IDLE_TURN_MILLIS = 0.05
/** Share of the records appended by the last flush, or queued during it, with which the next one starts at once. */
const ENOUGH_PART = 2 / 3
/** Longest wait of a flush for a busy event loop. */
const GATHER_MILLIS_MAX = 5
/** Limits of one flush, in records and bytes. A single larger record is flushed alone. */
const FLUSH_MAX = 512
const FLUSH_BYTES_MAX = 16 * 1_048_576

export interface Entry {
  readonly actor: Actor
  readonly sealed: Sealed
  readonly settle: (exit: Exit.Exit<void, Closed>) => void
}

export interface GroupCommit {
  readonly append: (actor: Actor, sealed: Sealed, settle: Entry["settle"]) => void
  /** Waits until all records appended before the call are durable or have failed. */
  readonly drained: Effect.Effect<void>
}

interface Options {
  /** Waits until the projector can take more records. */
  readonly room: Effect.Effect<void>
  /** Called with each record that has become durable, before its command is answered. False if that is not allowed. */
  readonly onDurable: (entry: Entry) => boolean
  /** Called before the commands that wait for the actor fail. */
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
    // Before any answer, which would bring new commands at once: the queue shows how many arrive during a flush.
    enough = Math.min(Math.ceil((batch.length + queue.length) * ENOUGH_PART), FLUSH_MAX)
    for (const entry of durable) {
      // Before settling: the waiting command may read the record from the views at once.
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

/** Closes the actors of records, and fails the records' waiting commands with the reason. */
const makeClose =
  (onClosed: Options["onClosed"]): Close =>
  (entries, reason) => {
    for (const { actor } of entries) {
      if (actor.closed !== null) continue
      // First: commands that wait for the actor run at once when it closes, and must not find it again.
      onClosed(actor)
      actor.close(reason)
    }
    const closed = Exit.fail(new Closed(reason))
    for (const { settle } of entries) settle(closed)
  }

/** Appends records and returns the durable ones. The waiting commands of the others fail with the actor's close. */
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
 * Takes the records of one flush out of the queue. If not all fit, accounts take turns (the first record of each, then
 * the second of each), so that no account waits for another one's flood.
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
 * Waits until enough records are queued, or the event loop is idle, so that commands that are about to append join the
 * flush. A flush has a fixed cost, so in a busy process many small ones would take the commands' time. In an idle
 * process the event loop turns at once, and the flush is not delayed.
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
