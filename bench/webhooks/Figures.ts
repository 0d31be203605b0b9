/** Computes the figures of a load and of the arrivals of its deliveries. */
import { BenchFailure } from "../BenchFailure.ts"
import { percentile } from "../load/Percentiles.ts"
import type { ArrivalsRecord } from "./Arrivals.ts"
import type { PacedLoadRecord } from "../load/PacedLoadPlan.ts"

/** Measured times in milliseconds; none is interpolated. */
export interface Distribution {
  readonly averageMillis: number
  readonly p50Millis: number
  readonly p95Millis: number
  readonly p99Millis: number
  readonly maxMillis: number
}

export interface Figures {
  /** Acknowledged requests, each with one event. */
  readonly requests: number
  readonly endpoints: number
  /** Requests per second from the first request to the last answer. */
  readonly requestsPerSecond: number
  /** Deliveries per second from the first request to the arrival of the last delivery. */
  readonly deliveriesPerSecond: number
  /** Request wanted → answer received. */
  readonly answer: Distribution
  /** Request sent → first byte of the delivery at the sink. Commit → first byte is shorter. */
  readonly fromSent: Distribution
  /** Answer received → first byte; below 0 if the delivery was first. Commit → first byte is longer. */
  readonly fromAnswered: Distribution
}

/** Returns the distribution of at least one time in microseconds. */
export const distributionOf = (micros: ReadonlyArray<number>): Distribution => {
  const ascending = Float64Array.from(micros).toSorted()
  const millis = (percent: number) => percentile(ascending, percent) / 1000
  return {
    averageMillis: ascending.reduce((sum, value) => sum + value, 0) / ascending.length / 1000,
    p50Millis: millis(50),
    p95Millis: millis(95),
    p99Millis: millis(99),
    maxMillis: millis(100)
  }
}

/** Counts the deliveries that have not arrived: each request's event goes to every endpoint. */
export const missingOf = (requests: number, { firstMicros }: ArrivalsRecord): number =>
  firstMicros.reduce((sum, times) => {
    const arrived = times.subarray(0, requests).reduce((count, time) => count + Number(time !== 0), 0)
    return sum + requests - arrived
  }, 0)

/**
 * Returns a failure if deliveries are missing; or, unless a process was killed on purpose, if a delivery arrived twice
 * or without a cause.
 */
export const failureIn = (
  requests: number,
  arrivals: ArrivalsRecord,
  killed: boolean = false
): BenchFailure | undefined => {
  const missing = missingOf(requests, arrivals)
  if (missing > 0) return new BenchFailure({ problem: `${missing} deliveries are missing.` })
  if (killed || arrivals.repeated + arrivals.stray === 0) return undefined
  const problem = `${arrivals.repeated} deliveries came again, ${arrivals.stray} came that are not this load's.`
  return new BenchFailure({ problem })
}

export const lastArrivalMicros = ({ firstMicros }: ArrivalsRecord): number => Math.max(...firstMicros.map(latest))

const latest = (times: Float64Array): number => times.reduce((a, b) => Math.max(a, b), 0)

/** Rate from a load's first request to a moment. */
const perSecond = (count: number, { sentMicros }: PacedLoadRecord, untilMicros: number): number =>
  (count / (untilMicros - sentMicros.reduce((a, b) => Math.min(a, b), Infinity))) * 1_000_000

/** Requests per second from the first request to the last answer. */
export const requestsPerSecondOf = (load: PacedLoadRecord): number =>
  perSecond(load.sentMicros.length, load, latest(load.answeredMicros))

/** Times of the requests wanted before a moment, from when they were wanted to their answers. */
export const answersUntil = ({ answeredMicros, wantedMicros }: PacedLoadRecord, untilMicros: number) =>
  [...wantedMicros].flatMap((wanted, i) => (wanted < untilMicros ? [answeredMicros[i]! - wanted] : []))

/** Returns the figures of a load whose deliveries have all arrived at one endpoint at least. */
export const figuresOf = (load: PacedLoadRecord, arrivals: ArrivalsRecord): Figures => {
  const { answeredMicros, sentMicros } = load
  const requests = sentMicros.length
  const endpoints = arrivals.firstMicros.length
  const after = (times: Float64Array) =>
    distributionOf(
      arrivals.firstMicros.flatMap((first) => Array.from(times, (time, request) => first[request]! - time))
    )
  return {
    requests,
    endpoints,
    requestsPerSecond: requestsPerSecondOf(load),
    deliveriesPerSecond: perSecond(requests * endpoints, load, lastArrivalMicros(arrivals)),
    answer: distributionOf(answersUntil(load, Infinity)),
    fromSent: after(sentMicros),
    fromAnswered: after(answeredMicros)
  }
}
