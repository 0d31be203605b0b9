/** Payment statistics over a time range, from the sums of `payments/Tallies.ts`. */
import { Effect } from "effect"
import type { AccountId } from "../../engine/log/Document.ts"
import * as Tallies from "../../payments/Tallies.ts"

const HOUR = 3600
const DAY = 24 * HOUR

/** Time ranges: number of intervals, including the current one, and seconds per interval. */
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
  /** Payments that were attempted and are paid or authorized. */
  paid: number
  /** Payments whose last attempt failed. */
  failed: number
  /** Amount received, before refunds. */
  volume: number
  refunds: number
  refunded: number
}

export interface Counted extends Sums {
  readonly currency: string
  /** Oldest first. A payment counts at its creation, a refund at its own. */
  readonly steps: ReadonlyArray<Sums>
  readonly declines: ReadonlyMap<string, number>
}

export interface Numbered {
  /** Start of the first interval, in Unix seconds of the account's clock. */
  readonly from: number
  /** Sorted by number of payments, largest first. */
  readonly currencies: ReadonlyArray<Counted>
  /** The sums of the range of the same length before, by currency. */
  readonly before: ReadonlyMap<string, Sums>
}

/** Statistics of a range whose last interval contains `now`, in Unix seconds of the account's clock. */
export const numbersOf = Effect.fnUntraced(function* (account: AccountId, range: RangeName, now: number) {
  const { seconds, steps } = RANGES[range]
  const from = now - (now % seconds) - (steps - 1) * seconds
  const hours = seconds / HOUR
  const tallies = yield* Tallies.read(account, { from: from / HOUR - steps * hours, hours })
  const earlier = tallies.filter(({ step }) => step < steps)
  const current = tallies.filter(({ step }) => step >= steps).map((tally) => ({ ...tally, step: tally.step - steps }))
  const before = new Map(countedOf(steps, earlier).map((counted) => [counted.currency, counted]))
  return { from, currencies: countedOf(steps, current), before } satisfies Numbered
})

interface Open extends Counted {
  readonly steps: ReadonlyArray<Sums>
  readonly declines: Map<string, number>
}

const nothing = (): Sums => ({ paid: 0, failed: 0, volume: 0, refunds: 0, refunded: 0 })

const countedOf = (
  length: number,
  tallies: Effect.Success<ReturnType<typeof Tallies.read>>
): ReadonlyArray<Counted> => {
  const open = new Map<string, Open>()
  const openOf = (currency: string): Open => {
    let counted = open.get(currency)
    if (counted === undefined) {
      counted = { currency, ...nothing(), steps: Array.from({ length }, nothing), declines: new Map() }
      open.set(currency, counted)
    }
    return counted
  }
  for (const { amount, count, step, ...of } of tallies) {
    const counted = openOf(of.currency)
    if (of.what === "declined") {
      counted.declines.set(of.code, (counted.declines.get(of.code) ?? 0) + count)
      continue
    }
    // If the clock was set back, totals of later hours can remain. They count to the last interval.
    for (const sums of [counted, counted.steps[Math.min(step, length - 1)]!]) {
      if (of.what === "refunded") {
        sums.refunds += count
        sums.refunded += amount
      } else {
        sums[of.what] += count
        sums.volume += amount
      }
    }
  }
  return [...open.values()].toSorted((one, other) => other.paid + other.failed - one.paid - one.failed)
}
