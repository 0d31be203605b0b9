/** What only test mode has (semantics I-14, §6, §8.27). */
import { Effect } from "effect"
import { ParameterInvalid, TestModeOnly } from "../domain/Errors.ts"
import type { AuthenticationOutcome } from "../domain/PaymentIntent.ts"
import type { DeletedTestData, TestClock } from "../domain/TestHelpers.ts"
import { CLOCK_AHEAD_SECONDS_MAX } from "../domain/TestHelpers.ts"
import { secondsOf } from "../domain/Time.ts"
import { Transaction } from "../engine/Transaction.ts"
import { isLive } from "./AccountIds.ts"
import * as PaymentIntents from "./PaymentIntents.ts"

/** The account's transaction, unless the account is live. */
const testTransaction = Effect.flatMap(Transaction, (transaction) =>
  isLive(transaction.account) ? Effect.fail(new TestModeOnly()) : Effect.succeed(transaction)
)

/** Answers a challenge in the payer's place. */
export const authenticatePaymentIntent = Effect.fnUntraced(function* (
  id: string,
  { outcome }: { readonly outcome: AuthenticationOutcome }
) {
  yield* testTransaction
  return yield* PaymentIntents.authenticate(id, outcome)
})

/**
 * Moves the environment's clock ahead. What becomes due by it (sessions and holds that expire, settlements, deliveries)
 * happens afterwards, in the order in which it is due; the answer over HTTP waits for all but the deliveries.
 */
export const advanceClock = Effect.fnUntraced(function* ({ seconds }: { readonly seconds: number }) {
  const transaction = yield* testTransaction
  const left = CLOCK_AHEAD_SECONDS_MAX - Math.ceil(transaction.clockOffset / 1000)
  if (seconds > left) {
    const rule = `an integer of at most ${left}, because the clock can be ${CLOCK_AHEAD_SECONDS_MAX} seconds ahead`
    return yield* new ParameterInvalid({ param: "seconds", rule })
  }
  transaction.advanceClock(seconds * 1000)
  const clock: TestClock = { object: "test_helpers.clock", now: secondsOf(transaction.now) }
  return clock
})

/**
 * Forgets everything in the environment, idempotency keys included, and puts its clock back. API keys stay: they are
 * not the environment's. So do the journal's records of what was: nothing reads them any more, but nothing erases them.
 */
export const deleteData = Effect.map(testTransaction, (transaction) => {
  transaction.wipe()
  const deleted: DeletedTestData = { object: "test_helpers.data", deleted: true }
  return deleted
})
