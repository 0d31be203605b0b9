/**
 * The projector writes durable records into the views, after the journal and many per transaction.
 *
 * - The views' checkpoint guards every step: rows are applied only if they start at the checkpoint. If another process
 *   or an activation has moved it, the account is caught up from the journal instead.
 * - A failing storage is retried for as long as it takes; during that time `room` holds back the flushes.
 * - A wipe deletes all rows of its account, which takes seconds for millions. It is applied beside the others: the
 *   account's later records wait for it, and are caught up from the journal.
 */
import { Clock, Context, Effect, Latch, Layer, Schedule, type Scope, Stream } from "effect"
import type { Actor, Closed, Head } from "./Actor.ts"
import type { AccountId } from "../log/Document.ts"
import { DocumentFormats } from "../views/DocumentFormats.ts"
import { Journal, type StorageFailure } from "../log/Journal.ts"
import * as Loop from "../process/Loop.ts"
import { LAG_BYTES_MAX, MEMORY, MEMORY_LIMIT } from "../process/Memory.ts"
import * as Metrics from "../process/Metrics.ts"
import { Traces, type TraceStore } from "../process/Traces.ts"
import { piecesOf, project, type Projection } from "../views/Projection.ts"
import { Progress } from "../process/Progress.ts"
import {
  tryRead,
  GENESIS,
  type JournalCorrupt,
  type JournalRecord,
  missingRecord,
  readRow,
  type SealedRecord,
  unsealAll
} from "../log/Record.ts"
import { Views } from "../views/Views.ts"
import { logOf } from "../process/Log.ts"

const log = logOf("engine")

/** Records in one transaction, at most. */
const BATCH_MAX = 512
/** How long records gather if no read waits for them. */
const GATHER_MILLIS = 50
/** Records read and projected together during a catch-up. */
const CATCH_UP_PAGE = 250

/** Length of a delivery's lease, in milliseconds. No attempt can take longer. */
export const LEASE_MILLIS = 120_000

interface Pending {
  readonly actor: Actor
  readonly record: SealedRecord
  readonly bytes: number
  /** When the record became durable, by `performance.now()`. */
  readonly since: number
  /** Whether this process has the lease of the record's deliveries. */
  readonly leased: boolean
}

const LAG_RECORDS = {
  name: "till_projection_lag_records",
  description: "Durable records that the views do not show yet."
}
const LAG_SECONDS = {
  name: "till_projection_lag_seconds",
  description: "Age of the oldest durable record that the views do not show yet; 0 without one."
}

/** A wipe that is being applied. */
interface Wipe {
  /** The newest record of the account after the wipe. */
  newest: Pending | undefined
  readonly done: Latch.Latch
}

export interface ProjectorShape {
  /** Takes a record over that has just become durable. An account's records must come in ascending order. */
  readonly offer: (pending: Pending) => void
  /** Waits until the views have this version of the actor's account, and hurries the projector. */
  readonly reach: (actor: Actor, version: number) => Effect.Effect<void, Closed>
  /**
   * Projects the journal's records after the checkpoint, and returns the account's head. With a target, it ends at that
   * version: records may be added faster than they are projected.
   */
  readonly catchUp: (account: AccountId, target?: number) => Effect.Effect<Head, StorageFailure | JournalCorrupt>
  /** Waits until all records offered before the call are projected, and hurries the projector. */
  readonly drained: Effect.Effect<void>
  /** Waits for the same without hurrying the projector. */
  readonly caughtUp: Effect.Effect<void>
  /** Waits while the views are too far behind the journal. */
  readonly room: Effect.Effect<void>
}

export class Projector extends Context.Service<Projector, ProjectorShape>()("till/engine/Projector") {
  static readonly layer: Layer.Layer<Projector, never, DocumentFormats | Journal | Views> = Layer.effect(
    Projector,
    Effect.suspend(() => make)
  )
}

