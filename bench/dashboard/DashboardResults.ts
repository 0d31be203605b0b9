/** The measurements of the bench of the dashboard, which `results/dashboard.json` holds with the goals. */
import type { Machine } from "../Machine.ts"

/** From the request to the last byte, in milliseconds. */
export interface LoadTimes {
  readonly p50Millis: number
  readonly p95Millis: number
  readonly maxMillis: number
}

/** The loads of one page by a signed-in person. */
export interface PageFigures {
  readonly title: string
  readonly alone: LoadTimes
  /** Times with this many loads of the page at once. */
  readonly atOnce: LoadTimes
  /** CPU time per load without other loads; undefined where the system does not report it. */
  readonly serverMillis?: number
  readonly postgresMillis?: number
}

/** Two rounds of creates, one after the other. */
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
  /** Creates with open pages, which reload after changes, and with none. */
  readonly live: ReadonlyArray<CreatesPair>
  /** Reloads of open pages per second during the creates. */
  readonly loadsPerSecond: number
  /**
   * Till's resident memory: medians over rounds of creates with open pages and without. Undefined where the system does
   * not report it.
   */
  readonly residentBytes?: { readonly open: number; readonly without: number }
  /** Creates with the request log and without it, by start. */
  readonly requestLog: ReadonlyArray<ReadonlyArray<CreatesPair>>
}
