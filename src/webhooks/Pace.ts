/**
 * Gives requests precedence over webhooks: limits how many attempts may begin in a turn of a millisecond or more.
 *
 * - Webhooks use the time that is left. While the event loop has idle time, the limit grows. After some turns without
 *   any, requests may be waiting, and the limit halves with each further one. A single busy turn means nothing: the
 *   commit of many requests is one. The limit starts small, because a process that has just started is slow.
 * - Webhooks never starve: two attempts may begin in each turn, and the limit rises the longer webhooks are behind.
 *   After two seconds nothing holds them back, whatever it costs the requests; after eight if only retries and
 *   deliveries from before a crash wait, which are late by minutes anyway.
 */
import { Context, Effect } from "effect"
import { measureUtilisation } from "../engine/process/EventLoop.ts"
import type { Millis } from "../engine/log/Document.ts"

/** The length of a turn, in milliseconds; a busy event loop makes it longer. */
const TURN_MILLIS = 1

export interface EventLoopShape {
  /** Leaves the event loop to other work for a turn. Returns the idle share of the turn, from 0 to 1. */
  readonly turn: Effect.Effect<number>
}

/** Node's event loop, unless a test provides another. */
export const EventLoop: Context.Reference<EventLoopShape> = Context.Reference("till/webhooks/EventLoop", {
  defaultValue: () => ({
    turn: Effect.callback<number>((resume) => {
      const utilisation = measureUtilisation()
      const timer = setTimeout(() => resume(Effect.succeed(1 - utilisation())), TURN_MILLIS)
      return Effect.sync(() => clearTimeout(timer))
    })
  })
})

/** Attempts that begin in one turn, at most. They begin without a pause, so more would delay everything else. */
export const PER_TURN_MAX = 32
/** Attempts that may begin in any turn. */
export const PER_TURN_MIN = 2
/** Growth of the limit after a turn with idle time. */
const GROWTH = 4
/** Average idle share of the last turns below which the event loop counts as fully used. */
export const SPARE_MIN = 0.05
/** Weight of the newest turn in that average. */
const NEWEST = 0.1
/** The limit doubles each time that webhooks have been behind for so long: with new deliveries, and without. */
const DOUBLING_MILLIS = 500
const DOUBLING_LATE_MILLIS = 2000

export class Pace {
  #adapted = PER_TURN_MIN
  /** Average idle share of the last turns. */
  #spare = 0
  /** Start of the time in which there was always an attempt to begin; null if there is none. */
  #behindSince: Millis | null = null

  /** How many attempts may begin in this turn. `hasNew`: whether deliveries of new events wait. */
  allowed(now: Millis, hasNew: boolean): number {
    const behind = now - (this.#behindSince ??= now)
    const doublings = Math.floor(behind / (hasNew ? DOUBLING_MILLIS : DOUBLING_LATE_MILLIS))
    return Math.min(Math.max(this.#adapted, PER_TURN_MIN * 2 ** doublings), PER_TURN_MAX)
  }

  /** Adapts the limit to the idle share of the last turn, from 0 to 1. */
  turned(spare: number): void {
    this.#spare += NEWEST * (spare - this.#spare)
    this.#adapted =
      this.#spare < SPARE_MIN
        ? Math.max(this.#adapted >> 1, PER_TURN_MIN)
        : Math.min(this.#adapted + GROWTH, PER_TURN_MAX)
  }

  /** Notes that no attempt is left that could begin now. */
  caughtUp(): void {
    this.#behindSince = null
  }
}
