/** Exact percentiles and medians: no buckets, no interpolation between values that were never measured. */

/**
 * The smallest value that at least `percent` percent of all values do not exceed (nearest rank).
 * `ascending` must be sorted and must not be empty.
 */
export const percentile = (ascending: ArrayLike<number>, percent: number): number => {
  if (ascending.length === 0) throw new Error("No values, no percentile.")
  const rank = Math.ceil((percent / 100) * ascending.length)
  return ascending[Math.min(Math.max(rank, 1), ascending.length) - 1]!
}

/** The middle value; of an even number of values, the mean of the two in the middle. */
export const median = (values: ReadonlyArray<number>): number => {
  if (values.length === 0) throw new Error("No values, no median.")
  const ascending = Float64Array.from(values).toSorted()
  const middle = ascending.length >> 1
  return ascending.length % 2 === 1 ? ascending[middle]! : (ascending[middle - 1]! + ascending[middle]!) / 2
}

export interface Latency {
  readonly p50Millis: number
  readonly p99Millis: number
  readonly maxMillis: number
}

/** Returns the latency over all requests of these rounds, in milliseconds; each request counts once. */
export const latencyOf = (rounds: ReadonlyArray<Float64Array>): Latency => {
  const all = new Float64Array(rounds.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const round of rounds) {
    all.set(round, at)
    at += round.length
  }
  all.sort()
  return { p50Millis: percentile(all, 50), p99Millis: percentile(all, 99), maxMillis: percentile(all, 100) }
}

/** Latency with the 99.9th percentile. */
export interface TailLatency extends Latency {
  readonly p999Millis: number
}

export const tailLatencyOf = (millis: Float64Array): TailLatency => ({
  ...latencyOf([millis]),
  p999Millis: percentile(millis.toSorted(), 99.9)
})

/** A list of numbers that grows by doubling, so that adding one costs nearly nothing. */
export class Samples {
  #values = new Float64Array(1 << 16)
  #length = 0

  get length(): number {
    return this.#length
  }

  add(value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Float64Array(this.#values.length * 2)
      larger.set(this.#values)
      this.#values = larger
    }
    this.#values[this.#length++] = value
  }

  ascending(): Float64Array {
    return this.#values.subarray(0, this.#length).toSorted()
  }
}
