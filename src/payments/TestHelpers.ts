/** Test helpers, in test mode only (semantics test_helpers.clock, test_helpers.test_mode). */
import { Effect } from "effect"
import { ParameterInvalid, TestModeOnly } from "../domain/Errors.ts"
import {
  type AdvanceTestClock,
  type AuthenticatePaymentIntent,
  CLOCK_AHEAD_SECONDS_MAX,
  type DeletedTestData,
  type TestClock
} from "../domain/TestHelpers.ts"
import { secondsOf } from "../domain/Time.ts"
import { Transaction } from "../engine/actor/Transaction.ts"
import { isLive } from "./shared/AccountIds.ts"
import * as PaymentIntents from "./lifecycles/PaymentIntents.ts"

/** The account's transaction. Fails with `TestModeOnly` if the account is live (semantics test_helpers.test_mode). */
const testTransaction: Effect.Effect<Transaction, TestModeOnly, Transaction> = Effect.flatMap(
  Transaction,
  (transaction) => (isLive(transaction.account) ? Effect.fail(new TestModeOnly()) : Effect.succeed(transaction))
)

/** The clock of an account: the wall clock, or ahead of it in a test environment whose clock was moved. */
export interface AccountClock {
  readonly now: number
  /** Seconds by which it is ahead of the wall clock. */
  readonly ahead: number
}

export const readClock: Effect.Effect<AccountClock, never, Transaction> = Effect.map(
  Transaction,
  ({ clockOffset, now }) => ({ now: secondsOf(now), ahead: secondsOf(clockOffset) })
)

type Authentication = ReturnType<typeof PaymentIntents.authenticate>

/** Answers a challenge in the payer's place (semantics payment_intents.authentication). A decline is returned. */
export const authenticatePaymentIntent = Effect.fnUntraced(function* (
  id: string,
  { outcome }: AuthenticatePaymentIntent
): Effect.fn.Return<
  Effect.Success<Authentication>,
  TestModeOnly | Effect.Error<Authentication>,
  Effect.Services<Authentication>
> {
  yield* testTransaction
  return yield* PaymentIntents.authenticate(id, outcome)
})

/**
 * Moves the environment's clock ahead. Everything that becomes due (expiries of sessions and holds, settlements,
 * deliveries) happens afterwards, in the order of its due time; the HTTP response waits for all but the deliveries.
 */
export const advanceClock = Effect.fnUntraced(function* ({
  seconds
}: AdvanceTestClock): Effect.fn.Return<TestClock, TestModeOnly | ParameterInvalid, Transaction> {
  const transaction = yield* testTransaction
  const left = CLOCK_AHEAD_SECONDS_MAX - Math.ceil(transaction.clockOffset / 1000)
  if (seconds > left) {
    const rule = `an integer of at most ${left}, because the clock can be ${CLOCK_AHEAD_SECONDS_MAX} seconds ahead`
    return yield* new ParameterInvalid({ param: "seconds", rule })
  }
  transaction.advanceClock(seconds * 1000)
  return { object: "test_helpers.clock", now: secondsOf(transaction.now) }
})

/**
 * Deletes all data of the environment, idempotency keys included, and resets its clock. API keys stay, because they
 * belong to the installation's account. The journal keeps the old records, which nothing reads afterwards.
 */
export const deleteData: Effect.Effect<DeletedTestData, TestModeOnly, Transaction> = Effect.map(
  testTransaction,
  (transaction) => {
    transaction.wipe()
    return { object: "test_helpers.data", deleted: true }
  }
)
