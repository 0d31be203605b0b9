/** The bench of overload has measured this. `results/overload.json` is exactly this, and the goals. */
import type { Machine } from "../Machine.ts"
import type { Latency } from "../load/Percentiles.ts"

/** What another merchant, who asks for little, gets meanwhile. */
export interface Probe {
  readonly requests: number
  readonly refused: number
  readonly lost: number
  /** Of those that were carried out, from when they were wanted; undefined if there are none. */
  readonly latency?: Latency
}

/** One load of creates in one merchant's account. */
export interface Step {
  /** Creates that are wanted each second, in an open loop; undefined in a closed one. */
  readonly offeredPerSecond?: number
  readonly connections: number
  readonly seconds: number
  /** Requests that were sent within the time; they are less than the offered ones where no connection was free. */
  readonly sentPerSecond: number
  /** Creates that were acknowledged within the time. */
  readonly goodputPerSecond: number
  readonly refusedPerSecond: number
  /** Requests without an answer, in all. */
  readonly lost: number
  /** Of what was acknowledged, whenever that was; from when it was sent. */
  readonly accepted?: Latency
  readonly refused?: Latency
  readonly probe: Probe
  /** Undefined if the probe's time was over before. */
  readonly recoveryMillis?: number
  /** CPU time of server and Postgres per second, as shares of one core. */
  readonly serverShare?: number
  readonly postgresShare?: number
  /** Of the machine's CPU time, what went to processes that are no part of the bench. */
  readonly othersShare?: number
}

/** Measures that are close in time: the machine's slow minutes hit all of them alike. */
export interface Turn {
  /** The probe alone. */
  readonly quiet: Probe
  /** As many creates as Till makes where nothing is too much. */
  readonly peak: Step
  readonly step: Step
}

export interface OverloadResults {
  readonly at: string
  readonly machine: Machine
  readonly probePerSecond: number
  /** An open loop each; in units of the peak of its turn. */
  readonly byOffer: ReadonlyArray<Turn & { readonly timesPeak: number }>
  /** A closed loop each. */
  readonly byConnections: ReadonlyArray<Turn>
}

/** Goodput in units of the turn's peak. */
export const goodputRatio = ({ peak, step }: Turn): number => step.goodputPerSecond / peak.goodputPerSecond

/** The probe's median in units of its quiet one; undefined if nothing of it was carried out. */
export const probeRatio = ({ quiet, step }: Turn): number | undefined =>
  quiet.latency === undefined || step.probe.latency === undefined
    ? undefined
    : step.probe.latency.p50Millis / quiet.latency.p50Millis
