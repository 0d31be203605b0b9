/** Till wants to reach these goals under overload; each is judged by the worst of the run's loads. */
import type { Verdict } from "../Goals.ts"
import type { OverloadResults, Turn } from "./OverloadResults.ts"
import { goodputRatio, probeRatio } from "./OverloadResults.ts"

export const GOODPUT_RATIO_MIN = 0.9
export const P99_MILLIS_MAX = 1000
export const RECOVERY_MILLIS_MAX = 1000
export const PROBE_RATIO_MAX = 3

const most = (values: ReadonlyArray<number>): number => Math.max(...values)

/** What is not seen is worse than all that is. */
const orWorst = (value: number | undefined): number => value ?? Infinity

export const judge = ({ byConnections, byOffer }: OverloadResults): ReadonlyArray<Verdict> => {
  const turns: ReadonlyArray<Turn> = [...byOffer, ...byConnections]
  const full = [...byOffer.filter(({ timesPeak }) => timesPeak >= 1), ...byConnections]
  const goodput = Math.min(...full.map(goodputRatio))
  const p99 = most(turns.map(({ step }) => orWorst(step.accepted?.p99Millis)))
  const recovery = most(turns.map(({ step }) => orWorst(step.recoveryMillis)))
  const other = most(turns.map((turn) => orWorst(probeRatio(turn))))
  const refused = turns.reduce((sum, { step: { probe } }) => sum + probe.refused + probe.lost, 0)
  return [
    {
      text: `overload: goodput of at least ${GOODPUT_RATIO_MIN} of the peak, at the full load and beyond`,
      figure: goodput,
      unit: "×",
      reached: goodput >= GOODPUT_RATIO_MIN
    },
    {
      text: `overload: p99 of accepted requests of at most ${P99_MILLIS_MAX} ms`,
      figure: p99,
      unit: " ms",
      reached: p99 <= P99_MILLIS_MAX
    },
    {
      text: `overload: recovered ${RECOVERY_MILLIS_MAX} ms after it at the latest`,
      figure: recovery,
      unit: " ms",
      reached: recovery <= RECOVERY_MILLIS_MAX
    },
    {
      text: `overload: another merchant's p50 of at most ${PROBE_RATIO_MAX} times its quiet one`,
      figure: other,
      unit: "×",
      reached: other <= PROBE_RATIO_MAX
    },
    { text: "overload: no request of another merchant is refused", figure: refused, unit: "", reached: refused === 0 }
  ]
}
