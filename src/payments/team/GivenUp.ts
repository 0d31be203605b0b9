/**
 * Limits how much live money a person gives up in the dashboard without a recent identity confirmation (semantics
 * dashboard.password_again): by refunds, by cancelling held payments, and by capturing less than is held. The amounts
 * given up since the last confirmation are summed in the payments' own account, in the record of each command, so
 * splitting an amount over refunds, payments, currencies or concurrent requests does not evade the limit.
 *
 * There are no exchange rates. The sum counts smallest units of any currency: none is worth much more than a cent, so
 * the limit is about a thousand dollars or less.
 */
import { Effect, Schema } from "effect"
import { ParameterMissing } from "../../domain/Errors.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { DashboardSession } from "../../domain/Person.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { isConfirmed } from "./DashboardSessions.ts"
import { type Kept, PAYMENT_INTENT } from "../shared/Documents.ts"

/** The amount that a person can give up between two confirmations, in smallest units of all currencies together. */
export const GIVEN_UP_MAX = 100_000

/** The form field of the password. A command over the limit fails because this field is missing. */
export const PASSWORD_FIELD = "confirm_password"

const GivenUp = Schema.Struct({
  /** `given_up:<id of the person>` */
  id: Schema.String,
  amount: Schema.Int,
  /** Unix seconds of the person's last confirmation, from which `amount` is counted. */
  since: Schema.Int
})
export const GIVEN_UP: Kept<typeof GivenUp.Type> = { name: "given_up", shape: { value: GivenUp } }

/** Returns the amount of a payment that a command gives up, in smallest units. */
export type GivesUp = (payment: PaymentIntent) => number

/**
 * Runs a command on a live payment in a person's session and counts the amount it gives up. Fails with
 * `ParameterMissing` for the password, before the command runs, if the sum exceeds the limit.
 */
export const runWithinLimit = Effect.fnUntraced(function* <A, E, R>(
  session: DashboardSession,
  paymentId: string,
  givesUp: GivesUp,
  command: Effect.Effect<A, E, R>
): Effect.fn.Return<A, E | ParameterMissing, R | Transaction> {
  const transaction = yield* Transaction
  const payment = yield* transaction.get(PAYMENT_INTENT, paymentId)
  const amount = payment === undefined ? 0 : givesUp(payment.value)
  if (amount <= 0 || isConfirmed(session, transaction.startedAt)) return yield* command
  const id = `given_up:${session.person}`
  const counted = (yield* transaction.get(GIVEN_UP, id))?.value
  const since = Math.max(session.confirmed_at, counted?.since ?? 0)
  const sum = amount + (counted?.since === since ? counted.amount : 0)
  if (sum > GIVEN_UP_MAX) return yield* new ParameterMissing({ param: PASSWORD_FIELD })
  const answered = yield* command
  transaction.put(GIVEN_UP, { id, amount: sum, since })
  return answered
})
