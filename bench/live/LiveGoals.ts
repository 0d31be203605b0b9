/** Goals for payments through a gateway, judged by the figures of one run. */
import { type Verdict, verdictOf } from "../Verdict.ts"
import type { LiveResults, Waiting } from "./LiveResults.ts"

const CONFIRMS_PER_SECOND_MIN = 800
const PACED_P50_MILLIS_MAX = 6
const PACED_P99_MILLIS_MAX = 30
const READS_P99_MILLIS_MAX = 30
const CREATES_RATIO_MIN = 0.9
const GROWN_MEGABYTES_MAX = 60
const KILLED_SECONDS_MAX = 10
const BACK_SECONDS_MAX = 60
const REFUSAL_MILLIS_MAX = 50

/** Returns another merchant's creates during the wait ÷ the mean of those before and after. */
export const createsRatio = ({ beside, quiet: [before, after] }: Waiting): number =>
  (2 * beside.createsPerSecond) / (before.createsPerSecond + after.createsPerSecond)

export const judge = ({
  killed,
  outage,
  paced,
  pacedPerSecond,
  saturated,
  waiting
}: LiveResults): ReadonlyArray<Verdict> => {
  const atMost = (text: string, bound: number, unit: string, figure: number) =>
    verdictOf({ text: `live: ${text}`, bound, unit, isMaximum: true }, figure)
  const wait = `${waiting.confirms} confirms wait ${waiting.waitMillis / 1000} s`
  return [
    verdictOf(
      { text: "live: confirms, 64 connections", bound: CONFIRMS_PER_SECOND_MIN, unit: "/s" },
      saturated.requestsPerSecond
    ),
    atMost(`confirms' p50 at ${pacedPerSecond}/s`, PACED_P50_MILLIS_MAX, " ms", paced.answer.p50Millis),
    atMost(`confirms' p99 at ${pacedPerSecond}/s`, PACED_P99_MILLIS_MAX, " ms", paced.answer.p99Millis),
    atMost(`the account's reads' p99 while ${wait}`, READS_P99_MILLIS_MAX, " ms", waiting.beside.reads.p99Millis),
    verdictOf(
      { text: `live: another merchant's creates while ${wait} ÷ quiet`, bound: CREATES_RATIO_MIN, unit: "×" },
      createsRatio(waiting)
    ),
    ...(waiting.grownBytes === undefined
      ? []
      : [atMost(`memory of ${waiting.confirms} waits`, GROWN_MEGABYTES_MAX, " MB", waiting.grownBytes / 1_000_000)]),
    ...(killed === undefined
      ? []
      : [
          atMost(
            `${killed.open} open at a kill, resolved after ready`,
            KILLED_SECONDS_MAX,
            " s",
            killed.resolvedSeconds
          )
        ]),
    ...(outage === undefined
      ? []
      : [
          atMost("a refusal's p99 while the gateway is gone", REFUSAL_MILLIS_MAX, " ms", outage.refusals.p99Millis),
          atMost(
            `${outage.unresolved} unresolved, resolved after its return`,
            BACK_SECONDS_MAX,
            " s",
            outage.resolvedSeconds
          )
        ])
  ]
}
