/**
 * Group commit: all records that have queued up during a flush go into the next one, which is a single append.
 *
 * - Flushes have two lanes (`FlushLanes.ts`), so records do not wait for the large flushes of other accounts. Each lane
 *   has one flush at a time, with an account's records in queue order: a later record never becomes durable before an
 *   earlier one. If a lane's queue does not fit into a flush, its accounts take turns.
 * - A fenced account fails alone: the other accounts' records of the same flush are appended right after.
 * - After any other failure the records may be durable or not, so every actor in the flush closes, and starts anew from
 *   the log.
 */
import { Cause, Effect, Exit, Option, type Scope } from "effect"
import { type Actor, Closed, type ClosedReason } from "./Actor.ts"
import { type Entry, FlushLanes, type Lane } from "./FlushLanes.ts"
import type { AccountId } from "../log/Document.ts"
import { type Fenced, Journal, type JournalShape, type StorageFailure } from "../log/Journal.ts"
import { Condition } from "../process/Condition.ts"
import { Fifo } from "../process/Fifo.ts"
import * as Loop from "../process/Loop.ts"
import * as Metrics from "../process/Metrics.ts"
import { Traces, type TraceStore } from "../process/Traces.ts"
import type { ChainedRow, Sealed } from "../log/Record.ts"
import { logOf } from "../process/Log.ts"

const log = logOf("engine")

/** Duration below which a turn of the event loop counts as idle. */
const IDLE_TURN_MILLIS = 0.05
/** The time budget per turn of the event loop for answering the commands of large flushes, in milliseconds. */
const ANSWERING_MILLIS = 2
/** The same beside records of other accounts. Shorter turns cost throughput. */
const ANSWERING_MILLIS_BESIDE = 0.25
/** How long other accounts' records count, in milliseconds. */
const BESIDE_MILLIS = 1000

const FLUSH_SECONDS = {
  name: "till_flush_duration_seconds",
  description: "Time in which a flush wrote its records to the journal.",
  labels: ["lane"],
  boundaries: [0.0005, 0.001, 0.0025, ...Metrics.SECONDS]
}
const FLUSH_RECORDS = {
  name: "till_flush_records",
  description: "Records of a flush.",
  labels: ["lane"],
  boundaries: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
}
const FAILURES = {
  name: "till_flush_failed_accounts_total",
  description: "Accounts that restarted because another process had written to them (fenced), or their flush failed.",
  labels: ["reason"]
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
  const append = makeAppend(yield* Journal, close, yield* Metrics.counters(FAILURES, [["fenced"], ["failed"]]))
  const traces = yield* Traces
  const names = [["ordinary"], ["bulk"]]
  const measureSeconds = yield* Metrics.histograms(FLUSH_SECONDS, names)
  const measureRecords = yield* Metrics.histograms(FLUSH_RECORDS, names)
  const lanes = new FlushLanes()
  /** The end of the last ordinary flush, by `performance.now()`. */
  let ordinaryAt = -Infinity
  const decided = new Condition()

  const answer = (entry: Entry): void => {
    // Before deciding: the waiting command may read the record from the views at once.
    if (!options.onDurable(entry)) return close([entry], "lapsed")
    entry.actor.markDurable(entry.sealed.record.version)
    decide(entry, Exit.void)
  }

  const flush = (lane: Lane, name: ReadonlyArray<string>, answerAll: (durable: ReadonlyArray<Entry>) => void) => {
    const step = Effect.gen(function* () {
      yield* lane.work.await
      yield* options.room
      yield* gathered(() => lanes.hasEnough(lane), lane.gatherMillisMax)
      lanes.sort(lane, performance.now())
      const batch = lane.take()
      if (batch.length === 0) return
      const begun = performance.now()
      const durable = yield* append(batch)
      measureSeconds(name, (performance.now() - begun) / 1000)
      measureRecords(name, batch.length)
      if (traces !== undefined) traceFlush(traces, durable, begun)
      // Before any answer, which would bring new commands at once: the queue shows how many arrive during a flush.
      lane.noteFlushed(batch.length)
      answerAll(durable)
    })
    return Effect.forkScoped(Loop.forever("flushing of records", step))
  }
  yield* flush(lanes.ordinary, names[0]!, (durable) => {
    ordinaryAt = performance.now()
    for (const entry of durable) answer(entry)
    decided.signal()
  })
  const budgetAt = (now: number) => (now - ordinaryAt < BESIDE_MILLIS ? ANSWERING_MILLIS_BESIDE : ANSWERING_MILLIS)
  yield* flush(
    lanes.bulk,
    names[1]!,
    inTurns(answer, budgetAt, () => decided.signal())
  )

  return {
    append: (actor, sealed, settle) => lanes.push({ actor, sealed, settle }),
    drained: Effect.suspend(() => {
      const { undecided } = lanes
      const areDecided = () => undecided.every(({ settle }) => settle === null)
      return areDecided() ? Effect.void : decided.waitFor(() => areDecided() || undefined)
    })
  }
})