const make: Effect.Effect<ProjectorShape, never, DocumentFormats | Journal | Views | Scope.Scope> = Effect.gen(
  function* () {
    const catchUp = yield* makeCatchUp
    const { wiped, write } = yield* makeWriter(catchUp)
    const traces = yield* Traces
    let pending: Array<Pending> = []
    let pendingBytes = 0
    /** Records that are being written. */
    let writing: ReadonlyArray<Pending> = []
    const backlog = new Loop.Backlog()
    const work = Latch.makeUnsafe(false)
    const urgent = Latch.makeUnsafe(false)
    const roomy = Latch.makeUnsafe(true)

    const step = Effect.gen(function* () {
      yield* work.await
      if (pending.length < BATCH_MAX) yield* Effect.timeoutOption(urgent.await, GATHER_MILLIS)
      const records = pending.slice(0, BATCH_MAX).map(({ record }) => record)
      const taken = pending.splice(0, piecesOf(records)[0]!.length)
      for (const { bytes } of taken) pendingBytes -= bytes
      // Stays open for the rest of the pending records: a hurried read may wait for them.
      if (pending.length === 0) urgent.closeUnsafe()
      writing = taken
      const begun = performance.now()
      yield* write(taken)
      writing = []
      if (traces !== undefined) traceProjection(traces, taken, begun)
      if (pendingBytes < LAG_BYTES_MAX) roomy.openUnsafe()
      if (pending.length === 0) work.closeUnsafe()
      backlog.done(taken.length)
    })
    yield* Effect.forkScoped(Loop.forever("projection", step))

    yield* Metrics.observeGauge(LAG_RECORDS, () => writing.length + pending.length)
    yield* Metrics.observeGauge(LAG_SECONDS, () => {
      const oldest = writing[0] ?? pending[0]
      return oldest === undefined ? 0 : (performance.now() - oldest.since) / 1000
    })
    yield* Metrics.observeGauge(MEMORY, () => pendingBytes, { owner: "projection" })
    yield* Metrics.observeGauge(MEMORY_LIMIT, () => LAG_BYTES_MAX, { owner: "projection" })

    const hurry = Effect.sync(() => {
      if (pending.length > 0) urgent.openUnsafe()
    })
    const caughtUp = Effect.andThen(backlog.drained, wiped)
    return {
      offer: (entry) => {
        pending.push(entry)
        pendingBytes += entry.bytes
        backlog.take()
        work.openUnsafe()
        if (pendingBytes >= LAG_BYTES_MAX) roomy.closeUnsafe()
      },
      reach: (actor, version) =>
        version <= actor.projected ? Effect.void : Effect.andThen(hurry, actor.whenProjected(version)),
      catchUp,
      drained: Effect.andThen(hurry, caughtUp),
      caughtUp,
      room: roomy.await
    }
  }
)

/** Adds the projection to the trace of each record's request. */
const traceProjection = (traces: TraceStore, written: ReadonlyArray<Pending>, from: number): void => {
  const to = performance.now()
  for (const { record, since } of written) {
    const parent = record.request === null ? undefined : traces.find(record.request.id)
    const attributes = { "till.records": written.length, "till.waited_ms": from - since }
    if (parent !== undefined) traces.add("projection", parent, { from, to }, { attributes })
  }
}

/** Makes the part that writes records which have been offered, and knows the accounts that are being wiped. */
const makeWriter = Effect.fnUntraced(function* (catchUp: ProjectorShape["catchUp"]) {
  const views = yield* Views
  const scope = yield* Effect.scope
  const wipes = new Map<AccountId, Wipe>()

  const applied = (batch: ReadonlyArray<Pending>, refused: ReadonlyArray<AccountId>) =>
    Effect.forEach(
      new Set(batch.map(({ actor }) => actor)),
      (actor) => {
        const newest = batch.findLast((entry) => entry.actor === actor)!.record.version
        if (!refused.includes(actor.account)) return Effect.sync(() => actor.markProjected(newest))
        if (actor.closed !== null) return Effect.void
        return catchUp(actor.account, newest).pipe(
          Effect.map((head) => actor.markProjected(Math.min(head.projected, actor.durable))),
          // The other accounts' projections must continue.
          Effect.catchTag("JournalCorrupt", (corrupt) => {
            actor.close("failed")
            return log.error(`The views of account ${actor.account} cannot be brought up to date`, corrupt.message, {
              cause: "outdated views"
            })
          })
        )
      },
      { discard: true }
    )

  const apply = Effect.fnUntraced(function* (batch: ReadonlyArray<Pending>, projection: Projection) {
    const leasedUntil = batch.some(({ leased }) => leased) ? (yield* Clock.currentTimeMillis) + LEASE_MILLIS : 0
    yield* retried(Effect.flatMap(views.apply(projection, leasedUntil), (refused) => applied(batch, refused)))
  })

  const wipe = Effect.fnUntraced(function* (record: Pending, projection: Projection) {
    const { account } = record.actor
    const wipe: Wipe = { newest: undefined, done: Latch.makeUnsafe(false) }
    wipes.set(account, wipe)
    yield* apply([record], projection)
    while (wipe.newest !== undefined) {
      const { newest } = wipe
      wipe.newest = undefined
      yield* retried(applied([newest], [account]))
    }
    wipes.delete(account)
    wipe.done.openUnsafe()
  })

  /** Leaves out records of accounts that are being wiped. */
  const withoutWiped = (records: ReadonlyArray<Pending>): ReadonlyArray<Pending> =>
    wipes.size === 0
      ? records
      : records.filter((record) => {
          const wipe = wipes.get(record.actor.account)
          if (wipe !== undefined) wipe.newest = record
          return wipe === undefined
        })

  const write = Effect.fnUntraced(function* (taken: ReadonlyArray<Pending>) {
    const batch = withoutWiped(taken)
    if (batch.length === 0) return
    const projection = project(batch.map(({ record }) => record))
    if (projection.sweep?.wiped !== true) return yield* apply(batch, projection)
    const wiping = Loop.vital("projection of a wipe", wipe(batch[0]!, projection))
    yield* Effect.forkIn(wiping, scope, { startImmediately: true })
  })

  return {
    /** Projects records. A wipe goes on when this has returned. */
    write,
    /** Waits until the wipes that are under way are projected. */
    wiped: Effect.suspend(() => Effect.forEach([...wipes.values()], ({ done }) => done.await, { discard: true }))
  }
})

