/**
 * Outcomes on their way into the journal: one record of an account at a time, with all that has come in meanwhile.
 *
 * An outcome that cannot be written is tried again for as long as it takes. Its delivery is held until the table has
 * the outcome, and whatever was being taken from the table before that is here: it may be this delivery once more. The
 * table can have a delivery without its lease, because it may have it from somebody else than this process.
 */
import { Effect, FiberMap, Latch, Schedule } from "effect"
import type { Scope } from "effect"
import type { AttemptOutcome } from "../engine/Deliveries.ts"
import { Deliveries } from "../engine/Deliveries.ts"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import * as Loop from "../engine/process/Loop.ts"
import { Placement } from "../engine/process/Placement.ts"
import { unlessRefused } from "../engine/process/Writing.ts"
import * as Until from "./Until.ts"

const BATCH_MAX = 256
/**
 * Outcomes gather this long before they are written: a record for each would cost more than the attempts do. Less than
 * the projector lets records gather, because a delivery that is attempted meanwhile gets one row, and no second write.
 */
const GATHER_MILLIS = 15
const RETRY_MILLIS = 250

export interface Outcomes {
  /** Keeps an outcome; `over` is called when nobody can take its delivery again, or it was given up. */
  readonly add: (account: AccountId, outcome: AttemptOutcome, over: () => void) => void
  /**
   * Waits until everything of these accounts is kept, so long at most, and gives up what is not; so it does at once
   * with that of accounts that may be others' by now.
   */
  readonly finish: (isMeant: (account: AccountId) => boolean, millisMax: Millis) => Effect.Effect<void>
}

/** `taken` ends when what is being taken from the table is here. */
export const make = Effect.fnUntraced(function* (
  taken: Effect.Effect<void>
): Effect.fn.Return<Outcomes, never, Deliveries | Placement | Scope.Scope> {
  const deliveries = yield* Deliveries
  const { isHere } = yield* Placement
  const writers = yield* FiberMap.make<AccountId>()
  const run = yield* FiberMap.runtime(writers)()
  const waiting = new Map<AccountId, Array<{ readonly outcome: AttemptOutcome; readonly over: () => void }>>()
  const { changed, until } = Until.make()
  const some = Latch.makeUnsafe(false)
  let kept: Array<() => void> = []
  const release = Effect.gen(function* () {
    yield* some.await
    some.closeUnsafe()
    const now = kept
    kept = []
    yield* Effect.andThen(deliveries.seen, taken)
    for (const over of now) over()
  })
  yield* Effect.forkScoped(Loop.forever("keeping of webhooks' outcomes", release))

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
          // A defect, too: an outcome that is given up would be attempted again.
          Effect.sandbox,
          Effect.tapError((cause) =>
            unlessRefused(Effect.logWarning("Outcomes of webhooks could not be written yet", cause))
          ),
          Effect.retry(Schedule.spaced(RETRY_MILLIS))
        )
      for (const { over } of entries.splice(0, batch.length)) kept.push(over)
      some.openUnsafe()
    }
  })

  const writing = (account: AccountId) =>
    Effect.ensuring(
      Effect.ignore(write(account)),
      Effect.sync(() => {
        for (const { over } of waiting.get(account)!) over()
        waiting.delete(account)
        changed()
      })
    )

  return {
    add: (account, outcome, over) => {
      const entries = waiting.get(account)
      if (entries !== undefined) return void entries.push({ outcome, over })
      waiting.set(account, [{ outcome, over }])
      run(account, writing(account))
    },
    finish: (isMeant, millisMax) => {
      const meant = () => [...waiting.keys()].filter(isMeant)
      return until(() => !meant().some(isHere)).pipe(
        Effect.timeoutOption(millisMax),
        Effect.andThen(
          Effect.suspend(() =>
            Effect.forEach(meant(), (account) => FiberMap.remove(writers, account), { discard: true })
          )
        )
      )
    }
  }
})
