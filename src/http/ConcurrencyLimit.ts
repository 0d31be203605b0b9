/**
 * Adapts the number of concurrent commands to the storage: as many as run without queueing. One flush writes all queued
 * commands, so a few hundred take a good storage as long as one. A storage that is slow per byte, or fails, takes
 * longer with each.
 *
 * The latency of a single command shows how far away the storage is; time beyond that is queueing. Under constant load,
 * the shortest recent latency serves as that of a single command.
 */

/** The greatest limit: two full flushes. Further commands would only queue. */
const MOST = 1024
const LEAST = 16
/** A command is slow if it takes this many times the shortest latency, within these bounds in milliseconds. */
const TIMES = 2.5
const MILLIS_MIN = 100
const MILLIS_MAX = 1000
/** The limit changes after this many answers, or this much time. */
const STEP_COUNT = 64
const STEP_MILLIS = 100
const GROWTH = 1.5
const SHRINKAGE = 0.7
/** The shortest latency is taken over the last two spans of this length, in milliseconds. */
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

  /** Reports that a command has to wait for a place, so that a higher limit is worth a try. */
  reached(): void {
    this.#wasReached = true
  }

  /** Reports the duration of a command. */
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
