/** The parts of the bench: each runs, prints its figures, and stores them if the run was complete. */
import { randomInt } from "node:crypto"
import { Console, Effect, Option } from "effect"
import * as ApiBench from "./ApiBench.ts"
import { BenchFailure } from "./BenchFailure.ts"
import * as Budget from "./budget/Budget.ts"
import * as BudgetBench from "./budget/BudgetBench.ts"
import * as BudgetReport from "./budget/BudgetReport.ts"
import * as Chart from "./Chart.ts"
import type { ClusterPace } from "./cluster/ClusterBench.ts"
import * as ClusterBench from "./cluster/ClusterBench.ts"
import * as ClusterGoals from "./cluster/ClusterGoals.ts"
import * as ClusterReport from "./cluster/ClusterReport.ts"
import type { ComparisonPace } from "./compare/Comparison.ts"
import * as Comparison from "./compare/Comparison.ts"
import * as ComparisonGoals from "./compare/ComparisonGoals.ts"
import * as ComparisonReport from "./compare/ComparisonReport.ts"
import * as Versions from "./compare/Versions.ts"
import type { DashboardPace } from "./dashboard/DashboardBench.ts"
import * as DashboardBench from "./dashboard/DashboardBench.ts"
import * as DashboardGoals from "./dashboard/DashboardGoals.ts"
import * as DashboardReport from "./dashboard/DashboardReport.ts"
import type { Verdict } from "./Verdict.ts"
import * as Goals from "./Goals.ts"
import type { GrowthPace } from "./growth/GrowthBench.ts"
import * as GrowthBench from "./growth/GrowthBench.ts"
import * as GrowthGoals from "./growth/GrowthGoals.ts"
import * as GrowthReport from "./growth/GrowthReport.ts"
import type { LivePace } from "./live/LiveBench.ts"
import * as LiveBench from "./live/LiveBench.ts"
import * as LiveGoals from "./live/LiveGoals.ts"
import * as LiveReport from "./live/LiveReport.ts"
import * as Load from "./load/Load.ts"
import type { Machine as MachineDescription } from "./Machine.ts"
import * as Machine from "./Machine.ts"
import type { OverloadPace } from "./overload/OverloadBench.ts"
import * as OverloadBench from "./overload/OverloadBench.ts"
import * as OverloadChart from "./overload/OverloadChart.ts"
import * as OverloadGoals from "./overload/OverloadGoals.ts"
import * as OverloadReport from "./overload/OverloadReport.ts"
import * as PacedReport from "./paced/PacedReport.ts"
import * as Report from "./Report.ts"
import type { Part } from "./ResultFiles.ts"
import * as ResultFiles from "./ResultFiles.ts"
import { scenarios } from "./scenarios/index.ts"
import type { StartPace } from "./start/StartBench.ts"
import * as StartBench from "./start/StartBench.ts"
import * as StartGoals from "./start/StartGoals.ts"
import * as StartReport from "./start/StartReport.ts"
import type { Pace } from "./Suite.ts"
import * as Table from "./Table.ts"
import type { WebhookPace } from "./webhooks/WebhookBench.ts"
import * as WebhookBench from "./webhooks/WebhookBench.ts"
import * as WebhookGoals from "./webhooks/WebhookGoals.ts"
import * as WebhookReport from "./webhooks/WebhookReport.ts"

interface Reported {
  readonly at: string
  readonly machine: MachineDescription
}

