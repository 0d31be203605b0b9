/** The measurements of the bench of live payments, which `results/live.json` holds with the goals. */
import type { Machine } from "../Machine.ts"
import type { Latency } from "../load/Percentiles.ts"
import type { Spent } from "../SpentTime.ts"
import type { Distribution } from "../webhooks/Figures.ts"

/** Confirmations by a gateway that answers at once. CPU times are per confirmation. */
export interface Confirms extends Spent {
  readonly requestsPerSecond: number
  readonly answer: Distribution
}

/** Other requests, with or without confirmations that wait. */
export interface Beside {
  /** Reads of the account, over four connections. */
  readonly reads: Latency
  /** Creates per second of another merchant, over 64 connections. */
  readonly createsPerSecond: number
}

export interface Waiting {
  readonly confirms: number
  readonly waitMillis: number
  /** Before and after the confirmations. */
  readonly quiet: readonly [Beside, Beside]
  readonly beside: Beside
  /** Growth of Till's resident memory while the confirmations begin; undefined where the system does not report it. */
  readonly grownBytes?: number
}

export interface Killed {
  readonly open: number
  /** From the start of the process. */
  readonly readySeconds: number
  /** From then until no operation is open. */
  readonly resolvedSeconds: number
}

export interface Outage {
  readonly unresolved: number
  readonly goneSeconds: number
  /** Confirmations that are refused during the outage. */
  readonly refusals: Distribution
  /** From the gateway's return until no operation is unresolved. */
  readonly resolvedSeconds: number
}

export interface LiveResults {
  readonly at: string
  readonly machine: Machine
  /** 64 connections, as many as go. */
  readonly saturated: Confirms
  /** At `pacedPerSecond`. */
  readonly paced: Confirms
  readonly pacedPerSecond: number
  readonly waiting: Waiting
  /** Undefined in a run with a profile, which a killed process does not leave. */
  readonly killed?: Killed
  readonly outage?: Outage
}
