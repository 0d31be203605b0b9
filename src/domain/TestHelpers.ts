/** Test helpers: their request bodies and objects (semantics test_helpers.clock, test_helpers.data). */
import { Schema } from "effect"
import { AuthenticationOutcome } from "./PaymentIntent.ts"
import { Timestamp } from "./Time.ts"

/** The most that a test clock is ahead, in seconds: two years, longer than any timer, before cards expire. */
export const CLOCK_AHEAD_SECONDS_MAX = 63_072_000

/** The seconds to move a clock ahead. A clock never goes back. */
export const ClockAdvance = Schema.Int.check(
  Schema.isBetween({ minimum: 1, maximum: CLOCK_AHEAD_SECONDS_MAX })
).annotate({ rule: `an integer from 1 to ${CLOCK_AHEAD_SECONDS_MAX}` })

/** The clock of a test environment. `now` is in Unix seconds. */
export const TestClock = Schema.Struct({
  object: Schema.Literal("test_helpers.clock"),
  now: Timestamp
}).annotate({ identifier: "TestClock" })
export type TestClock = typeof TestClock.Type

export const DeletedTestData = Schema.Struct({
  object: Schema.Literal("test_helpers.data"),
  deleted: Schema.Literal(true)
}).annotate({ identifier: "DeletedTestData" })
export type DeletedTestData = typeof DeletedTestData.Type

export const AuthenticatePaymentIntent = Schema.Struct({ outcome: AuthenticationOutcome }).annotate({
  identifier: "AuthenticatePaymentIntent"
})
export type AuthenticatePaymentIntent = typeof AuthenticatePaymentIntent.Type

export const AdvanceTestClock = Schema.Struct({ seconds: ClockAdvance }).annotate({ identifier: "AdvanceTestClock" })
export type AdvanceTestClock = typeof AdvanceTestClock.Type
