/**
 * Tallies: how many documents an account has of some sort, and how much of it, hour by hour.
 *
 * A kind says what a document counts as (`Kind.tallies`); what that means, the engine does not know. A document's row
 * keeps what it counts as, and the view has the sums. So whoever projects a change adds what the document counts as now
 * and takes away what its row says it counted as before, and many changes of a batch become one step of each sum.
 *
 * A sum that came to nothing has no row, or one of zeros: both mean the same.
 */
import type { AccountId, Tally } from "./Document.ts"

/** What a document counts as, as it is kept. */
export interface TallyEntry {
  /** Since the Unix epoch. */
  readonly hour: number
  readonly key: string
  readonly count: number
  readonly amount: number
}

export interface TallyRow extends TallyEntry {
  readonly account: AccountId
}

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

/** A sum is stored under this id, which sorts by time. */
export const tallyId = ({ hour, key }: Pick<TallyEntry, "hour" | "key">): string =>
  `${String(hour).padStart(HOUR_DIGITS, "0")} ${key}`

/** The inverse. */
export const tallyAt = (id: string): Pick<TallyEntry, "hour" | "key"> => ({
  hour: Number(id.slice(0, HOUR_DIGITS)),
  key: id.slice(HOUR_DIGITS + 1)
})

/** Such a sum is as good as none. */
export const isNothing = ({ amount, count }: Pick<TallyEntry, "count" | "amount">): boolean =>
  count === 0 && amount === 0

/** Sums of one account, by their ids. */
export type Sums = Map<string, TallyEntry>

export const addTo = (sums: Sums, entry: TallyEntry): void => {
  const id = tallyId(entry)
  const { amount, count } = sums.get(id) ?? { count: 0, amount: 0 }
  sums.set(id, { ...entry, count: count + entry.count, amount: amount + entry.amount })
}

const NONE: ReadonlyArray<TallyEntry> = []

/** What a row keeps of a document: each sum that it is in once, in one order. Throws if it could not be read back. */
export const entriesOf = (tallies: ReadonlyArray<Tally>): ReadonlyArray<TallyEntry> => {
  if (tallies.length === 0) return NONE
  const sums: Sums = new Map()
  for (const { at, ...tally } of tallies) addTo(sums, { hour: Math.floor(at / HOUR_SECONDS), ...tally })
  const ids = [...sums.keys()].toSorted()
  const entries = ids.map((id) => sums.get(id)!).filter((entry) => !isNothing(entry))
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
  const read = JSON.parse(text) as ReadonlyArray<readonly [hour: number, key: string, count: number, amount: number]>
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
