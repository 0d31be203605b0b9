/**
 * A shop's account of ninety days, before Till starts. The engine itself writes it, many payments in one record, at the
 * times of the past. The million requests would take half an hour.
 */
import { Clock, Console, Effect } from "effect"
import { Accounts } from "../../src/engine/Accounts.ts"
import type { AccountId } from "../../src/engine/log/Document.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { CHARGE, CUSTOMER, PAYMENT_INTENT, REFUND } from "../../src/payments/shared/Documents.ts"
import { emit } from "../../src/payments/shared/Events.ts"
import { failureOf } from "../BenchFailure.ts"
import * as Seed from "../Seed.ts"
import { customerOf, type Sale, saleOf, spread } from "./History.ts"

export const DAYS = 90
const DAY_MILLIS = 86_400_000
/** Payments per moment. */
export const PER_RECORD = 50
const AT_ONCE = 4
/** Payments per new customer. */
const PAYMENTS_PER_CUSTOMER = 30
/** The longest authorization, in days. */
const HELD_DAYS = 7
/** The newest payments, which have events: events of all payments would triple the account. */
const WITH_EVENTS = 20_000

export interface Shop extends Seed.Account {
  /** The shop's opening, in milliseconds of the wall clock. */
  readonly openedAt: number
  /** Ids in the order of creation. */
  readonly customers: ReadonlyArray<string>
  /** Ids of the first payment of each moment, in order. */
  readonly payments: ReadonlyArray<string>
}

/** A clock that shows a time of the past and sleeps as any other. */
const makePastClock = Effect.map(Clock.Clock, (clock) => {
  const past = { at: clock.currentTimeMillisUnsafe() }
  const currentNanos = () => BigInt(past.at) * 1_000_000n
  const own: Clock.Clock = {
    currentTimeMillisUnsafe: () => past.at,
    currentTimeMillis: Effect.sync(() => past.at),
    currentTimeNanosUnsafe: currentNanos,
    currentTimeNanos: Effect.sync(currentNanos),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  }
  return { past, clock: own }
})

const tell = (transaction: Transaction, { charge, payment, refund }: Sale): void => {
  emit(transaction, "payment_intent.created", payment.id)
  if (charge === undefined) return
  const isPaid = payment.status === "succeeded"
  emit(transaction, charge.paid ? "charge.succeeded" : "charge.failed", charge.id)
  if (isPaid) emit(transaction, "payment_intent.succeeded", payment.id)
  if (!charge.paid) emit(transaction, "payment_intent.payment_failed", payment.id)
  if (refund !== undefined) emit(transaction, "charge.refunded", charge.id)
}

/** Writes the payments from `from` on, with their new customers. */
const record = (from: number, count: number, customers: Array<string>, payments: Array<string>) =>
  Effect.map(Transaction, (transaction) => {
    const making = {
      account: transaction.account,
      now: transaction.now,
      newId: (prefix: string) => transaction.newId(prefix),
      newSecret: (length: number) => transaction.newSecret(length)
    }
    for (let i = from; i < Math.min(from + PER_RECORD, count); i++) {
      if (i % PAYMENTS_PER_CUSTOMER === 0) {
        const customer = customerOf(customers.length, making)
        transaction.put(CUSTOMER, customer)
        customers.push(customer.id)
      }
      const customer = spread(i, 9, 10) < 6 ? customers[spread(i, 10, customers.length)]! : null
      const isRecent = i >= count * (1 - HELD_DAYS / DAYS)
      const sale = saleOf(i, making, { customer, isRecent })
      transaction.put(PAYMENT_INTENT, sale.payment, undefined)
      if (sale.charge !== undefined) transaction.put(CHARGE, sale.charge)
      if (sale.refund !== undefined) transaction.put(REFUND, sale.refund)
      if (i >= count - WITH_EVENTS) tell(transaction, sale)
      if (i === from) payments.push(sale.payment.id)
    }
  })

const fill = (past: { at: number }, openedAt: number, count: number) =>
  Effect.fnUntraced(
    function* (account: AccountId) {
      const accounts = yield* Accounts
      const [customers, payments]: [Array<string>, Array<string>] = [[], []]
      const starts = Array.from({ length: Math.ceil(count / PER_RECORD) }, (_, i) => i * PER_RECORD)
      const step = (DAYS * DAY_MILLIS) / starts.length
      yield* Effect.forEach(
        starts,
        (from, i) => {
          past.at = openedAt + Math.round((i + 1) * step)
          return accounts.run(account, record(from, count, customers, payments))
        },
        { concurrency: AT_ONCE, discard: true }
      )
      // A list waits until the views hold all records.
      yield* accounts.list(account, { kind: PAYMENT_INTENT.name, prefix: PAYMENT_INTENT.prefix, limit: 1 })
      return { customers, payments }
    },
    Effect.mapError(failureOf("The shop could not be filled"))
  )

/** Creates a shop whose newest payments are of now. */
export const make = Effect.fnUntraced(function* (databaseUrl: string, count: number) {
  const { clock, past } = yield* makePastClock
  const openedAt = past.at - DAYS * DAY_MILLIS
  past.at = openedAt
  yield* Console.log(`Filling a shop with ${count.toLocaleString("en")} payments; this takes a while.`)
  const [account, sold] = yield* Effect.provideService(
    Seed.filled(databaseUrl, fill(past, openedAt, count)),
    Clock.Clock,
    clock
  )
  return { ...account, ...sold, openedAt } satisfies Shop as Shop
})
