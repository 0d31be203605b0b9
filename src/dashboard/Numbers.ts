/**
 * What became of the payments of some time, in numbers. They are counted from the payments themselves, of which the
 * newest few thousand are looked at; a page says from when on they count. Counts that took long are kept for a while.
 */
import { Cache, Context, Effect, Exit, Layer } from "effect"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import type { Refund } from "../domain/Refund.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { Unavailable } from "../engine/Accounts.ts"
import type { AccountId, Identified } from "../engine/Document.ts"
import type { Resource } from "../payments/Documents.ts"
import { PAYMENT_INTENT, REFUND } from "../payments/Documents.ts"

/** So many payments are looked at, the newest, and so many refunds. */
export const COUNTED_MAX = 5000
/** Read at once. */
const PAGE = 500
/** Counts of fewer objects are made anew each time. */
const QUICK_MAX = 250
const KEPT_MILLIS = 30_000
const KEPT_MAX = 500

const HOUR = 3600
const DAY = 24 * HOUR

/** The times that can be looked at, in so many steps of so many seconds, the one under way included. */
export const RANGES = {
  "24h": { name: "24 hours", steps: 24, seconds: HOUR },
  "7d": { name: "7 days", steps: 7, seconds: DAY },
  "30d": { name: "30 days", steps: 30, seconds: DAY },
  "90d": { name: "90 days", steps: 90, seconds: DAY }
} as const
export type RangeName = keyof typeof RANGES

export const rangeNamed = (name: string | null): RangeName =>
  name !== null && Object.hasOwn(RANGES, name) ? (name as RangeName) : "7d"

/** Counts, and amounts in minor units. */
export interface Sums {
  /** Payments that were tried and are paid or authorized. */
  paid: number
  /** Payments whose last attempt failed. */
  failed: number
  /** What was received, before refunds. */
  volume: number
  refunds: number
  refunded: number
}

export interface Counted extends Sums {
  readonly currency: string
  /** In the order of time. Payments count when they were created, refunds when they were made. */
  readonly steps: ReadonlyArray<Sums>
  /** Attempts that were declined, by the code of the decline. */
  readonly declines: ReadonlyMap<string, number>
}

export interface Numbered {
  /** When the first step begins, in Unix seconds of the account's clock. */
  readonly from: number
  /** The one with the most payments first. */
  readonly currencies: ReadonlyArray<Counted>
  /** Nothing is counted that is older than this, if the range has more than is looked at. Unix seconds. */
  readonly since: number | null
}

export class Numbers extends Context.Service<
  Numbers,
  { readonly of: (account: AccountId, range: RangeName, now: number) => Effect.Effect<Numbered, Unavailable> }
>()("till/dashboard/Numbers") {
  static readonly layer: Layer.Layer<Numbers, never, Accounts> = Layer.effect(
    Numbers,
    Effect.gen(function* () {
      const kept = yield* Cache.makeWith(
        (key: string) => {
          const [account, range, from] = JSON.parse(key) as readonly [AccountId, RangeName, number]
          return count(account, range, from)
        },
        {
          capacity: KEPT_MAX,
          timeToLive: (exit) => (Exit.isSuccess(exit) && exit.value.read > QUICK_MAX ? KEPT_MILLIS : 0)
        }
      )
      return {
        of: (account, range, now) => {
          const { seconds, steps } = RANGES[range]
          const from = now - (now % seconds) - (steps - 1) * seconds
          return Effect.map(Cache.get(kept, JSON.stringify([account, range, from])), ({ numbered }) => numbered)
        }
      }
    })
  )
}

