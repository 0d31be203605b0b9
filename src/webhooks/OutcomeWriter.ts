/**
 * Writes outcomes of attempts into the journal: per account one record at a time, with all outcomes since the last one.
 *
 * A failed write is repeated for as long as it takes. A delivery stays held (`Lanes`) until the table has its outcome
 * and the deliveries that were being taken from the table before that have arrived: the same delivery may be among them
 * once more, because another process can have put it into the table without this process' lease.
 */
import { Effect, FiberMap, Latch, Schedule, type Scope } from "effect"
import { type AttemptOutcome, Deliveries } from "../engine/Deliveries.ts"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import { Condition } from "../engine/process/Condition.ts"
import * as Loop from "../engine/process/Loop.ts"
import { Placement } from "../engine/process/Placement.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("webhooks")

/** Outcomes in one record, at most. */
const BATCH_MAX = 256
/**
 * Outcomes gather this long before they are written: a record for each would cost more than the attempts do. It is less
 * than the projector lets records gather, so that a delivery attempted in that time gets one row and no second write.
 */
const GATHER_MILLIS = 15
const RETRY_MILLIS = 250

export interface OutcomeWriter {
  /** Writes an outcome. Calls `release` once no process can take its delivery again, or the outcome was given up. */
  readonly add: (account: AccountId, outcome: AttemptOutcome, release: () => void) => void
  /**
   * Waits up to `millisMax` until all outcomes of the chosen accounts are written, and gives up the rest. Outcomes of
   * accounts that another process may own are given up without waiting.
   */
  readonly finish: (isChosen: (account: AccountId) => boolean, millisMax: Millis) => Effect.Effect<void>
}

interface Entry {
  readonly outcome: AttemptOutcome
  readonly release: () => void
}

/** `taken` waits until deliveries that are being taken from the table have arrived. */
export const make = Effect.fnUntraced(function* (
  taken: Effect.Effect<void>
): Effect.fn.Return<OutcomeWriter, never, Deliveries | Placement | Scope.Scope> {
  const deliveries = yield* Deliveries
  const { isHere } = yield* Placement
  const writers = yield* FiberMap.make<AccountId>()
  const run = yield* FiberMap.runtime(writers)()
  const waiting = new Map<AccountId, Array<Entry>>()
  const written = new Condition()
  const releaseWhenSeen = yield* makeReleasing(taken)

  const write = Effect.fnUntraced(function* (account: AccountId) {
    const entries = waiting.get(account)!
    yield* Effect.sleep(GATHER_MILLIS)
    while (entries.length > 0) {
      const batch = entries.slice(0, BATCH_MAX)
      yield* deliveries
        .report(
          account,
          batch.map(({ outcome }) => outcome)
        )
        .pipe(
          // Also after a defect: a delivery whose outcome is given up is attempted again.
          Effect.sandbox,
          Effect.tapError((cause) =>
            log.warning("Outcomes of webhooks could not be written yet", cause, { isOfWrite: true })
          ),
          Effect.retry(Schedule.spaced(RETRY_MILLIS))
        )
      releaseWhenSeen(entries.splice(0, batch.length))
    }
  })

  const writing = (account: AccountId) =>
    Effect.ensuring(
      Effect.ignore(write(account)),
      Effect.sync(() => {
        for (const { release } of waiting.get(account)!) release()
        waiting.delete(account)
        written.signal()
      })
    )

  return {
    add: (account, outcome, release) => {
      const entries = waiting.get(account)
      if (entries !== undefined) return void entries.push({ outcome, release })
      waiting.set(account, [{ outcome, release }])
      run(account, writing(account))
    },
    finish: (isChosen, millisMax) => {
      const chosen = () => [...waiting.keys()].filter(isChosen)
      return written
        .waitFor(() => !chosen().some(isHere) || undefined)
        .pipe(
          Effect.timeoutOption(millisMax),
          Effect.andThen(
            Effect.suspend(() =>
              Effect.forEach(chosen(), (account) => FiberMap.remove(writers, account), { discard: true })
            )
          )
        )
    }
  }
})

/** Releases deliveries once the table has their durable outcomes. */
const makeReleasing = Effect.fnUntraced(function* (taken: Effect.Effect<void>) {
  const deliveries = yield* Deliveries
  const some = Latch.makeUnsafe(false)
  let durable: Array<Entry> = []
  const step = Effect.gen(function* () {
    yield* some.await
    some.closeUnsafe()
    const entries = durable
    durable = []
    yield* Effect.andThen(deliveries.seen, taken)
    for (const { release } of entries) release()
  })
  yield* Effect.forkScoped(Loop.forever("keeping of webhooks' outcomes", step))
  return (entries: ReadonlyArray<Entry>): void => {
    durable.push(...entries)
    some.openUnsafe()
  }
})
