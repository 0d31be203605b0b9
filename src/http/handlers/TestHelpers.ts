/** Test helpers over HTTP (semantics I-14, §6, §8.27). */
import { Effect } from "effect"
import * as Contract from "../../api/TestHelpers.ts"
import { Accounts } from "../../engine/Accounts.ts"
import * as TestHelpers from "../../payments/TestHelpers.ts"
import { handlers } from "./Handler.ts"

/** The clock's answer waits so long for what has become due by it, in milliseconds. */
const SETTLING_MILLIS_MAX = 10_000

export const testHelpers = handlers(Contract.TestHelpers, {
  authenticate: ({ params, payload }) => TestHelpers.authenticatePaymentIntent(params.id, payload),
  advance_clock: {
    command: ({ payload }) => TestHelpers.advanceClock(payload),
    settled: ({ account }) => Effect.flatMap(Accounts, (accounts) => accounts.settled(account, SETTLING_MILLIS_MAX))
  },
  delete_data: () => TestHelpers.deleteData
})
