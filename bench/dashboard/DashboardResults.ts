/** The bench of the dashboard has measured this. `results/dashboard.json` is exactly this, and the goals. */
import type { Machine } from "../Machine.ts"

/** From the request to the last byte, in milliseconds. */
export interface LoadTimes {
  readonly p50Millis: number
  readonly p95Millis: number
  readonly maxMillis: number
}

/** One page, loaded again and again, as whoever is signed in gets it. */
export interface PageFigures {
  readonly title: string
  readonly alone: LoadTimes
  /** With so many loads of the same page at any time. */
  readonly atOnce: LoadTimes
  /** CPU time per load, when it is loaded alone. Undefined where the system does not tell. */
  readonly serverMillis?: number
  readonly postgresMillis?: number
}

/** Rounds of creates that took turns. */
export interface CreatesPair {
  /** Creates per second. */
  readonly with: number
  readonly without: number
}

export interface DashboardResults {
  readonly at: string
  readonly machine: Machine
  readonly payments: number
  readonly pages: ReadonlyArray<PageFigures>
  readonly loadsAtOnce: number
  readonly openPages: number
  /** With so many pages open, which load themselves again when they are told to, and with none. */
  readonly live: ReadonlyArray<CreatesPair>
  /** Times that open pages loaded themselves while creates went on, per second. */
  readonly loadsPerSecond: number
  /** Of Till, medians over rounds of creates with open pages and without. Undefined where the system does not tell. */
  readonly residentBytes?: { readonly open: number; readonly without: number }
  /** With the log of requests, and without; the rounds of each start of both. */
  readonly requestLog: ReadonlyArray<ReadonlyArray<CreatesPair>>
}
