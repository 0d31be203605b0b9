/** The bench of the dashboard has measured this. `results/dashboard.json` is exactly this, and the goals. */
import type { Machine } from "../Machine.ts"

/** One page, loaded again and again over one connection, as whoever is signed in gets it. Times in milliseconds. */
export interface PageFigures {
  readonly title: string
  readonly p50Millis: number
  readonly p95Millis: number
  readonly maxMillis: number
  /** CPU time per load. Undefined where the system does not tell. */
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
  readonly openPages: number
  /** With so many pages open, which load themselves again when they are told to, and with none. */
  readonly live: ReadonlyArray<CreatesPair>
  /** Times that open pages loaded themselves while creates went on, per second. */
  readonly loadsPerSecond: number
  /** Of Till: before pages were opened, and after the last round with them. */
  readonly residentBytes?: readonly [before: number, after: number]
  /** With the log of requests, and without. */
  readonly requestLog: ReadonlyArray<CreatesPair>
}