/** Repeats a write until it succeeds. */
const retried = (write: Effect.Effect<void, StorageFailure>): Effect.Effect<void> =>
  write.pipe(
    Effect.tapError((error) =>
      log.error("The projection failed; it will be tried again", error.message, { isOfWrite: true })
    ),
    Effect.retry({ schedule: Schedule.spaced("250 millis") }),
    Effect.orDie
  )

const makeCatchUp = Effect.gen(function* () {
  const formats = yield* DocumentFormats
  const journal = yield* Journal
  const views = yield* Views
  const headAt = Effect.fnUntraced(function* (account: AccountId, version: number) {
    if (version === 0) return { version, hash: GENESIS, sequence: 0, clock: 0, now: 0 }
    const [row] = yield* journal.at([{ account, version }])
    if (row === undefined) return yield* missingRecord(account, version)
    // A damaged row may hold another record's version, with which the catch-up would not end.
    return { ...headOf(yield* tryRead(() => readRow(row)), row.hash), version }
  })
  /** Reads the next page of the journal, and the account's standing after it. */
  const page = Effect.fnUntraced(function* (account: AccountId, before: Standing) {
    const rows = yield* journal.read(account, before.version, CATCH_UP_PAGE)
    const tail = yield* tryRead(() => unsealAll(before, rows))
    const newest = tail.at(-1)
    if (newest === undefined) return undefined
    const records = yield* tryRead(() => tail.map(({ record }) => formats.derived(record)))
    const after = headOf(newest.record, newest.hash)
    return [{ records, after }, after] as const
  })
  // Ends when no record is left after the checkpoint, or the checkpoint has reached the target.
  return Effect.fnUntraced(function* (
    account: AccountId,
    target: number = Infinity
  ): Effect.fn.Return<Head, StorageFailure | JournalCorrupt> {
    const progress = yield* Progress
    for (;;) {
      const checkpoint = yield* views.checkpoint(account)
      const before = yield* headAt(account, checkpoint)
      if (checkpoint >= target) return { ...before, projected: checkpoint }
      let isThere = true
      // The storage writes one page while the next is made, which takes about as long.
      yield* Stream.unfold(before, (head) => page(account, head)).pipe(
        Stream.buffer({ capacity: 1 }),
        Stream.runForEachWhile(
          Effect.fnUntraced(function* ({ after, records }) {
            isThere = false
            for (const piece of piecesOf(records)) {
              const refused = yield* views.apply(project(piece), 0)
              if (refused.length > 0) return false
            }
            progress.advance(records.length)
            return after.version < target
          })
        )
      )
      if (isThere) return { ...before, projected: checkpoint }
    }
  })
})

/** An account's standing after a record. */
type Standing = Omit<Head, "projected">

const headOf = ({ clock, now, sequence, version }: JournalRecord, hash: string): Standing => {
  return { version, hash, sequence, clock, now }
}