const decide = (entry: Entry, exit: Exit.Exit<void, Closed>): void => {
  const { settle } = entry
  entry.settle = null
  settle?.(exit)
}

/**
 * Makes a function that answers records in their order, some in each turn of the event loop. So requests of other
 * accounts are read in between, and the next flush runs in the meantime.
 */
const inTurns = (answer: (entry: Entry) => void, budgetAt: (now: number) => number, onTurnsEnd: () => void) => {
  const waiting = new Fifo<Entry>()
  const answerSome = () => {
    const now = performance.now()
    const ends = now + budgetAt(now)
    while (waiting.size > 0 && performance.now() < ends) answer(waiting.shift())
    onTurnsEnd()
    if (waiting.size > 0) setImmediate(answerSome)
  }
  return (durable: ReadonlyArray<Entry>): void => {
    const isUnderWay = waiting.size > 0
    for (const entry of durable) waiting.push(entry)
    if (!isUnderWay) answerSome()
  }
}

/** Adds the flush to the trace of each record's request, and remembers the trace for the record's webhooks. */
const traceFlush = (traces: TraceStore, durable: ReadonlyArray<Entry>, from: number): void => {
  const to = performance.now()
  for (const { sealed } of durable) {
    const { deliveries, request } = sealed.record
    const parent = request === null ? undefined : traces.find(request.id)
    if (parent === undefined) continue
    traces.add("flush", parent, { from, to }, { attributes: { "till.records": durable.length } })
    for (const { event } of deliveries) traces.remember(event, parent)
  }
}

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
    for (const entry of entries) decide(entry, closed)
  }

/** Appends records and returns the durable ones. The waiting commands of the others fail with the actor's close. */
const makeAppend = (
  journal: JournalShape,
  close: Close,
  countFailures: (reason: ReadonlyArray<string>, accounts: number) => void
) => {
  const append = (batch: ReadonlyArray<Entry>): Effect.Effect<ReadonlyArray<Entry>> =>
    Effect.suspend(() => {
      const live = batch.filter(({ actor }) => actor.closed === null)
      if (live.length < batch.length) {
        for (const entry of batch) if (entry.actor.closed !== null) decide(entry, Exit.fail(entry.actor.closed))
      }
      if (live.length === 0) return Effect.succeed([])
      return Effect.flatMap(Effect.exit(journal.append(live.map(rowOf))), (exit) => {
        if (Exit.isSuccess(exit)) return Effect.succeed(live)
        const lost = fencedAccounts(exit.cause)
        const fenced = live.filter(({ actor }) => lost.includes(actor.account))
        if (fenced.length > 0) {
          close(fenced, "fenced")
          countFailures(["fenced"], lost.length)
          return append(live.filter((entry) => !fenced.includes(entry)))
        }
        close(live, "failed")
        countFailures(["failed"], new Set(live.map(({ actor }) => actor)).size)
        return Effect.as(log.error("A flush of the journal failed", exit.cause, { isOfWrite: true }), [])
      })
    })
  return append
}

const rowOf = ({ sealed: { bytes, hash, previous, record } }: Entry): ChainedRow => {
  return { account: record.account, version: record.version, hash, bytes, previous }
}

/**
 * Waits until enough records are queued, or the event loop is idle, so that commands that are about to append join the
 * flush. A flush has a fixed cost, so in a busy process many small ones would take the commands' time. In an idle
 * process the event loop turns at once, and the flush is not delayed.
 */
const gathered = (hasEnough: () => boolean, millisMax: number) =>
  Effect.callback<void>((resume) => {
    if (hasEnough()) return resume(Effect.void)
    const start = performance.now()
    let turned = start
    const turn = () => {
      const now = performance.now()
      const isIdle = now - turned < IDLE_TURN_MILLIS
      if (hasEnough() || isIdle || now - start > millisMax) return resume(Effect.void)
      turned = now
      setImmediate(turn)
    }
    setImmediate(turn)
  })

const fencedAccounts = (cause: Cause.Cause<Fenced | StorageFailure>): ReadonlyArray<AccountId> => {
  const failure = Option.getOrNull(Cause.findErrorOption(cause))
  return failure?._tag === "Fenced" ? failure.accounts : []
}
