/**
 * Finds out how many commands may be under way at a time: as many as the storage takes without making them wait for one
 * another. A flush takes all that has queued up, so a few hundred cost a good storage no more time than one does. One
 * that is slow by the byte, or fails, takes longer with each.
 *
 * What a command takes alone tells how far away the storage is; what it takes beyond that is waiting. Under a load that
 * does not end, alone is what the quickest took of late.
 */

/** Two full flushes: more at a time would only wait. */
const MOST = 1024
const LEAST = 16
/** What waits for the storage is to wait for so much longer than it would alone, within these bounds. */
const TIMES = 2.5
const MILLIS_MIN = 100
const MILLIS_MAX = 1000
/** The limit changes after so many answers, or so much time. */
const STEP_COUNT = 64
const STEP_MILLIS = 100
const GROWTH = 1.5
const SHRINKAGE = 0.7
/** The shortest time is that of the last two such spans. */
const SPAN_MILLIS = 2500

export class ConcurrencyLimit {
  #value = MOST
  #wasReached = false
  #count = 0
  #slow = 0
  #stepAt = 0
  #spanAt = 0
  #shortest = Infinity
  #shortestBefore = Infinity

  get value(): number {
    return Math.floor(this.#value)
  }

  /** Notes that somebody has to wait for a place: more of them may be worth a try. */
  reached(): void {
    this.#wasReached = true
  }

  /** Takes note of how long a command took. */
  observe(millis: number, now: number): void {
    if (now - this.#spanAt >= SPAN_MILLIS) {
      this.#shortestBefore = now - this.#spanAt < 2 * SPAN_MILLIS ? this.#shortest : Infinity
      this.#shortest = Infinity
      this.#spanAt = now
    }
    this.#shortest = Math.min(this.#shortest, millis)
    const alone = Math.min(this.#shortest, this.#shortestBefore)
    this.#count++
    if (millis > Math.min(Math.max(TIMES * alone, MILLIS_MIN), MILLIS_MAX)) this.#slow++
    if (this.#count >= STEP_COUNT || now - this.#stepAt >= STEP_MILLIS) this.#step(now)
  }

  #step(now: number): void {
    if (this.#slow * 2 > this.#count) this.#value = Math.max(LEAST, this.#value * SHRINKAGE)
    else if (this.#wasReached) this.#value = Math.min(MOST, this.#value * GROWTH)
    this.#wasReached = false
    this.#count = this.#slow = 0
    this.#stepAt = now
  }
}
