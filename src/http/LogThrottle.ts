/** Says of things that come in floods, such as failures while the database is away, when one is to be told of. */
export class LogThrottle {
  readonly #pauseMillis: number
  #nextAt = -Infinity
  #untold = 0

  constructor(pauseMillis: number) {
    this.#pauseMillis = pauseMillis
  }

  /** How many were not told of since the last that was; undefined if this one is not to be told of either. */
  take(now: number = performance.now()): number | undefined {
    if (now < this.#nextAt) {
      this.#untold++
      return undefined
    }
    const untold = this.#untold
    this.#untold = 0
    this.#nextAt = now + this.#pauseMillis
    return untold
  }
}
