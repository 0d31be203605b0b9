/** Goals for a Till with many objects, judged by the figures of one run. */
import { type Verdict, verdictOf } from "../Verdict.ts"
import { figure } from "../Report.ts"
import * as Report from "./GrowthReport.ts"
import type { GrowthResults } from "./GrowthResults.ts"

export const judge = (results: GrowthResults): ReadonlyArray<Verdict> => {
  const objects = figure(results.objects)
  const resident = Report.residentBytes(results)
  const at = (text: string) => `${text} at ${objects} objects`
  const cold = (kind: "retrieve" | "list") =>
    verdictOf({ text: `cold ${at(kind)}, p99`, unit: " ms", bound: 25, isMaximum: true }, results[kind].p99Millis)
  return [
    verdictOf({ text: `${at("create")} ÷ empty`, unit: "×", bound: 0.95 }, Report.createsRatio(results)),
    ...(resident === undefined
      ? []
      : [verdictOf({ text: at("memory"), unit: " MB", bound: 700, isMaximum: true }, resident / 1_000_000)]),
    verdictOf({ text: at("restart to ready"), unit: " s", bound: 2, isMaximum: true }, Report.readySeconds(results)),
    verdictOf(
      { text: at("longest wait while a runner is stopped"), unit: " ms", bound: 1000, isMaximum: true },
      results.takeoverMillis
    ),
    cold("retrieve"),
    cold("list"),
    verdictOf(
      { text: "disk per PaymentIntent", unit: " B", bound: 1900, isMaximum: true },
      Report.diskBytesPerObject(results)
    ),
    verdictOf(
      { text: "`till verify` per million records", unit: " s", bound: 15, isMaximum: true },
      Report.verifySecondsPerMillion(results)
    )
  ]
}
