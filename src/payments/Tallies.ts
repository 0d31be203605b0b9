/**
 * What payments, charges and refunds count as, by currency (semantics 9.76): the engine keeps the sums by the hour, and
 * the dashboard shows them.
 */
import { Effect } from "effect"
import type { Charge } from "../domain/Charge.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import type { Refund } from "../domain/Refund.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { AccountId, Tally } from "../engine/log/Document.ts"
import type { TallyQuery } from "../engine/log/Tallies.ts"

/** Of what was declined, `code` says why. */
export type Counted =
  | { readonly what: "paid" | "failed" | "refunded"; readonly currency: string }
  | { readonly what: "declined"; readonly currency: string; readonly code: string }

const keyOf = (what: Counted["what"], currency: string): string => `${what} ${currency}`
const declined = (currency: string, code: string): string => `${keyOf("declined", currency)} ${code}`

/** What a key of the engine's stands for. */
const countedIn = (key: string): Counted => {
  const [what, currency = "", code = ""] = key.split(" ")
  return what === "declined" ? { what, currency, code } : { what: what as "paid" | "failed" | "refunded", currency }
}

/** A payment counts when it was created: by its outcome, and with what it has received. */
export const ofPaymentIntent = (payment: PaymentIntent): ReadonlyArray<Tally> => {
  const { amount_received, created, currency, last_payment_error } = payment
  const outcome = outcomeOf(payment)
  const tallies: Array<Tally> = []
  if (outcome !== null) tallies.push({ at: created, key: keyOf(outcome, currency), count: 1, amount: amount_received })
  // An authentication that failed has made no charge.
  if (last_payment_error?.code === "payment_intent_authentication_failure") {
    tallies.push({ at: created, key: declined(currency, "authentication_failed"), count: 1, amount: 0 })
  }
  return tallies
}

/** An attempt that the issuer declined counts when it was made: a PaymentIntent shows only its newest ones. */
export const ofCharge = ({ created, currency, decline_code, failure_code, status }: Charge): ReadonlyArray<Tally> =>
  status === "failed"
    ? [{ at: created, key: declined(currency, decline_code ?? failure_code ?? "unknown"), count: 1, amount: 0 }]
    : []

/** A refund counts when it was made, unless nothing came of it. */
export const ofRefund = ({ amount, created, currency, status }: Refund): ReadonlyArray<Tally> =>
  status === "failed" || status === "canceled"
    ? []
    : [{ at: created, key: keyOf("refunded", currency), count: 1, amount }]

/** What came of a payment that was tried; null for one that nobody has tried, or that is under way. */
const outcomeOf = ({ charges, last_payment_error, status }: PaymentIntent): "paid" | "failed" | null => {
  const [newest] = charges.data
  if (newest?.status === "succeeded") return "paid"
  if (status === "processing" || status === "requires_action") return null
  return newest?.status === "failed" || last_payment_error !== undefined ? "failed" : null
}

/** What an account's payments count as from an hour on, step by step, as of what was acknowledged before. */
export const read = Effect.fnUntraced(function* (account: AccountId, query: TallyQuery) {
  const accounts = yield* Accounts
  const tallies = yield* accounts.tallies(account, query)
  return tallies.map(({ amount, count, key, step }) => ({ ...countedIn(key), step, count, amount }))
})
