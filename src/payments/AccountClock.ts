/** What an account's clock says: the wall clock, or ahead of it in a test environment whose clock was moved. */
import { Effect } from "effect"
import { secondsOf } from "../domain/Time.ts"
import { Transaction } from "../engine/actor/Transaction.ts"

export interface AccountClock {
  /** Unix seconds. */
  readonly now: number
  /** Seconds by which it is ahead of the wall clock. */
  readonly ahead: number
}

export const read: Effect.Effect<AccountClock, never, Transaction> = Effect.map(
  Transaction,
  ({ clockOffset, now }) => ({ now: secondsOf(now), ahead: secondsOf(clockOffset) })
)
