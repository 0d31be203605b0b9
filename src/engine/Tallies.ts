/**
 * Tallies: how many documents an account has of some sort, and how much of it, hour by hour.
 *
 * A kind says what a document counts as (`Kind.tallies`); what that means, the engine does not know. A document's row
 * keeps what it counts as, and the view has the sums. So whoever projects a change adds what the document counts as now
 * and takes away what its row says it counted as before, and many changes of a batch become one step of each sum.
 *
 * A sum that came to nothing has no row, or one of zeros: both mean the same.
 */
import type { AccountId } from "./Document.ts"

/** A document counts as so many of something, and so much of it. */
export interface Tally {
  /** Seconds since the Unix epoch; counts for the hour in which that is. */
  readonly at: number
  /** Without quotation marks, backslashes and control characters. */
  readonly key: string
  /** Safe integers, as all their sums have to be. */
  readonly count: number
  readonly amount: number
}

/** The same as it is kept. */
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

/** A key is read back from text by whatever the storage has for that. */
const isPlain = (key: string): boolean => /^[^"\\\p{C}]*$/u.test(key)

/** What a row keeps of a document: each sum that it is in once, in one order. */
export const entriesOf = (tallies: ReadonlyArray<Tally>): ReadonlyArray<TallyEntry> => {
  if (tallies.length === 0) return NOTHING
  const sums = new Sums()
  for (const { amount, at, count, key } of tallies) {
    if (!isPlain(key)) throw new Error(`Nothing can be counted under ${JSON.stringify(key)}`)
    sums.add({ hour: Math.floor(at / HOUR_SECONDS), key, count, amount })
  }
  return sums.entries().toSorted((a, b) => (tallyId(a) < tallyId(b) ? -1 : 1))
}

const NOTHING: ReadonlyArray<TallyEntry> = []

/** As a row has them in Postgres; null if there are none. */
export const entriesText = (entries: ReadonlyArray<TallyEntry>): string | null =>
  entries.length === 0
    ? null
    : JSON.stringify(entries.map(({ amount, count, hour, key }) => [hour, key, count, amount]))

/** The inverse. What was changed there reads as nothing: verification compares the rows. */
export const entriesIn = (text: string | null): ReadonlyArray<TallyEntry> => {
  if (text === null || !ENTRIES.test(text)) return NOTHING
  const read = JSON.parse(text) as ReadonlyArray<readonly [hour: number, key: string, count: number, amount: number]>
  return read.map(([hour, key, count, amount]) => ({ hour, key, count, amount }))
}

/** What a row may have, as a regular expression that Postgres understands as well. */
export const ENTRIES_PATTERN = (() => {
  const number = (digits: number) => `(0|[1-9][0-9]{0,${digits - 1}})`
  const key = String.raw`"[^"\\\u0001-\u001f]*"`
  const entry = String.raw`\[${number(9)},${key},-?${number(15)},-?${number(15)}\]`
  return String.raw`^\[${entry}(,${entry})*\]$`
})()
const ENTRIES = new RegExp(ENTRIES_PATTERN, "u")

/** Sums of one account. */
export class Sums {
  readonly #sums = new Map<string, { count: number; amount: number }>()

  get size(): number {
    return this.#sums.size
  }

  add(entry: TallyEntry, sign: 1 | -1 = 1): void {
    const id = tallyId(entry)
    const sum = this.#sums.get(id)
    if (sum === undefined) this.#sums.set(id, { count: sign * entry.count, amount: sign * entry.amount })
    else {
      sum.count += sign * entry.count
      sum.amount += sign * entry.amount
    }
  }

  /** Those that came to something. */
  entries(): ReadonlyArray<TallyEntry> {
    return [...this.#sums].flatMap(([id, sum]) =>
      sum.count === 0 && sum.amount === 0 ? [] : [{ ...tallyAt(id), ...sum }]
    )
  }

  clear(): void {
    this.#sums.clear()
  }
}

/** What rows count as together, account by account. */
export const sumsOf = (
  rows: Iterable<{ readonly account: AccountId; readonly tallies: ReadonlyArray<TallyEntry> }>
): ReadonlyArray<TallyRow> => {
  const accounts = new Map<AccountId, Sums>()
  for (const { account, tallies } of rows) {
    if (tallies.length === 0) continue
    let sums = accounts.get(account)
    if (sums === undefined) accounts.set(account, (sums = new Sums()))
    for (const entry of tallies) sums.add(entry)
  }
  return [...accounts].flatMap(([account, sums]) => sums.entries().map((entry) => ({ account, ...entry })))
}
