/**
 * Translates bounds on `created` into bounds on ids, which begin with their time of creation: lists walk along ids and
 * read nothing outside the bounds.
 *
 * An object is created at its account's time, in whole seconds, and its id is generated in the same command. The
 * counter of ids follows that time and never falls behind it. It runs ahead where the clock steps back, and where one
 * millisecond has more ids than counter values. So no object was created later than the time in its id, and the views
 * keep per account how far ids were ahead at most (`aheadOf`): nearly always 0, and then ids alone decide. Otherwise a
 * list reads that many seconds further and checks the `created` of each document.
 */
import type { Millis } from "./Document.ts"
import { idAt, timeOf } from "./Identifiers.ts"
import type { JournalRecord } from "./Record.ts"

/** Rows with ids strictly between these two. */
export interface Between {
  readonly behind?: string
  readonly before?: string
}

/** A range of creation times: `from` or later, and earlier than `before`. Seconds since the Unix epoch. */
export interface Created {
  readonly from?: number
  readonly before?: number
}

const secondsOf = (millis: Millis): number => Math.floor(millis / 1000)

/** Returns by how many seconds the ids of a record may be ahead of its time. */
export const aheadOf = ({ now, sequence }: Pick<JournalRecord, "now" | "sequence">): number =>
  Math.max(0, secondsOf(timeOf(sequence)) - secondsOf(now))

/** Returns the range of ids that objects created in a range of times can have; `ahead` is the account's, in seconds. */
export const idsOf = (prefix: string, { before, from }: Created, ahead: number): Between => ({
  ...(from !== undefined && { behind: idAt(prefix, from * 1000) }),
  ...(before !== undefined && { before: idAt(prefix, (before + ahead) * 1000) })
})

/** Returns whether an object was created in the range; `created` in seconds. */
export const isWithin = (created: number, { before = Infinity, from = -Infinity }: Created): boolean =>
  created >= from && created < before

/** The same for a time in milliseconds. */
export const wasWithin = (at: Millis, created: Created): boolean => isWithin(secondsOf(at), created)
