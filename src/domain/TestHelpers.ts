/** Test helpers: the bodies of their requests, and the objects that they answer with (semantics §6, §8.27). */
import { Schema } from "effect"
import { AuthenticationOutcome } from "./PaymentIntent.ts"
import { Timestamp } from "./Time.ts"

/**
 * The clock of a test environment can be so many seconds ahead of the wall clock: two years. Nothing waits that long,
 * ids and times stay far within what they can express, and test cards do not expire.
 */
export const CLOCK_AHEAD_SECONDS_MAX = 63_072_000

/** A clock is moved ahead by so many seconds. It never goes back: what has happened has happened. */
export const ClockAdvance = Schema.Int.check(
  Schema.isBetween({ minimum: 1, maximum: CLOCK_AHEAD_SECONDS_MAX })
).annotate({ rule: `an integer from 1 to ${CLOCK_AHEAD_SECONDS_MAX}` })

/** The clock of a test environment. `now` is in Unix seconds. */
export const TestClock = Schema.Struct({
  object: Schema.Literal("test_helpers.clock"),
  now: Timestamp
}).annotate({ identifier: "TestClock" })
export type TestClock = typeof TestClock.Type

/** Only this is left of a test environment's data. */
export const DeletedTestData = Schema.Struct({
  object: Schema.Literal("test_helpers.data"),
  deleted: Schema.Literal(true)
}).annotate({ identifier: "DeletedTestData" })
export type DeletedTestData = typeof DeletedTestData.Type

/** The body of a request that answers a challenge in the payer's place. */
export const AuthenticatePaymentIntent = Schema.Struct({ outcome: AuthenticationOutcome }).annotate({
  identifier: "AuthenticatePaymentIntent"
})
export type AuthenticatePaymentIntent = typeof AuthenticatePaymentIntent.Type

/** The body of a request that moves the clock ahead. */
export const AdvanceTestClock = Schema.Struct({ seconds: ClockAdvance }).annotate({ identifier: "AdvanceTestClock" })
export type AdvanceTestClock = typeof AdvanceTestClock.Type
