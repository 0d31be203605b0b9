/**
 * Fills one account of Till's database with PaymentIntents before Till starts on it, as many as a shop has after years.
 * They are documents as the lifecycle would have left them, written by the engine itself, many in one record: their
 * million requests would take the bench a quarter of an hour.
 */
import { Console, Effect } from "effect"
import type { PaymentIntent } from "../src/domain/PaymentIntent.ts"
import { Accounts } from "../src/engine/Accounts.ts"
import { Transaction } from "../src/engine/actor/Transaction.ts"
import { PAYMENT_INTENT } from "../src/payments/Documents.ts"
import { failureOf } from "./BenchFailure.ts"

const PER_RECORD = 250
const AT_ONCE = 4
/** One in so many is held and not captured, or of Switzerland. */
const RARE = 100_000

/** The same numbers in every run, spread evenly. */
const spread = (i: number, below: number): number => (Math.imul(i + 1, 0x9e3779b1) >>> 0) % below

const statusOf = (i: number): PaymentIntent["status"] => (i % RARE === 7 ? "requires_capture" : "succeeded")

/** Number `i` of the account's PaymentIntents. */
const paymentIntentOf = (i: number, { id, charge, created }: { id: string; charge: string; created: number }) => {
  const amount = 100 + spread(i, 100_000)
  const currency = i % RARE === 9 ? "chf" : "usd"
  const metadata = { order_id: String(i) }
  const terms = { amount, currency, created, livemode: false, customer: null, description: `Order ${i}`, metadata }
  const charges = {
    object: "list",
    data: [
      {
        id: charge,
        object: "charge",
        ...terms,
        status: "succeeded",
        payment_intent: id,
        payment_method_details: {
          type: "card",
          card: { brand: "visa", last4: String(spread(i, 10_000)).padStart(4, "0") }
        }
      }
    ],
    has_more: false,
    url: `/v1/charges?payment_intent=${id}`,
    next_cursor: null
  }
  const value = { id, object: "payment_intent", ...terms, status: statusOf(i), latest_charge: charge, charges }
  return value as unknown as PaymentIntent
}

const record = (from: number) =>
  Effect.map(Transaction, (transaction) => {
    const created = Math.floor(transaction.now / 1000)
    for (let i = from; i < from + PER_RECORD; i++) {
      const [id, charge] = [transaction.newId("pi"), transaction.newId("ch")]
      transaction.put(PAYMENT_INTENT, paymentIntentOf(i, { id, charge, created }), undefined)
    }
  })

/** Puts about so many PaymentIntents into an account. */
export const fill = Effect.fnUntraced(
  function* (account: string, count: number) {
    const accounts = yield* Accounts
    yield* Console.log(`Filling an account with ${count.toLocaleString("en")} PaymentIntents; this takes a while.`)
    const starts = Array.from({ length: Math.ceil(count / PER_RECORD) }, (_, i) => i * PER_RECORD)
    yield* Effect.forEach(starts, (from) => accounts.run(account, record(from)), {
      concurrency: AT_ONCE,
      discard: true
    })
    // A list waits until the views have all.
    yield* accounts.list(account, { kind: PAYMENT_INTENT.name, prefix: PAYMENT_INTENT.prefix, limit: 1 })
  },
  Effect.mapError(failureOf("The PaymentIntents could not be made"))
)
