/**
 * Fills an account with the PaymentIntents of years before Till starts. The engine itself writes the documents as
 * lifecycles would have left them, many in one record: their million requests would take a quarter of an hour.
 */
import { Console, Effect } from "effect"
import type { PaymentIntent } from "../src/domain/PaymentIntent.ts"
import { Accounts } from "../src/engine/Accounts.ts"
import { Transaction } from "../src/engine/actor/Transaction.ts"
import { PAYMENT_INTENT } from "../src/payments/shared/Documents.ts"
import { failureOf } from "./BenchFailure.ts"

const PER_RECORD = 250
const AT_ONCE = 4
/** One in this many is authorized and not captured, or from Switzerland. */
const RARE = 100_000

/** Returns evenly spread numbers that are the same in every run. */
const spread = (i: number, below: number): number => (Math.imul(i + 1, 0x9e3779b1) >>> 0) % below

const statusOf = (i: number): PaymentIntent["status"] => (i % RARE === 7 ? "requires_capture" : "succeeded")

/** Returns the account's PaymentIntent number `i`. */
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

/** Puts about this many PaymentIntents into an account. */
export const fill = Effect.fnUntraced(
  function* (account: string, count: number) {
    const accounts = yield* Accounts
    yield* Console.log(`Filling an account with ${count.toLocaleString("en")} PaymentIntents; this takes a while.`)
    const starts = Array.from({ length: Math.ceil(count / PER_RECORD) }, (_, i) => i * PER_RECORD)
    yield* Effect.forEach(starts, (from) => accounts.run(account, record(from)), {
      concurrency: AT_ONCE,
      discard: true
    })
    // A list waits until the views hold all records.
    yield* accounts.list(account, { kind: PAYMENT_INTENT.name, prefix: PAYMENT_INTENT.prefix, limit: 1 })
  },
  Effect.mapError(failureOf("The PaymentIntents could not be made"))
)
