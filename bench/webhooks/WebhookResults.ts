/** The measurements of the bench of webhooks, which `results/webhooks.json` holds with the goals. */
import type { Machine } from "../Machine.ts"
import type { Spent } from "../SpentTime.ts"
import type { Distribution, Figures } from "./Figures.ts"

/** CPU times are per event and include what is done after the last delivery. */
export interface Trial extends Figures, Spent {}

/** Creates with a number of subscribed endpoints. */
export interface FanOut {
  readonly endpoints: number
  /** Creates per second, in order; the rounds of all took turns. */
  readonly requestsPerSecond: ReadonlyArray<number>
  readonly deliveriesPerSecond: ReadonlyArray<number>
}

export interface Retries {
  readonly deliveries: number
  /** From the start of Till's process. */
  readonly readySeconds: number
  readonly deliveredSeconds: number
  /** Deliveries that arrived twice because of the SIGKILL before. */
  readonly repeated: number
  readonly createsPerSecond: number
  /** Creates from the first moment on until the last retry has arrived. */
  readonly createsMeanwhile: Distribution
  /** Creates of the same time after a start with nothing due. */
  readonly createsOtherwise: Distribution
}

export interface WebhookResults {
  readonly at: string
  readonly machine: Machine
  /** Creates at the rate of the goal. */
  readonly offered: Trial
  readonly offeredPerSecond: number
  /** As many creates as 64 connections make. */
  readonly saturated: Trial
  /** Creates at half of `saturated`'s deliveries per second. */
  readonly half: Trial
  /** Creates one at a time, with pauses. */
  readonly idle: Trial
  readonly fanOut: ReadonlyArray<FanOut>
  /** Undefined in a run with a profile, which a killed process does not leave. */
  readonly retries?: Retries
}
