/**
 * Limits how much live money somebody gives up in the dashboard without having proved lately who they are (semantics
 * 9.63): by refunds, by cancels of held payments, and by captures of less than is held. What a session gives up is
 * counted from the last proof on, in the payments' own account and in the record of each command. So amounts that are
 * split, over refunds, payments, currencies or requests at once, come to the same sum.
 *
 * There are no exchange rates. The sum is in smallest units, whatever the currency: one of those is never worth much
 * more than a cent, so the limit is about a thousand dollars, or less.
 */
import { Effect, Schema } from "effect"
import { ParameterMissing } from "../domain/Errors.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import type { DashboardSession } from "../domain/Person.ts"
import { Transaction } from "../engine/actor/Transaction.ts"
import { isConfirmed } from "./DashboardSessions.ts"
import type { Kept } from "./Documents.ts"
import { PAYMENT_INTENT } from "./Documents.ts"

/** A person may give up this much between two proofs, in smallest units of all currencies together. */
export const GIVEN_UP_MAX = 100_000

/** The field in which a form has the password. Its lack is why a command over the limit fails. */
export const PASSWORD_FIELD = "confirm_password"

const GivenUp = Schema.Struct({
  /** `given_up:<id of the person>` */
  id: Schema.String,
  amount: Schema.Int,
  /** When the person had last proved who they are, in Unix seconds. The amount was given up since. */
  since: Schema.Int
})
export const GIVEN_UP: Kept<typeof GivenUp.Type> = { name: "given_up", shape: { value: GivenUp } }

/** What a command gives up of a payment, in smallest units. */
export type GivesUp = (payment: PaymentIntent) => number

/**
 * Runs a command on a live payment in a person's session, and counts what it gives up. Fails with `ParameterMissing` of
 * the password, before anything is done, if that is too much without one.
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
