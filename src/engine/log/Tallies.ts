/**
 * Tallies: how many documents an account has of some sort, and how much of it, hour by hour and day by day.
 *
 * A kind says what a document counts as (`Kind.tallies`); what that means, the engine does not know. A document's row
 * keeps what it counts as, and the view has the sums. So whoever projects a change adds what the document counts as now
 * and takes away what its row says it counted as before, and many changes of a batch become one step of each sum.
 *
 * A sum that came to nothing has no row, or one of zeros: both mean the same.
 */
import { parseJson } from "../../json/JsonParse.ts"
import type { AccountId, Tally } from "./Document.ts"

/** What a document counts as, as it is kept. */
export interface TallyEntry {
  /** Since the Unix epoch. */
  readonly hour: number
  readonly key: string
  readonly count: number
  readonly amount: number
}

/** A sum of so many hours, of which `hour` is the first. */
export interface Sum extends TallyEntry {
  readonly hours: number
}

export interface TallyRow extends Sum {
  readonly account: AccountId
}

/** There are sums of the hours, and of the days in UTC: of a day there are twenty-four times as few to add up. */
export const SPANS = [1, 24] as const

/** The longest sums that steps of so many hours are made of. */
export const spanOf = ({ from, hours }: TallyQuery): number =>
  SPANS.findLast((span) => from % span === 0 && hours % span === 0)!

/** The sums that something is in which a document counts as. */
export const sumsOf = (entry: TallyEntry): ReadonlyArray<Sum> =>
  SPANS.map((hours) => ({ ...entry, hours, hour: entry.hour - (entry.hour % hours) }))

/** Sums of steps of as many hours each, from one hour on. */
export interface TallyQuery {
  readonly from: number
  /** 1 or more. */
  readonly hours: number
}

/** The sums of a step, counted from 0. Steps in which there was nothing are left out. */
export interface TalliesOfStep extends Omit<TallyEntry, "hour"> {
  readonly step: number
}

const HOUR_SECONDS = 3600
const HOUR_DIGITS = 10
const SPAN_DIGITS = 2

/** A sum is stored under this id, which sorts by length and time. */
export const tallyId = ({ hour, hours, key }: Pick<Sum, "hour" | "hours" | "key">): string =>
  `${String(hours).padStart(SPAN_DIGITS, "0")} ${String(hour).padStart(HOUR_DIGITS, "0")} ${key}`

/** The inverse. */
export const tallyAt = (id: string): Pick<Sum, "hour" | "hours" | "key"> => ({
  hours: Number(id.slice(0, SPAN_DIGITS)),
  hour: Number(id.slice(SPAN_DIGITS + 1, SPAN_DIGITS + 1 + HOUR_DIGITS)),
  key: id.slice(SPAN_DIGITS + HOUR_DIGITS + 2)
})

/** Such a sum is as good as none. */
export const isNothing = ({ amount, count }: Pick<TallyEntry, "count" | "amount">): boolean =>
  count === 0 && amount === 0

/** Sums of one account, by their ids. */
export type Sums = Map<string, Sum>

export const addTo = (sums: Sums, sum: Sum): void => {
  const id = tallyId(sum)
  const { amount, count } = sums.get(id) ?? { count: 0, amount: 0 }
  sums.set(id, { ...sum, count: count + sum.count, amount: amount + sum.amount })
}

const NONE: ReadonlyArray<TallyEntry> = []

/** What a row keeps of a document: each sum that it is in once, in one order. Throws if it could not be read back. */
export const entriesOf = (tallies: ReadonlyArray<Tally>): ReadonlyArray<TallyEntry> => {
  if (tallies.length === 0) return NONE
  const sums: Sums = new Map()
  for (const { at, ...tally } of tallies) addTo(sums, { hours: 1, hour: Math.floor(at / HOUR_SECONDS), ...tally })
  const ids = [...sums.keys()].toSorted()
  const entries = ids.flatMap((id) => {
    const { hours: _, ...entry } = sums.get(id)!
    return isNothing(entry) ? [] : entry
  })
  const text = entriesText(entries)!
  if (!ENTRIES.test(text)) throw new Error(`Nothing can be counted as ${text}`)
  return entries
}

/** As a row has them in Postgres; null where there are none. */
export const entriesText = (entries: ReadonlyArray<TallyEntry> | null): string | null =>
  entries && JSON.stringify(entries.map(({ amount, count, hour, key }) => [hour, key, count, amount]))

/** The inverse. What somebody has changed there reads as none: verification compares the rows. */
export const entriesIn = (text: string | null): ReadonlyArray<TallyEntry> | null => {
  if (text === null || !ENTRIES.test(text)) return null
  const read = parseJson(text) as ReadonlyArray<readonly [hour: number, key: string, count: number, amount: number]>
  return read.map(([hour, key, count, amount]) => ({ hour, key, count, amount }))
}

/** What a row may have, as a regular expression that Postgres understands as well. */
export const ENTRIES_PATTERN = (() => {
  const number = (digits: number) => `(0|[1-9][0-9]{0,${digits - 1}})`
  const key = String.raw`"[^"\\\u0001-\u001f]*"`
  const entry = String.raw`\[${number(9)},${key},-?${number(15)},-?${number(15)}\]`
  return String.raw`^\[(${entry}(,${entry})*)?\]$`
})()
const ENTRIES = new RegExp(ENTRIES_PATTERN, "u")
