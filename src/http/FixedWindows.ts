/**
 * How often something happened in the current minute, by key (semantics R1: fixed windows).
 *
 * All windows end together, with the clock's minute, and are then forgotten together: what it holds is bounded by what
 * happened in one minute, and by `KEYS_MAX`; keys beyond those share one count. A clock that is set back begins new
 * windows, so nobody ever waits longer than a minute.
 */

/** The length of a window. */
export const WINDOW_MILLIS = 60_000

/** More keys than this in one minute are counted together. */
export const KEYS_MAX = 100_000

/** Where a key stands in the current window. */
export interface Standing {
  readonly limit: number
  /** How many more are allowed until the window ends. */
  readonly remaining: number
  /** Whether what was counted last was more than is allowed. */
  readonly isExceeded: boolean
  /** Until the window ends, in whole seconds: from 1 to 60. */
  readonly resetSeconds: number
}

const OTHERS = ""

export class FixedWindows {
  readonly #limit: number
  readonly #counts = new Map<string, number>()
  #window = Number.NaN

  /** Allows `limit` per key and minute. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** How many keys it knows of. */
  get size(): number {
    return this.#counts.size
  }

  /** Counts one more, at a time in Unix milliseconds. */
  count(key: string, nowMillis: number): Standing {
    const known = this.#known(key, nowMillis)
    const used = (this.#counts.get(known) ?? 0) + 1
    this.#counts.set(known, used)
    return this.#standing(used, nowMillis)
  }

  /** The same, without counting. */
  peek(key: string, nowMillis: number): Standing {
    return this.#standing(this.#counts.get(this.#known(key, nowMillis)) ?? 0, nowMillis)
  }

  #known(key: string, nowMillis: number): string {
    const window = Math.floor(nowMillis / WINDOW_MILLIS)
    if (window !== this.#window) {
      this.#counts.clear()
      this.#window = window
    }
    return this.#counts.has(key) || this.#counts.size < KEYS_MAX ? key : OTHERS
  }

  #standing(used: number, nowMillis: number): Standing {
    return {
      limit: this.#limit,
      remaining: Math.max(0, this.#limit - used),
      isExceeded: used > this.#limit,
      resetSeconds: Math.ceil((WINDOW_MILLIS - (nowMillis % WINDOW_MILLIS)) / 1000)
    }
  }
}
