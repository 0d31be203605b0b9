/** The paced load generator is told this, and answers that. */

export interface PacedLoadPlan {
  readonly port: number
  /** Keep-alive connections, each with at most one request under way. */
  readonly connections: number
  readonly seconds: number
  /**
   * Open loop: so many requests per second, evenly, whatever the answers do. Null is a closed loop: every connection
   * sends its next request when the last one is answered.
   */
  readonly ratePerSecond: number | null
  /** At most so many requests. */
  readonly requestsMax?: number
  readonly path: string
  /** Several are taken in turn. */
  readonly apiKey: string | ReadonlyArray<string>
  /** JSON text. */
  readonly body: string
  /** Name of the load, in the Idempotency-Key of every request: lower-case letters and digits. */
  readonly run: string
  /** It begins then, by the shared clock, or as soon as its connections are open. */
  readonly startAtMicros?: number
  /** For a load that is meant to be too much. */
  readonly flood?: FloodPlan
}

/**
 * Refusals and lost connections are no failures: they are noted, and the connection sends its next request at once. In
 * an open loop, what no connection is free for is left out: a line of requests that wait in the generator would say
 * nothing about the server.
 */
export interface FloodPlan {
  /** Of answers that are refusals. Any other but a 200 is a failure still. */
  readonly refusals: ReadonlyArray<number>
  /** Answers are waited for so long after the last request. */
  readonly drainSeconds: number
}

/** The Idempotency-Key of a load's request. */
export const keyOf = (run: string, number: number): string => `bench-${run}-${number}`

/** What came of a request for which no answer came: its connection was lost, or the time was over. */
export const LOST = 0

/** Times by number of the request, in microseconds of the clock that processes share. */
export interface PacedLoadRecord {
  /** The plan wanted it sent then. With all connections or the generator busy it waits, and that counts. */
  readonly wantedMicros: Float64Array
  readonly sentMicros: Float64Array
  /** Of a lost one, when it was given up. */
  readonly answeredMicros: Float64Array
  /** Status of the answer, or `LOST`. Without a flood, it is 200 for each. */
  readonly statuses: Uint16Array
  /** A flood would have sent so many more, had there been connections for them. */
  readonly leftOut: number
  /** Connections that were lost. */
  readonly reopened: number
}
