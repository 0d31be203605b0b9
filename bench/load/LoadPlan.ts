/** The input and the output of the load generator. Both cross a process boundary. */

/** The requests of a load; they differ in nothing but path, API key and Idempotency-Key. */
export interface Requests {
  readonly method: "GET" | "POST"
  /** Paths, used in turn. */
  readonly paths: ReadonlyArray<string>
  /** True if each path can be requested once only: the load ends early, after all paths. */
  readonly pathsOnce?: boolean
  /** Secret API keys, used in turn: each is of another account. */
  readonly apiKeys: ReadonlyArray<string>
  /** JSON text of a POST; null for a GET. */
  readonly body: string | null
}

export interface LoadPlan {
  readonly port: number
  /** Further ports for the connections, used in turn: servers of one service. */
  readonly otherPorts?: ReadonlyArray<number>
  /** Keep-alive connections, each with one request under way at any time. */
  readonly connections: number
  readonly seconds: number
  readonly requests: Requests
  /** Text that every response must contain: a fast wrong answer is not a result. */
  readonly expect: string
}

export interface LoadResult {
  /** Requests answered with a 200. Any other answer fails the whole load. */
  readonly acknowledged: number
  /** Milliseconds from the first request to the last response. */
  readonly elapsedMillis: number
  readonly requestsPerSecond: number
  /** Latency of every request, in milliseconds and ascending order. */
  readonly latencies: Float64Array
  /** CPU time of the generator itself, per request. */
  readonly generatorMicros: number
}