/** Prints the goals and, after a complete run, writes all files. `text` returns the part's other files. */
const conclude = Effect.fnUntraced(function* (
  part: Part,
  { isComplete, results, verdicts }: { isComplete: boolean; results: Reported; verdicts: ReadonlyArray<Verdict> },
  texts: Readonly<Record<string, string>>
) {
  if (verdicts.length > 0) yield* Console.log(`\n${verdicts.map(Report.verdictText).join("\n")}`)
  if (!isComplete) return yield* Console.log("\nNot the usual run: the report files stay as they are.")
  const documents = Object.entries(texts).map(([name, text]) => {
    const isTable = name.endsWith(".md")
    const goals = verdicts.length === 0 ? "" : `\n${Report.verdictsMarkdown(verdicts)}\n`
    return [name, isTable ? `${Machine.sentence(results.machine)}\n\n${text}\n${goals}` : text] as const
  })
  const names = ResultFiles.write(part, { ...results, goals: verdicts }, Object.fromEntries(documents))
  yield* Console.log(`\nWritten to ${ResultFiles.FOLDER}: ${names.join(", ")}`)
})

/** Fails at the end if a scenario has failed. */
export const api = Effect.fnUntraced(function* (options: ApiBench.ApiOptions, isComplete: boolean) {
  const results = yield* ApiBench.run(options)
  const { failures, leftOut, paced, scenarios } = results
  if (scenarios.length + paced.length + failures.length === 0) {
    return yield* new BenchFailure({ problem: "This scenario has no baselines." })
  }
  const table = [
    Report.summary(results),
    Report.markdown(results),
    ...(paced.length === 0 ? [] : [`**${PacedReport.TITLE}**\n\n${Table.markdown(PacedReport.rows(paced))}`]),
    ...leftOut.map((problem) => `**Left out**: ${problem}`),
    ...failures.map((problem) => `**Failed**: ${problem}`)
  ].join("\n\n")
  yield* conclude(
    "latest",
    { isComplete, results, verdicts: Goals.judge(results) },
    { "table.md": table, "throughput.svg": Chart.svg(results) }
  )
  if (failures.length > 0) return yield* new BenchFailure({ problem: failures.join("\n") })
})

export const webhooks = Effect.fnUntraced(function* (
  pace: WebhookPace,
  nodeOptions: ReadonlyArray<string>,
  isComplete: boolean
) {
  const results = yield* WebhookBench.run(pace, nodeOptions)
  yield* Console.log(`\n${WebhookReport.text(results)}`)
  yield* conclude(
    "webhooks",
    { isComplete, results, verdicts: WebhookGoals.judge(results) },
    { "webhooks.md": WebhookReport.markdown(results) }
  )
})

export const overload = Effect.fnUntraced(function* (pace: OverloadPace, isComplete: boolean) {
  const results = yield* OverloadBench.run(pace)
  yield* Console.log(`\n  ${OverloadReport.text(results)}`)
  yield* conclude(
    "overload",
    { isComplete, results, verdicts: OverloadGoals.judge(results) },
    { "overload.md": OverloadReport.markdown(results), "overload.svg": OverloadChart.svg(results) }
  )
})

export const live = Effect.fnUntraced(function* (
  pace: LivePace,
  nodeOptions: ReadonlyArray<string>,
  isComplete: boolean
) {
  const results = yield* LiveBench.run(pace, nodeOptions)
  yield* Console.log(`\n${LiveReport.text(results)}`)
  yield* conclude(
    "live",
    { isComplete, results, verdicts: LiveGoals.judge(results) },
    { "live.md": LiveReport.markdown(results) }
  )
})

export const cluster = Effect.fnUntraced(function* (pace: ClusterPace, isComplete: boolean) {
  const results = yield* ClusterBench.run(pace)
  yield* Console.log(`\n  ${ClusterReport.text(results)}`)
  yield* conclude(
    "cluster",
    { isComplete, results, verdicts: ClusterGoals.judge(results) },
    { "cluster.md": ClusterReport.markdown(results) }
  )
})

export const growth = Effect.fnUntraced(function* (pace: GrowthPace, folder: string | undefined, isComplete: boolean) {
  const results = yield* GrowthBench.run(pace, folder)
  yield* Console.log(`\n${GrowthReport.text(results)}`)
  yield* conclude(
    "growth",
    { isComplete, results, verdicts: GrowthGoals.judge(results) },
    { "growth.md": GrowthReport.markdown(results) }
  )
})

