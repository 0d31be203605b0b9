/**
 * Tallies: counts and amounts of an account's documents, per key, hour and day.
 *
 * A kind defines the tallies of a document (`Kind.tallies`), whose keys mean nothing to the engine. A document's row
 * keeps its tallies, and the view keeps the sums. The projection of a change adds the document's new tallies and
 * subtracts those in its row, and many changes of a batch become one update of each sum.
 *
 * A sum of zero has no row, or a row of zeros: both mean the same.
 */
import { parseJson } from "../../json/JsonParse.ts"
import type { AccountId, Tally } from "./Document.ts"

export interface TallyEntry {
  /** Hours since the Unix epoch. */
  readonly hour: number
  readonly key: string
  readonly count: number
  readonly amount: number
}

/** A sum over a span of `hours` hours that begins with `hour`. */
export interface Sum extends TallyEntry {
  readonly hours: number
}

export interface TallyRow extends Sum {
  readonly account: AccountId
}

const DAY_HOURS = 24

/** The lengths of sums, in hours: an hour, and a day in UTC, of which a query adds up 24 times fewer. */
export const SPANS = [1, DAY_HOURS] as const

export const sumsOf = (entry: TallyEntry): ReadonlyArray<Sum> =>
  SPANS.map((hours) => ({ ...entry, hours, hour: entry.hour - (entry.hour % hours) }))

/** Sums of steps of any length: each step goes from its start to the next one. */
export interface TallyQuery {
  /** In hours since the Unix epoch, ascending. The last step has no end. */
  readonly starts: ReadonlyArray<number>
}

/** The sums of one length that a step consists of, from one hour up to another. */
export interface Piece {
  readonly step: number
  readonly hours: (typeof SPANS)[number]
  readonly from: number
  readonly until: number
}

/** A later hour than any that a tally has. */
const NEVER = 10 ** 9

/** Divides each step into whole days in UTC, and hours before and after them. */
export const piecesOf = ({ starts }: TallyQuery): ReadonlyArray<Piece> =>
  starts.flatMap((from, step) => {
    const until = starts[step + 1] ?? NEVER
    const firstDay = Math.ceil(from / DAY_HOURS) * DAY_HOURS
    const lastDay = Math.floor(until / DAY_HOURS) * DAY_HOURS
    const pieces: ReadonlyArray<Piece> =
      firstDay > lastDay
        ? [{ step, hours: 1, from, until }]
        : [
            { step, hours: 1, from, until: firstDay },
            { step, hours: DAY_HOURS, from: firstDay, until: lastDay },
            { step, hours: 1, from: lastDay, until }
          ]
    return pieces.filter(({ from, until }) => from < until)
  })

/** A sum of a step, counted from 0. Steps without documents are left out. */
export interface TalliesOfStep extends Omit<TallyEntry, "hour"> {
  readonly step: number
}

const HOUR_SECONDS = 3600
const HOUR_DIGITS = 10
const SPAN_DIGITS = 2

/** Returns the id of a sum, which sorts by length and time. */
export const tallyId = ({ hour, hours, key }: Pick<Sum, "hour" | "hours" | "key">): string =>
  `${String(hours).padStart(SPAN_DIGITS, "0")} ${String(hour).padStart(HOUR_DIGITS, "0")} ${key}`

export const tallyAt = (id: string): Pick<Sum, "hour" | "hours" | "key"> => ({
  hours: Number(id.slice(0, SPAN_DIGITS)),
  hour: Number(id.slice(SPAN_DIGITS + 1, SPAN_DIGITS + 1 + HOUR_DIGITS)),
  key: id.slice(SPAN_DIGITS + HOUR_DIGITS + 2)
})

export const isNothing = ({ amount, count }: Pick<TallyEntry, "count" | "amount">): boolean =>
  count === 0 && amount === 0

export type Sums = Map<string, Sum>

export const addTo = (sums: Sums, sum: Sum): void => {
  const id = tallyId(sum)
  const { amount, count } = sums.get(id) ?? { count: 0, amount: 0 }
  sums.set(id, { ...sum, count: count + sum.count, amount: amount + sum.amount })
}

const NONE: ReadonlyArray<TallyEntry> = []

/** Returns the tallies to store for a document, one per hour and key, sorted. Throws if they could not be read back. */
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

/** Returns tallies as the text of a row; null for a kind without tallies. */
export const entriesText = (entries: ReadonlyArray<TallyEntry> | null): string | null =>
  entries && JSON.stringify(entries.map(({ amount, count, hour, key }) => [hour, key, count, amount]))

/** Parses the text of a row. A text that was changed reads as null; verification reports it. */
export const entriesIn = (text: string | null): ReadonlyArray<TallyEntry> | null => {
  if (text === null || !ENTRIES.test(text)) return null
  const read = parseJson(text) as ReadonlyArray<readonly [hour: number, key: string, count: number, amount: number]>
  return read.map(([hour, key, count, amount]) => ({ hour, key, count, amount }))
}

/** The format of a row's text, as a regular expression that Postgres understands too. */
export const ENTRIES_PATTERN = (() => {
  const number = (digits: number) => `(0|[1-9][0-9]{0,${digits - 1}})`
  const key = String.raw`"[^"\\\u0001-\u001f]*"`
  const entry = String.raw`\[${number(9)},${key},-?${number(15)},-?${number(15)}\]`
  return String.raw`^\[(${entry}(,${entry})*)?\]$`
})()
const ENTRIES = new RegExp(ENTRIES_PATTERN, "u")
