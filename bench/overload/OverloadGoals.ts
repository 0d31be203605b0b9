/** Goals under overload, judged by the worst of the run's loads. */
import { type Verdict, verdictOf } from "../Verdict.ts"
import { goodputRatio, type OverloadResults, probeRatio, type Turn } from "./OverloadResults.ts"

const GOODPUT_RATIO_MIN = 0.9
const P99_MILLIS_MAX = 1000
const RECOVERY_MILLIS_MAX = 1000
const PROBE_RATIO_MAX = 4
const PROBE_P99_MILLIS_MAX = 100

const most = (values: ReadonlyArray<number>): number => Math.max(...values)

/** A missing value counts as the worst. */
const orWorst = (value: number | undefined): number => value ?? Infinity

export const judge = ({ byConnections, byOffer }: OverloadResults): ReadonlyArray<Verdict> => {
  const turns: ReadonlyArray<Turn> = [...byOffer, ...byConnections]
  const full = [
    ...byOffer.filter(({ timesPeak }) => timesPeak >= 1),
    ...byConnections.filter(({ peak, step }) => step.connections >= peak.connections)
  ]
  const goodput = Math.min(...full.map(goodputRatio))
  const p99 = most(turns.map(({ step }) => orWorst(step.accepted?.p99Millis)))
  const recovery = most(turns.map(({ step }) => orWorst(step.recoveryMillis)))
  const other = most(turns.map((turn) => orWorst(probeRatio(turn))))
  const otherP99 = most(turns.map(({ step }) => orWorst(step.probe.latency?.p99Millis)))
  const refused = turns.reduce((sum, { step: { probe } }) => sum + probe.refused + probe.lost, 0)
  return [
    verdictOf(
      { text: "overload: goodput ÷ peak, from the peak's load on", unit: "×", bound: GOODPUT_RATIO_MIN },
      goodput
    ),
    verdictOf({ text: "overload: accepted requests' p99", unit: " ms", bound: P99_MILLIS_MAX, isMaximum: true }, p99),
    verdictOf({ text: "overload: recovery", unit: " ms", bound: RECOVERY_MILLIS_MAX, isMaximum: true }, recovery),
    verdictOf(
      { text: "overload: another merchant's p50 ÷ its quiet one", unit: "×", bound: PROBE_RATIO_MAX, isMaximum: true },
      other
    ),
    verdictOf(
      { text: "overload: another merchant's p99", unit: " ms", bound: PROBE_P99_MILLIS_MAX, isMaximum: true },
      otherP99
    ),
    verdictOf(
      { text: "overload: another merchant's requests refused or lost", unit: "", bound: 0, isMaximum: true },
      refused
    )
  ]
}