export const dashboard = Effect.fnUntraced(function* (pace: DashboardPace, isComplete: boolean) {
  const results = yield* DashboardBench.run(pace)
  yield* Console.log(`\n${DashboardReport.text(results)}`)
  yield* conclude(
    "dashboard",
    { isComplete, results, verdicts: DashboardGoals.judge(results) },
    { "dashboard.md": DashboardReport.markdown(results) }
  )
})

/** Fails if a figure is out of the budget; with `isKept`, the figures become the budget instead. */
export const budget = Effect.fnUntraced(function* (
  pace: Pace,
  { isComplete, isKept }: { isComplete: boolean; isKept: boolean }
) {
  const results = yield* BudgetBench.run(pace)
  if (isKept) Budget.write(results.costs)
  const bounds = Budget.read()
  yield* Console.log(`\n${BudgetReport.text(results, bounds)}`)
  yield* conclude(
    "budget",
    { isComplete, results, verdicts: [] },
    { "budget.md": BudgetReport.markdown(results, bounds) }
  )
  const problems = Budget.problemsOf(results.costs, bounds)
  if (problems.length > 0) return yield* new BenchFailure({ problem: problems.join("\n") })
})

export const start = Effect.fnUntraced(function* (pace: StartPace, isComplete: boolean) {
  const results = yield* StartBench.run(pace)
  yield* Console.log(`\n${StartReport.text(results)}`)
  yield* conclude(
    "start",
    { isComplete, results, verdicts: StartGoals.judge(results) },
    { "start.md": StartReport.markdown(results) }
  )
})

/** Scenarios of a comparison unless one is named. */
const COMPARED = ["retrieve", "list", "create", "create-and-confirm", "checkout", "checkout-confirm", "refund"]

/** Compares this checkout with a git reference, and stores the result if there are goals for that reference. */
export const comparison = Effect.fnUntraced(function* (
  reference: string,
  only: Option.Option<string>,
  pace: ComparisonPace,
  { isUsual, runFolder, set }: { isUsual: boolean; runFolder: string; set: Readonly<Record<string, string>> }
) {
  const wanted = Option.match(only, { onNone: () => COMPARED, onSome: (name) => [name] })
  const compared = scenarios.filter(({ name }) => wanted.includes(name))
  if (compared.length === 0 || compared.some((scenario) => Comparison.subjectOf(scenario) === undefined)) {
    return yield* new BenchFailure({ problem: `Versions cannot be compared by ${wanted.join()}.` })
  }
  // Before the measurement, because the checkout may change during it.
  const machine = Machine.describe("")
  const versions = yield* Versions.lay(reference, runFolder, set)
  yield* Console.log(`This checkout against ${versions.other.title}: ${pace.starts} starts of both.`)
  const load = yield* Load.make
  const measured = yield* Comparison.measure(compared, versions, load, pace)
  const seed = randomInt(2 ** 31)
  const texts = measured.compared.map((one) => ComparisonReport.scenarioText(one, versions.other.title, seed))
  yield* Console.log(`\n${texts.join("\n\n")}\n\n${ComparisonReport.caution(compared.length)}`)
  const described = { ...machine, postgres: measured.postgres }
  yield* Console.log(`${Machine.sentence(described)}; seed ${seed}`)
  const verdicts = ComparisonGoals.judge(measured.compared, versions.otherCommit, seed)
  if (verdicts.length === 0) return
  const results = { at: new Date().toISOString(), machine: described, seed, starts: measured.compared }
  const text = `\`\`\`\n${texts.join("\n\n")}\n\`\`\``
  yield* conclude(
    "comparison",
    { isComplete: isUsual && Option.isNone(only), results, verdicts },
    { "comparison.md": text }
  )
}, Effect.scoped)
