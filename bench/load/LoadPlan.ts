/** The load generator is told this, and answers that. Both cross a process boundary. */

/** The requests of a load; they differ in nothing but path, API key and Idempotency-Key. */
export interface Requests {
  readonly method: "GET" | "POST"
  /** Taken in turn. */
  readonly paths: ReadonlyArray<string>
  /** True if a path can be requested a single time only: the load then ends early, when all paths have been. */
  readonly pathsOnce?: boolean
  /** Secret API keys, taken in turn: each one is an account. */
  readonly apiKeys: ReadonlyArray<string>
  /** JSON text of a POST, else null. */
  readonly body: string | null
}

export interface LoadPlan {
  readonly port: number
  /** Connections go to these as well, in turn: to servers of one service. */
  readonly otherPorts?: ReadonlyArray<number>
  /** Keep-alive connections, each with one request under way at any time. */
  readonly connections: number
  readonly seconds: number
  readonly requests: Requests
  /** Text that every response must contain: a fast wrong answer is not a result. */
  readonly expect: string
}

export interface LoadResult {
  /** Requests that were answered with a 200. There are no others: one that is not fails the whole load. */
  readonly acknowledged: number
  /** From the first request to the last response. */
  readonly elapsedMillis: number
  readonly requestsPerSecond: number
  /** Of every request, in milliseconds and ascending order. */
  readonly latencies: Float64Array
  /** CPU time of the generator itself, per request. */
  readonly generatorMicros: number
}
