/** What only test mode has (semantics I-14, §8.27). */
import { Effect } from "effect"
import { TestModeOnly } from "../domain/Errors.ts"
import type { AuthenticationOutcome } from "../domain/PaymentIntent.ts"
import { Transaction } from "../engine/Transaction.ts"
import { isLive } from "./AccountIds.ts"
import * as PaymentIntents from "./PaymentIntents.ts"

/** Answers a challenge in the payer's place. */
export const authenticatePaymentIntent = Effect.fnUntraced(function* (
  id: string,
  { outcome }: { readonly outcome: AuthenticationOutcome }
) {
  const transaction = yield* Transaction
  if (isLive(transaction.account)) return yield* new TestModeOnly()
  return yield* PaymentIntents.authenticate(id, outcome)
})
