/**
 * Outcomes on their way into the journal: one record of an account at a time, with all that has come in meanwhile.
 *
 * An outcome that cannot be written is tried again for as long as it takes; until it is durable its delivery is held.
 */
import { Effect, FiberSet, Schedule } from "effect"
import type { Scope } from "effect"
import type { AttemptOutcome } from "../engine/Deliveries.ts"
import { Deliveries } from "../engine/Deliveries.ts"
import type { AccountId } from "../engine/Document.ts"

const BATCH_MAX = 256
/**
 * Outcomes gather this long before they are written: a record for each would cost more than the attempts do. Less than
 * the projector lets records gather, because a delivery that is attempted meanwhile gets one row, and no second write.
 */
const GATHER_MILLIS = 15
const RETRY_MILLIS = 250

export interface Outcomes {
  /** Keeps an outcome; `kept` is called when it is durable. */
  readonly add: (account: AccountId, outcome: AttemptOutcome, kept: () => void) => void
  /** Waits until everything is kept. */
  readonly flushed: Effect.Effect<void>
}

export const make: Effect.Effect<Outcomes, never, Deliveries | Scope.Scope> = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  const writers = yield* FiberSet.make()
  const run = yield* FiberSet.runtime(writers)()
  const waiting = new Map<AccountId, Array<{ readonly outcome: AttemptOutcome; readonly kept: () => void }>>()

  const write = Effect.fnUntraced(function* (account: AccountId) {
    yield* Effect.sleep(GATHER_MILLIS)
    for (;;) {
      const batch = waiting.get(account)!.splice(0, BATCH_MAX)
      if (batch.length === 0) break
      yield* deliveries
        .report(
          account,
          batch.map(({ outcome }) => outcome)
        )
        .pipe(
          // A defect, too: an outcome that is given up would be attempted again.
          Effect.sandbox,
          Effect.tapError((cause) => Effect.logWarning("Outcomes of webhooks could not be written yet", cause)),
          Effect.retry(Schedule.spaced(RETRY_MILLIS))
        )
      for (const { kept } of batch) kept()
    }
    waiting.delete(account)
  })

  return {
    add: (account, outcome, kept) => {
      const batch = waiting.get(account)
      if (batch !== undefined) return void batch.push({ outcome, kept })
      waiting.set(account, [{ outcome, kept }])
      run(write(account))
    },
    flushed: FiberSet.awaitEmpty(writers)
  }
})
