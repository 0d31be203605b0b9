/** The tallies of payments, charges and refunds, by currency (semantics dashboard.sums). */
import { Effect } from "effect"
import type { Charge } from "../../domain/Charge.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { Refund } from "../../domain/Refund.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId, Tally } from "../../engine/log/Document.ts"
import type { TallyQuery } from "../../engine/log/Tallies.ts"

/** A counted outcome; `code` is the reason of a decline. */
export type Counted =
  | { readonly what: "paid" | "failed" | "refunded"; readonly currency: string }
  | { readonly what: "declined"; readonly currency: string; readonly code: string }

const keyOf = (what: Counted["what"], currency: string): string => `${what} ${currency}`
const declined = (currency: string, code: string): string => `${keyOf("declined", currency)} ${code}`

const countedIn = (key: string): Counted => {
  const [what, currency = "", code = ""] = key.split(" ")
  return what === "declined" ? { what, currency, code } : { what: what as "paid" | "failed" | "refunded", currency }
}

/** Counts a payment at its creation time: by its outcome, with the amount received. */
export const ofPaymentIntent = (payment: PaymentIntent): ReadonlyArray<Tally> => {
  const { amount_received, created, currency, last_payment_error } = payment
  const outcome = outcomeOf(payment)
  const tallies: Array<Tally> = []
  if (outcome !== null) tallies.push({ at: created, key: keyOf(outcome, currency), count: 1, amount: amount_received })
  // A failed authentication has no charge.
  if (last_payment_error?.code === "payment_intent_authentication_failure") {
    tallies.push({ at: created, key: declined(currency, "authentication_failed"), count: 1, amount: 0 })
  }
  return tallies
}

/** Counts a declined attempt at its own time. Uses the charge, because a PaymentIntent shows only its newest ones. */
export const ofCharge = ({ created, currency, decline_code, failure_code, status }: Charge): ReadonlyArray<Tally> =>
  status === "failed"
    ? [{ at: created, key: declined(currency, decline_code ?? failure_code ?? "unknown"), count: 1, amount: 0 }]
    : []

/** Counts a refund at its creation time, unless it failed or was canceled. */
export const ofRefund = ({ amount, created, currency, status }: Refund): ReadonlyArray<Tally> =>
  status === "failed" || status === "canceled"
    ? []
    : [{ at: created, key: keyOf("refunded", currency), count: 1, amount }]

/** Returns the outcome of an attempted payment; null without an attempt and while one is in progress. */
const outcomeOf = ({ charges, last_payment_error, status }: PaymentIntent): "paid" | "failed" | null => {
  const [newest] = charges.data
  if (newest?.status === "succeeded") return "paid"
  if (status === "processing" || status === "requires_action") return null
  return newest?.status === "failed" || last_payment_error !== undefined ? "failed" : null
}

/** Reads an account's tallies by time step, including everything acknowledged before. */
export const read = Effect.fnUntraced(function* (account: AccountId, query: TallyQuery) {
  const accounts = yield* Accounts
  const tallies = yield* accounts.tallies(account, query)
  return tallies.map(({ amount, count, key, step }) => ({ ...countedIn(key), step, count, amount }))
})
