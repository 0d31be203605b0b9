/** The open loop as a table: medians over the rounds. */
import { median } from "../load/Percentiles.ts"
import { figure } from "../Report.ts"
import type { PacedResult, PacedRound } from "../Results.ts"
import { SHARE } from "./Paced.ts"

export const TITLE = `Create a PaymentIntent, open loop at ${SHARE * 100} % of the maximum`

/** Returns the median over the rounds of one measure. */
export const pacedMedian = ({ rounds }: PacedResult, measure: keyof PacedRound): number =>
  median(rounds.map((round) => round[measure]))

const COLUMNS = ["", "creates/s", "p50 ms", "p99 ms", "p99.9 ms", "max ms"]

export const rows = (results: ReadonlyArray<PacedResult>): ReadonlyArray<ReadonlyArray<string>> => [
  COLUMNS,
  ...results.map((result) => [
    result.title,
    ...(["offeredPerSecond", "p50Millis", "p99Millis", "p999Millis", "maxMillis"] as const).map((measure) =>
      figure(pacedMedian(result, measure))
    )
  ])
]
