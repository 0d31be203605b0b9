/** Test helpers over HTTP (semantics I-14, §6, §8.27). */
import * as Contract from "../../api/TestHelpers.ts"
import * as TestHelpers from "../../payments/TestHelpers.ts"
import { handlers } from "../Handlers.ts"

export const testHelpers = handlers(Contract.TestHelpers, {
  authenticate: ({ params, payload }) => TestHelpers.authenticatePaymentIntent(params.id, payload),
  advance_clock: ({ payload }) => TestHelpers.advanceClock(payload),
  delete_data: () => TestHelpers.deleteData
})
