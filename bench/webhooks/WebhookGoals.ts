/** Goals for webhooks, judged by the figures of one run. */
import { type Verdict, verdictOf } from "../Verdict.ts"
import { median } from "../load/Percentiles.ts"
import type { FanOut, WebhookResults } from "./WebhookResults.ts"

/** The figures that a Node sender with Redis and without a flush to disk publishes for 4 cores. */
export const DELIVERIES_PER_SECOND_MIN = 1800
export const P95_MILLIS_MAX = 143
export const IDLE_AVERAGE_MILLIS_MAX = 4.3
/** Least creates in units of those without endpoints, by number of endpoints. */
const CREATES_RATIO_MIN: ReadonlyArray<readonly [endpoints: number, ratio: number]> = [
  [1, 0.85],
  [10, 0.4]
]
const RETRIES_P99_MILLIS_MAX = 150

/** Returns creates with endpoints ÷ those without: the median of the ratios round by round. */
export const createsRatio = ([without]: ReadonlyArray<FanOut>, { requestsPerSecond }: FanOut): number =>
  median(requestsPerSecond.map((creates, round) => creates / without!.requestsPerSecond[round]!))

/** Times count from the request, which is before the commit, so a goal reached here is reached from the commit, too. */
export const judge = ({ fanOut, idle, offered, offeredPerSecond, retries }: WebhookResults): ReadonlyArray<Verdict> => {
  const rate = `${offeredPerSecond} creates/s`
  const atMost = (text: string, bound: number, figure: number) =>
    verdictOf({ text, bound, unit: " ms", isMaximum: true }, figure)
  return [
    ...CREATES_RATIO_MIN.flatMap(([endpoints, bound]) => {
      const line = fanOut.find((one) => one.endpoints === endpoints)
      const text = `creates with ${endpoints === 1 ? "1 endpoint" : `${endpoints} endpoints`} ÷ with none`
      return line === undefined ? [] : [verdictOf({ text, bound, unit: "×" }, createsRatio(fanOut, line))]
    }),
    ...(retries === undefined
      ? []
      : [
          atMost(
            `creates' p99 while ${retries.deliveries.toLocaleString("en")} retries are delivered`,
            RETRIES_P99_MILLIS_MAX,
            retries.createsMeanwhile.p99Millis
          )
        ]),
    verdictOf(
      { text: `deliveries at ${rate}`, bound: DELIVERIES_PER_SECOND_MIN, unit: "/s" },
      offered.deliveriesPerSecond
    ),
    atMost(`p95 from request to first byte at ${rate}`, P95_MILLIS_MAX, offered.fromSent.p95Millis),
    atMost("one at a time: average from request to first byte", IDLE_AVERAGE_MILLIS_MAX, idle.fromSent.averageMillis)
  ]
}
