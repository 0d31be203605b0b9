/** Payment statistics over a time range, from the sums of `payments/shared/Tallies.ts`. */
import { Effect } from "effect"
import type { AccountId } from "../../engine/log/Document.ts"
import * as Tallies from "../../payments/shared/Tallies.ts"
import { dayOf, instantOf, UTC } from "../frame/TimeZones.ts"

const HOUR = 3600
const DAY_MILLIS = 86_400_000

/** Time ranges: number of intervals, hours or days, including the current one. */
export const RANGES = {
  "24h": { name: "24 hours", steps: 24 },
  "7d": { name: "7 days", steps: 7 },
  "30d": { name: "30 days", steps: 30 },
  "90d": { name: "90 days", steps: 90 }
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
  /** Starts of the intervals, in Unix seconds of the account's clock. */
  readonly starts: ReadonlyArray<number>
  /** Sorted by number of payments, largest first. */
  readonly currencies: ReadonlyArray<Counted>
  /** The sums of the range of the same length before, by currency. */
  readonly before: ReadonlyMap<string, Sums>
}

/**
 * The starts of the newest `count` hours or days in a zone, oldest first. Sums exist by hours in UTC, so a day that
 * begins within such an hour begins with the next one.
 */
export const startsOf = (range: RangeName, count: number, now: number, zone: string): ReadonlyArray<number> => {
  const ago = Array.from({ length: count }, (_, i) => count - 1 - i)
  if (range === "24h") return ago.map((hours) => now - (now % HOUR) - hours * HOUR)
  const today = dayOf(zone, now * 1000)
  const starts = ago.map((days) => Math.ceil(instantOf(zone, today - days * DAY_MILLIS) / (HOUR * 1000)) * HOUR)
  // Before the late beginning of a day, the day before is the newest.
  return starts.at(-1)! <= now ? starts : startsOf(range, count, now - HOUR, zone)
}

/** Statistics of a range whose last interval contains `now`, in Unix seconds of the account's clock. */
export const numbersOf = Effect.fnUntraced(function* (
  account: AccountId,
  range: RangeName,
  now: number,
  zone: string = UTC
) {
  const { steps } = RANGES[range]
  const [before, ...others] = startsOf(range, 2 * steps, now, zone)
  const starts = others.slice(-steps)
  const tallies = yield* Tallies.read(account, { starts: [before!, ...starts].map((start) => start / HOUR) })
  const earlier = tallies.filter(({ step }) => step === 0)
  const current = tallies.filter(({ step }) => step > 0).map((tally) => ({ ...tally, step: tally.step - 1 }))
  return {
    starts,
    currencies: countedOf(steps, current),
    before: new Map(countedOf(1, earlier).map((counted) => [counted.currency, counted]))
  } satisfies Numbered
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
