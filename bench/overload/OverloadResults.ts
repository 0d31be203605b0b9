/** The measurements of the bench of overload, which `results/overload.json` holds with the goals. */
import type { Machine } from "../Machine.ts"
import type { Latency } from "../load/Percentiles.ts"

/** The small load of another merchant during a flood. */
export interface Probe {
  readonly requests: number
  readonly refused: number
  readonly lost: number
  /** Latency of the answered requests, from their planned times; undefined if there are none. */
  readonly latency?: Latency
}

/** One load of creates in one merchant's account. */
export interface Step {
  /** Creates per second of an open loop; undefined in a closed one. */
  readonly offeredPerSecond?: number
  readonly connections: number
  readonly seconds: number
  /** Requests sent per second; fewer than offered if connections were missing. */
  readonly sentPerSecond: number
  /** Creates acknowledged per second within the time. */
  readonly goodputPerSecond: number
  readonly refusedPerSecond: number
  /** Requests without an answer. */
  readonly lost: number
  /** Latency of the acknowledged requests, late ones included, from their sending. */
  readonly accepted?: Latency
  readonly refused?: Latency
  readonly probe: Probe
  /** Undefined if the probe ended before the recovery. */
  readonly recoveryMillis?: number
  /** CPU time of server and Postgres per second, as shares of one core. */
  readonly serverShare?: number
  readonly postgresShare?: number
  /** Share of the machine's CPU time of processes outside of the bench. */
  readonly othersShare?: number
}

/** Measurements close in time: slow minutes of the machine affect all of them alike. */
export interface Turn {
  /** The probe alone. */
  readonly quiet: Probe
  /** The load of the greatest throughput without overload. */
  readonly peak: Step
  readonly step: Step
}

export interface OverloadResults {
  readonly at: string
  readonly machine: Machine
  readonly probePerSecond: number
  /** Open loops, in units of the peak of their turn. */
  readonly byOffer: ReadonlyArray<Turn & { readonly timesPeak: number }>
  /** Closed loops. */
  readonly byConnections: ReadonlyArray<Turn>
}

/** Returns the goodput in units of the turn's peak. */
export const goodputRatio = ({ peak, step }: Turn): number => step.goodputPerSecond / peak.goodputPerSecond

/** Returns the probe's median in units of its quiet one; undefined if none of its requests was carried out. */
export const probeRatio = ({ quiet, step }: Turn): number | undefined =>
  quiet.latency === undefined || step.probe.latency === undefined
    ? undefined
    : step.probe.latency.p50Millis / quiet.latency.p50Millis