/** The newest objects of a kind that were made since then. */
const newest = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  { name, prefix }: Resource<A, H>,
  from: number,
  max: number
) {
  const accounts = yield* Accounts
  const rows: Array<A> = []
  for (let olderThan: string | undefined; ;) {
    const cursor = olderThan === undefined ? {} : { olderThan }
    const { documents, hasMore } = yield* accounts.list(account, {
      kind: name,
      prefix,
      limit: Math.min(PAGE, max - rows.length),
      created: { from },
      ...cursor
    })
    for (const { value } of documents) rows.push(value as A)
    if (!hasMore || rows.length >= max) return { rows, isCut: hasMore }
    olderThan = documents.at(-1)!.id
  }
})

/** Counts what was made from `from` on, the newest `max` of it. */
export const count = Effect.fnUntraced(function* (
  account: AccountId,
  range: RangeName,
  from: number,
  max: number = COUNTED_MAX
) {
  const payments = yield* newest(account, PAYMENT_INTENT, from, max)
  const refunds = yield* newest(account, REFUND, from, max)
  const cuts = [payments, refunds].flatMap(({ isCut, rows }) => (isCut ? [rows.at(-1)!.created] : []))
  const since = cuts.length === 0 ? null : Math.max(...cuts)
  const counted = countedOf({ range, from, since: since ?? from }, payments.rows, refunds.rows)
  return { numbered: { from, since, currencies: counted }, read: payments.rows.length + refunds.rows.length }
})

interface Open extends Counted {
  readonly steps: ReadonlyArray<Sums>
  readonly declines: Map<string, number>
}

const nothing = (): Sums => ({ paid: 0, failed: 0, volume: 0, refunds: 0, refunded: 0 })

/** Sums by currency. What was made before `since` is left out, so that refunds and payments are of the same time. */
const countedOf = (
  { from, range, since }: { readonly range: RangeName; readonly from: number; readonly since: number },
  payments: ReadonlyArray<PaymentIntent>,
  refunds: ReadonlyArray<Refund>
): ReadonlyArray<Counted> => {
  const { seconds, steps } = RANGES[range]
  const open = new Map<string, Open>()
  const at = (currency: string, created: number): readonly [Open, ReadonlyArray<Sums>] => {
    let counted = open.get(currency)
    if (counted === undefined) {
      counted = { currency, ...nothing(), steps: Array.from({ length: steps }, nothing), declines: new Map() }
      open.set(currency, counted)
    }
    const step = counted.steps[Math.min(steps - 1, Math.floor((created - from) / seconds))]
    return [counted, step === undefined ? [counted] : [counted, step]]
  }
  for (const payment of payments) {
    if (payment.created < since) continue
    const [{ declines }, sums] = at(payment.currency, payment.created)
    const outcome = outcomeOf(payment)
    for (const each of sums) {
      if (outcome !== null) each[outcome]++
      each.volume += payment.amount_received
    }
    for (const code of declinesOf(payment)) declines.set(code, (declines.get(code) ?? 0) + 1)
  }
  for (const { amount, created, currency, status } of refunds) {
    if (created < since || status === "failed") continue
    for (const each of at(currency, created)[1]) {
      each.refunds++
      each.refunded += amount
    }
  }
  return [...open.values()].toSorted((one, other) => other.paid + other.failed - one.paid - one.failed)
}

/** What came of a payment that was tried; null for one that nobody has tried, or that is under way. */
const outcomeOf = ({ charges, last_payment_error, status }: PaymentIntent): "paid" | "failed" | null => {
  const [newest] = charges.data
  if (newest?.status === "succeeded") return "paid"
  if (status === "processing" || status === "requires_action") return null
  return newest?.status === "failed" || last_payment_error !== undefined ? "failed" : null
}

/** Codes of the attempts that failed. An authentication that failed made no charge. */
const declinesOf = ({ charges, last_payment_error }: PaymentIntent): ReadonlyArray<string> => {
  const codes = charges.data.flatMap(({ decline_code, failure_code, status }) =>
    status === "failed" ? [decline_code ?? failure_code ?? "unknown"] : []
  )
  return last_payment_error?.code === "payment_intent_authentication_failure"
    ? [...codes, "authentication_failed"]
    : codes
}
