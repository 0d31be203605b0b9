/**
 * Bounds on `created` become bounds on ids, which have the time of their making in front: lists walk along ids, and
 * read nothing beside the bounds.
 *
 * An object is created at its account's time, in whole seconds, and its id is made in the same command. The counter of
 * ids follows that time and never falls behind it. It runs ahead of it where the clock steps back, and where one
 * millisecond has more ids than the counter has places for it. So no object was created later than its id says, and
 * of each account the views know by how much ids were ahead at most (`aheadOf`): nearly always by nothing, and then ids
 * say all. Otherwise a list reads on by so much, and looks into what it finds.
 */
import type { Millis } from "./Document.ts"
import { idAt, timeOf } from "./Identifiers.ts"
import type { JournalRecord } from "./Record.ts"

/** Rows with ids strictly between these two. */
export interface Between {
  readonly behind?: string
  readonly before?: string
}

/** When an object was created: at `from` or later, and earlier than `before`. Seconds since the Unix epoch. */
export interface Created {
  readonly from?: number
  readonly before?: number
}

const secondsOf = (millis: Millis): number => Math.floor(millis / 1000)

/** By how many seconds the ids of a record may be ahead of its time. */
export const aheadOf = ({ now, sequence }: Pick<JournalRecord, "now" | "sequence">): number =>
  Math.max(0, secondsOf(timeOf(sequence)) - secondsOf(now))

/** The ids of a prefix that objects can have which were created then, `ahead` being the account's. */
export const idsOf = (prefix: string, { before, from }: Created, ahead: number): Between => ({
  ...(from !== undefined && { behind: idAt(prefix, from * 1000) }),
  ...(before !== undefined && { before: idAt(prefix, (before + ahead) * 1000) })
})

/** Says whether an object was created then; `created` in seconds. */
export const isWithin = (created: number, { before = Infinity, from = -Infinity }: Created): boolean =>
  created >= from && created < before

/** The same of what happened at a time in milliseconds. */
export const wasWithin = (at: Millis, created: Created): boolean => isWithin(secondsOf(at), created)
