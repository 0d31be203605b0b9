/** Computes the figures of a flood and of the probe beside it. */
import { type Latency, latencyOf, median } from "../load/Percentiles.ts"
import { LOST, type PacedLoadRecord } from "../load/PacedLoadPlan.ts"
import type { Probe, Step } from "./OverloadResults.ts"

const ACCEPTED = 200

/** One request as its client sees it. */
interface Seen {
  readonly wantedMicros: number
  readonly sentMicros: number
  readonly answeredMicros: number
  readonly status: number
}

const seenIn = ({ answeredMicros, sentMicros, statuses, wantedMicros }: PacedLoadRecord): ReadonlyArray<Seen> =>
  Array.from(statuses, (status, i) => ({
    status,
    wantedMicros: wantedMicros[i]!,
    sentMicros: sentMicros[i]!,
    answeredMicros: answeredMicros[i]!
  }))

const isAccepted = ({ status }: Seen): boolean => status === ACCEPTED
const isLost = ({ status }: Seen): boolean => status === LOST
const isRefused = (seen: Seen): boolean => !isAccepted(seen) && !isLost(seen)

const latencyIn = (seen: ReadonlyArray<Seen>, from: "wantedMicros" | "sentMicros"): Latency | undefined =>
  seen.length === 0 ? undefined : latencyOf([Float64Array.from(seen, (one) => (one.answeredMicros - one[from]) / 1000)])

/** The first and the last moment of a flood's sending. */
export interface Window {
  readonly fromMicros: number
  readonly untilMicros: number
}

/** The planned time of the first request is the start. */
export const windowOf = (floods: ReadonlyArray<PacedLoadRecord>, seconds: number): Window => {
  const fromMicros = floods.reduce((least, { wantedMicros }) => Math.min(least, wantedMicros[0] ?? Infinity), Infinity)
  return { fromMicros, untilMicros: fromMicros + seconds * 1_000_000 }
}

/** Returns the probe's requests that were planned within a window. */
export const probeOf = (record: PacedLoadRecord, { fromMicros, untilMicros }: Window): Probe => {
  const seen = seenIn(record).filter(({ wantedMicros }) => wantedMicros >= fromMicros && wantedMicros < untilMicros)
  const latency = latencyIn(seen.filter(isAccepted), "wantedMicros")
  return {
    requests: seen.length,
    refused: seen.filter(isRefused).length,
    lost: seen.filter(isLost).length,
    ...(latency !== undefined && { latency })
  }
}

/** Requests of the probe in a row that must be as good as before the flood. */
const GOOD_REQUESTS = 20
/** Greatest ratio to the median of the quiet time that counts as good. */
const GOOD_TIMES = 3

/**
 * Returns the time from the flood's last request until the whole flood is answered and the probe is as good as before;
 * undefined if that does not happen.
 */
export const recoveryMillisOf = (
  floods: ReadonlyArray<PacedLoadRecord>,
  probe: PacedLoadRecord,
  { untilMicros }: Window,
  quietMillis: number
): number | undefined => {
  const after = seenIn(probe).filter(({ wantedMicros }) => wantedMicros >= untilMicros)
  const good = after.findIndex((_, i) => isGood(after.slice(i, i + GOOD_REQUESTS), quietMillis))
  if (good === -1) return undefined
  const answered = floods.map(({ answeredMicros }) => answeredMicros.reduce((a, b) => Math.max(a, b), untilMicros))
  return (Math.max(...answered, good === 0 ? 0 : after[good]!.wantedMicros) - untilMicros) / 1000
}

const isGood = (seen: ReadonlyArray<Seen>, quietMillis: number): boolean => {
  if (seen.length < GOOD_REQUESTS || !seen.every(isAccepted)) return false
  return median(seen.map((one) => (one.answeredMicros - one.wantedMicros) / 1000)) <= GOOD_TIMES * quietMillis
}

/** Returns the figures of a flood and of the probe beside it. */
export const stepOf = (
  floods: ReadonlyArray<PacedLoadRecord>,
  probe: PacedLoadRecord,
  plan: Pick<Step, "offeredPerSecond" | "connections" | "seconds">,
  quietMillis: number
): Step => {
  const window = windowOf(floods, plan.seconds)
  const seen = floods.flatMap(seenIn)
  const perSecond = (counted: (one: Seen) => boolean) => seen.filter(counted).length / plan.seconds
  const inTime = ({ answeredMicros }: Seen) => answeredMicros <= window.untilMicros
  const accepted = latencyIn(seen.filter(isAccepted), "sentMicros")
  const refused = latencyIn(seen.filter(isRefused), "sentMicros")
  const recoveryMillis = recoveryMillisOf(floods, probe, window, quietMillis)
  return {
    ...plan,
    sentPerSecond: perSecond(({ sentMicros }) => sentMicros <= window.untilMicros),
    goodputPerSecond: perSecond((one) => isAccepted(one) && inTime(one)),
    refusedPerSecond: perSecond((one) => isRefused(one) && inTime(one)),
    lost: seen.filter(isLost).length,
    ...(accepted !== undefined && { accepted }),
    ...(refused !== undefined && { refused }),
    probe: probeOf(probe, window),
    ...(recoveryMillis !== undefined && { recoveryMillis })
  }
}

/** Returns the number of acknowledged requests, and of those that may have been carried out. */
export const outcomesOf = (records: ReadonlyArray<PacedLoadRecord>): { acknowledged: number; lost: number } => {
  const seen = records.flatMap(seenIn)
  return { acknowledged: seen.filter(isAccepted).length, lost: seen.filter(isLost).length }
}
