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
  readonly apiKey: string
  /** JSON text. */
  readonly body: string
  /** Name of the load, in the Idempotency-Key of every request: lower-case letters and digits. */
  readonly run: string
}

/** Times by number of the request, in microseconds of the clock that processes share. All were answered with a 200. */
export interface PacedLoadRecord {
  /** The plan wanted it sent then. With all connections or the generator busy it waits, and that counts. */
  readonly wantedMicros: Float64Array
  readonly sentMicros: Float64Array
  readonly answeredMicros: Float64Array
}
