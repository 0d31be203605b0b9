/**
 * Gives requests precedence over webhooks: says how many attempts may begin in a turn of a millisecond or more.
 *
 * - Webhooks use what is left. While the event loop has time to wait for something, the number grows; when it has had
 *   none for some turns, requests may be waiting for it, and the number halves with each further one. A single busy
 *   turn says nothing: the commit of many requests is one. At first the number is small, for a process that has just
 *   started is slow.
 * - Webhooks never starve: two begin in each turn, and the longer they have not been able to catch up, the more do.
 *   After two seconds of that they are held back no more, whatever it costs the requests; where only retries and what
 *   was left over wait, which are late by minutes, after eight.
 */
import type { Millis } from "../engine/log/Document.ts"

/** Attempts that begin in one turn, at most: begun in one piece, more would make everybody else wait. */
export const PER_TURN_MAX = 32
/** Attempts that may begin in any turn. */
export const PER_TURN_MIN = 2
/** By so many the number grows. */
const GROWTH = 4
/** An event loop that waits for a smaller share of the last turns has no time left. */
export const SPARE_MIN = 0.05
/** The newest turn's part in the average of the last ones. */
const NEWEST = 0.1
/** What may begin in any turn doubles each time that webhooks have been behind for so long: new ones, and others. */
const DOUBLING_MILLIS = 500
const DOUBLING_LATE_MILLIS = 2000

export class Pace {
  #adapted = PER_TURN_MIN
  /** Share of the last turns for which the event loop had nothing to do. */
  #spare = 0
  /** Since when there has always been something to begin; null if there is nothing. */
  #behindSince: Millis | null = null

  /** How many attempts may begin in this turn. `hasNew` says whether something waits that has just happened. */
  allowed(now: Millis, hasNew: boolean): number {
    const behind = now - (this.#behindSince ??= now)
    const doublings = Math.floor(behind / (hasNew ? DOUBLING_MILLIS : DOUBLING_LATE_MILLIS))
    return Math.min(Math.max(this.#adapted, PER_TURN_MIN * 2 ** doublings), PER_TURN_MAX)
  }

  /** For this share of the turn, from 0 to 1, the event loop had nothing to do. */
  turned(spare: number): void {
    this.#spare += NEWEST * (spare - this.#spare)
    this.#adapted =
      this.#spare < SPARE_MIN
        ? Math.max(this.#adapted >> 1, PER_TURN_MIN)
        : Math.min(this.#adapted + GROWTH, PER_TURN_MAX)
  }

  /** Nothing is left that could begin now. */
  caughtUp(): void {
    this.#behindSince = null
  }
}
