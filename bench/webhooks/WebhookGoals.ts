/** Till wants to reach these goals with webhooks; each is judged on the run's own figures. */
import type { Verdict } from "../Goals.ts"
import type { WebhookResults } from "./WebhookResults.ts"

/** A sender on Node, with Redis and without a flush to disk, publishes the first two for 4 cores. */
export const DELIVERIES_PER_SECOND_MIN = 1800
export const P95_MILLIS_MAX = 143
export const IDLE_AVERAGE_MILLIS_MAX = 4.3

/** Times count from the request, which is earlier than the commit: what is reached here is reached from there. */
export const judge = ({ idle, offered, offeredPerSecond }: WebhookResults): ReadonlyArray<Verdict> => {
  const rate = `${offeredPerSecond} creates/s`
  return [
    {
      text: `${rate}: at least ${DELIVERIES_PER_SECOND_MIN} deliveries/s`,
      figure: offered.deliveriesPerSecond,
      unit: "/s",
      reached: offered.deliveriesPerSecond >= DELIVERIES_PER_SECOND_MIN
    },
    {
      text: `${rate}: p95 from request to first byte at the endpoint of at most ${P95_MILLIS_MAX} ms`,
      figure: offered.fromSent.p95Millis,
      unit: " ms",
      reached: offered.fromSent.p95Millis <= P95_MILLIS_MAX
    },
    {
      text: `one at a time: at most ${IDLE_AVERAGE_MILLIS_MAX} ms on average from request to first byte`,
      figure: idle.fromSent.averageMillis,
      unit: " ms",
      reached: idle.fromSent.averageMillis <= IDLE_AVERAGE_MILLIS_MAX
    }
  ]
}
