/** The input and the output of the paced load generator. */

export interface PacedLoadPlan {
  readonly port: number
  /** Keep-alive connections, each with at most one request under way. */
  readonly connections: number
  readonly seconds: number
  /**
   * Requests per second of an open loop, evenly spaced, whatever the answers do. Null is a closed loop: every
   * connection sends its next request when the last one is answered.
   */
  readonly ratePerSecond: number | null
  /** The greatest number of requests. */
  readonly requestsMax?: number
  readonly path: string
  /** Secret key; several are used in turn. */
  readonly apiKey: string | ReadonlyArray<string>
  /** JSON text. */
  readonly body: string
  /** Name of the load in the Idempotency-Key of every request: lower-case letters and digits. */
  readonly run: string
  /** Start of the load by the shared clock; without it, the load starts when its connections are open. */
  readonly startAtMicros?: number
  /** Makes the load a flood. */
  readonly flood?: FloodPlan
}

/**
 * A load beyond the server's capacity. Refusals and lost connections are recorded, and the connection sends its next
 * request at once. An open loop leaves out requests for which no connection is free, because a queue in the generator
 * would say nothing about the server.
 */
export interface FloodPlan {
  /** Statuses of refusals. Any other status but 200 fails the load. */
  readonly refusals: ReadonlyArray<number>
  /** Seconds of waiting for answers after the last request. */
  readonly drainSeconds: number
}

/** Returns the Idempotency-Key of a load's request. */
export const keyOf = (run: string, number: number): string => `bench-${run}-${number}`

/** Status of a request without an answer: its connection was lost, or the time was over. */
export const LOST = 0

/** Times by number of the request, in microseconds of the shared clock. */
export interface PacedLoadRecord {
  /** The planned time. A request that waits for a connection or the generator is late, and that counts. */
  readonly wantedMicros: Float64Array
  readonly sentMicros: Float64Array
  /** For a lost request, the time at which it was given up. */
  readonly answeredMicros: Float64Array
  /** Status of each answer, or `LOST`. Without a flood, all are 200. */
  readonly statuses: Uint16Array
  /** Requests that a flood left out for want of connections. */
  readonly leftOut: number
  /** Lost connections. */
  readonly reopened: number
}
