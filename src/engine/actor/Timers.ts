/**
 * The timers of one account in memory, always including the next due ones.
 *
 * - The list holds every timer up to its horizon, so an actor knows its earliest due time without a query. Timers after
 *   the horizon are only in the views; the list is filled from there again when time reaches the horizon.
 * - A timer that could not fire is parked, so that it does not delay the others, and is retried with backoff.
 */
import { Context, Data, type Effect } from "effect"
import type { Millis } from "../log/Document.ts"
import type { Transaction } from "./Transaction.ts"

/** The timer's command cannot run now, which is not a bug. The timer stays set and is retried. */
export class Postponed extends Data.TaggedError("Postponed") {}

export interface DueTimer {
  readonly id: string
  readonly name: string
}

export class TimerHandler extends Context.Service<
  TimerHandler,
  (timer: DueTimer) => Effect.Effect<void, Postponed, Transaction>
>()("till/engine/TimerHandler") {}

export interface Timer extends DueTimer {
  readonly dueAt: Millis
}

export const TIMERS_PAGE = 4096
/** Backoff of a timer that could not fire: the first pause, doubled each time up to the maximum, in milliseconds. */
export const RETRY_MILLIS = 1000
const RETRY_MILLIS_MAX = 60_000
const TIMER_BYTES = 200

interface Parked {
  readonly timer: Timer
  /** Time of the next try, by the wall clock. */
  readonly retryAt: Millis
  readonly pauseMillis: Millis
}

export class Timers {
  /** Sorted by due time, then by id. */
  #next: Array<Timer> = []
  readonly #known = new Map<string, Timer>()
  readonly #parked = new Map<string, Parked>()
  /** The last timer, in due order, up to which the list is complete; null if it has all timers. */
  #horizon: Timer | null = null
  readonly #page: number

  constructor(page: number = TIMERS_PAGE) {
    this.#page = page
  }

  /** Number of timers to read for `fill`: the parked ones may come first, and are read in addition. */
  get pageSize(): number {
    return this.#page + this.#parked.size
  }

  get weight(): number {
    return (this.#known.size + this.#parked.size) * TIMER_BYTES
  }

  /** Due time of the next timer by the account's clock, or an earlier time; `Infinity` if none is set. */
  get nextDueAt(): Millis {
    return this.#next[0]?.dueAt ?? this.#horizon?.dueAt ?? Infinity
  }

  /** Time of the next retry of a parked timer, by the wall clock. A clock that was set back does not delay it. */
  retryAt(now: Millis): Millis {
    let nearest = Infinity
    for (const { retryAt } of this.#parked.values()) {
      nearest = Math.min(nearest, retryAt > now + RETRY_MILLIS_MAX ? now : retryAt)
    }
    return nearest
  }

  /** Whether the list is empty and time has reached its horizon, so that timers after it may be due. */
  mustFill(now: Millis): boolean {
    return this.#next.length === 0 && this.#horizon !== null && this.#horizon.dueAt <= now
  }

  /** Fills the list with the first `pageSize` timers of the views in due order; fewer if the views have fewer. */
  fill(timers: ReadonlyArray<Timer>): void {
    this.#horizon = timers.length < this.pageSize ? null : timers.at(-1)!
    this.#next = timers.filter((timer) => !this.#isParked(timer))
    this.#known.clear()
    for (const timer of this.#next) this.#known.set(timer.id, timer)
  }

  set(timer: Timer): void {
    this.clear(timer.id)
    if (this.#horizon !== null && compare(timer, this.#horizon) > 0) return
    this.#insert(timer)
    if (this.#next.length >= 2 * this.#page) this.#cut()
  }

  clear(id: string): void {
    this.#parked.delete(id)
    const timer = this.#known.get(id)
    if (timer === undefined) return
    this.#known.delete(id)
    this.#next.splice(this.#placeOf(timer), 1)
  }

  clearAll(): void {
    this.#next = []
    this.#known.clear()
    this.#parked.clear()
    this.#horizon = null
  }

  /** The next due timer by the account's clock. It stays in the list until it is cleared or parked. */
  due(now: Millis): Timer | undefined {
    const [timer] = this.#next
    return timer !== undefined && timer.dueAt <= now ? timer : undefined
  }

  /** The parked timers to retry now, by the wall clock, in due order. They stay parked until they are cleared. */
  retries(now: Millis): ReadonlyArray<Timer> {
    return [...this.#parked.values()]
      .filter(({ retryAt }) => retryAt <= now || retryAt > now + RETRY_MILLIS_MAX)
      .map(({ timer }) => timer)
      .toSorted(compare)
  }

  /** Parks a timer that could not fire, for twice its previous pause. `now` is the time of the wall clock. */
  park(timer: Timer, now: Millis): void {
    const pauseMillis = Math.min(2 * (this.#parked.get(timer.id)?.pauseMillis ?? RETRY_MILLIS / 2), RETRY_MILLIS_MAX)
    this.clear(timer.id)
    this.#parked.set(timer.id, { timer, retryAt: now + pauseMillis, pauseMillis })
  }

  #isParked({ dueAt, id }: Timer): boolean {
    return this.#parked.get(id)?.timer.dueAt === dueAt
  }

  #insert(timer: Timer): void {
    this.#known.set(timer.id, timer)
    this.#next.splice(this.#placeOf(timer), 0, timer)
  }

  /** Index of a timer in the list, or of its place. Most timers are due last, so it checks the end first. */
  #placeOf(timer: Timer): number {
    const last = this.#next.at(-1)
    if (last === undefined || compare(last, timer) < 0) return this.#next.length
    let low = 0
    for (let high = this.#next.length - 1; low < high;) {
      const middle = (low + high) >>> 1
      if (compare(this.#next[middle]!, timer) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Removes the latest timers, which the views still have. */
  #cut(): void {
    for (const { id } of this.#next.splice(this.#page)) this.#known.delete(id)
    this.#horizon = this.#next.at(-1)!
  }
}

const compare = (a: Timer, b: Timer): number => a.dueAt - b.dueAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
