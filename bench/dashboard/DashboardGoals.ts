/** What the dashboard may take; each goal is judged on the run's own figures. */
import type { Verdict } from "../Goals.ts"
import { verdictOf } from "../Goals.ts"
import { median } from "../load/Percentiles.ts"
import type { CreatesPair, DashboardResults } from "./DashboardResults.ts"

/** The median of the ratios round by round. */
export const ratioOf = (pairs: ReadonlyArray<CreatesPair>): number =>
  median(pairs.map((pair) => pair.with / pair.without))

export const judge = ({ live, openPages, pages, requestLog }: DashboardResults): ReadonlyArray<Verdict> => [
  verdictOf(
    { text: "dashboard: slowest page's p95", unit: " ms", bound: 100, isMaximum: true },
    Math.max(...pages.map(({ p95Millis }) => p95Millis))
  ),
  verdictOf(
    { text: `dashboard: creates with ${openPages} open pages ÷ with none`, unit: "×", bound: 0.95 },
    ratioOf(live)
  ),
  verdictOf({ text: "creates with the log of requests ÷ without", unit: "×", bound: 0.97 }, ratioOf(requestLog))
]
