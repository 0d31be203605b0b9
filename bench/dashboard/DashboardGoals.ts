/** Goals for the cost of the dashboard, judged by the figures of one run. */
import { type Verdict, verdictOf } from "../Verdict.ts"
import { median } from "../load/Percentiles.ts"
import type { CreatesPair, DashboardResults, LoadTimes, PageFigures } from "./DashboardResults.ts"

/** Returns the median of the ratios round by round. */
export const ratioOf = (pairs: ReadonlyArray<CreatesPair>): number =>
  median(pairs.map((pair) => pair.with / pair.without))

/** Returns the geometric mean over the starts: compiled code differs from start to start. */
export const ratioOfStarts = (starts: ReadonlyArray<ReadonlyArray<CreatesPair>>): number =>
  Math.exp(starts.reduce((sum, pairs) => sum + Math.log(ratioOf(pairs)), 0) / starts.length)

export const judge = (results: DashboardResults): ReadonlyArray<Verdict> => {
  const { live, loadsAtOnce, openPages, pages, requestLog, residentBytes } = results
  const slowest = (text: string, timesOf: (page: PageFigures) => LoadTimes) =>
    verdictOf(
      { text: `dashboard: slowest page's p95${text}`, unit: " ms", bound: 100, isMaximum: true },
      Math.max(...pages.map((page) => timesOf(page).p95Millis))
    )
  const verdicts = [
    slowest("", ({ alone }) => alone),
    slowest(`, ${loadsAtOnce} loads at once`, ({ atOnce }) => atOnce),
    verdictOf(
      { text: `dashboard: creates with ${openPages} open pages ÷ with none`, unit: "×", bound: 0.95 },
      ratioOf(live)
    ),
    verdictOf({ text: "creates with the log of requests ÷ without", unit: "×", bound: 0.97 }, ratioOfStarts(requestLog))
  ]
  if (residentBytes === undefined) return verdicts
  const { open, without } = residentBytes
  const text = `dashboard: memory with ${openPages} open pages ÷ with none`
  return [...verdicts, verdictOf({ text, unit: "×", bound: 1.1, isMaximum: true }, open / without)]
}
