/**
 * The timers of one account in memory: those that are due next, always.
 *
 * - The list holds every timer up to its horizon, so an actor knows its earliest due time without asking. What lies
 *   beyond the horizon is only in the views; the list is filled from there again once time gets that far.
 * - A timer that could not fire is parked: it must not hold the others back, and is tried again ever less often.
 */
import { Context, Data } from "effect"
import type { Effect } from "effect"
import type { Millis } from "../log/Document.ts"
import type { Transaction } from "./Transaction.ts"

/** A timer cannot be carried out for now, which is nobody's mistake. It stays set, and is tried again. */
export class Postponed extends Data.TaggedError("Postponed") {}

/** A timer that is due. */
export interface DueTimer {
  readonly id: string
  readonly name: string
}

/** Carries out the command that a timer stands for, by its name, when it is due. */
export class TimerHandler extends Context.Service<
  TimerHandler,
  (timer: DueTimer) => Effect.Effect<void, Postponed, Transaction>
>()("till/engine/TimerHandler") {}

export interface Timer extends DueTimer {
  /** By the account's clock. */
  readonly dueAt: Millis
}

/** Timers that one look into the views brings into memory. */
export const TIMERS_PAGE = 4096
/** Pause after a timer could not fire; each further one is twice as long, up to the maximum. */
export const RETRY_MILLIS = 1000
export const RETRY_MILLIS_MAX = 60_000
/** A timer takes up about so many bytes. */
const TIMER_BYTES = 200

interface Parked {
  readonly timer: Timer
  /** It is tried again at this time of the wall clock. */
  readonly retryAt: Millis
  readonly pauseMillis: Millis
}

export class Timers {
  /** In due order; equal times in the order of ids. */
  #next: Array<Timer> = []
  readonly #known = new Map<string, Timer>()
  readonly #parked = new Map<string, Parked>()
  /** The last timer in due order up to which all are in the list; null if they all are. */
  #horizon: Timer | null = null
  readonly #page: number

  constructor(page: number = TIMERS_PAGE) {
    this.#page = page
  }

  /** A fill must ask for so many of the views' timers: those that are parked come first, and do not count. */
  get pageSize(): number {
    return this.#page + this.#parked.size
  }

  /** About how many bytes they take up. */
  get weight(): number {
    return (this.#known.size + this.#parked.size) * TIMER_BYTES
  }

  /** Says when the next timer is due by the account's clock, and never too late. `Infinity` if none is set. */
  get nextDueAt(): Millis {
    return this.#next[0]?.dueAt ?? this.#horizon?.dueAt ?? Infinity
  }

  /** Says when a parked timer is tried again, by the wall clock. A clock that was set back does not put it off. */
  retryAt(now: Millis): Millis {
    let nearest = Infinity
    for (const { retryAt } of this.#parked.values()) {
      nearest = Math.min(nearest, retryAt > now + RETRY_MILLIS_MAX ? now : retryAt)
    }
    return nearest
  }

  /** Says whether the list has come to its end before the account's time has. */
  mustFill(now: Millis): boolean {
    return this.#next.length === 0 && this.#horizon !== null && this.#horizon.dueAt <= now
  }

  /** Takes over the views' first timers in due order, `pageSize` of them if there are so many. */
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

  /** Nothing is set any more. */
  clearAll(): void {
    this.#next = []
    this.#known.clear()
    this.#parked.clear()
    this.#horizon = null
  }

  /** The next timer that is due by the account's clock. It stays until it is cleared or parked. */
  due(now: Millis): Timer | undefined {
    const [timer] = this.#next
    return timer !== undefined && timer.dueAt <= now ? timer : undefined
  }

  /** The parked timers whose pause is over by the wall clock, in due order. They stay parked until they are cleared. */
  retries(now: Millis): ReadonlyArray<Timer> {
    return [...this.#parked.values()]
      .filter(({ retryAt }) => retryAt <= now || retryAt > now + RETRY_MILLIS_MAX)
      .map(({ timer }) => timer)
      .toSorted(compare)
  }

  /** Puts a timer that could not fire aside, for twice as long as the time before. `now` is of the wall clock. */
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

  /**
   * Finds where a timer stands in the list, or belongs. Most are due later than all others, so it looks at the end
   * first.
   */
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

  /** Leaves what lies further ahead to the views. */
  #cut(): void {
    for (const { id } of this.#next.splice(this.#page)) this.#known.delete(id)
    this.#horizon = this.#next.at(-1)!
  }
}

const compare = (a: Timer, b: Timer): number => a.dueAt - b.dueAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
