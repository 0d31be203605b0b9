/** The budget's figures beside the budget, and CPU times relative to those of the echo in the same run. */
import { Effect } from "effect"
import * as ApiBench from "../ApiBench.ts"
import type { ContenderName } from "../Contender.ts"
import { median } from "../load/Percentiles.ts"
import type { Machine } from "../Machine.ts"
import type { Round, ScenarioResult } from "../Results.ts"
import { confirm } from "../scenarios/Confirm.ts"
import { create } from "../scenarios/Create.ts"
import { list } from "../scenarios/List.ts"
import { retrieve } from "../scenarios/Retrieve.ts"
import type { Scenario } from "../scenarios/Scenario.ts"
import { BenchFailure } from "../BenchFailure.ts"
import type { Pace } from "../Suite.ts"
import * as Costs from "./Costs.ts"
import { type Kind, KINDS } from "./Requests.ts"

/** CPU time per request ÷ that of the echo's process: medians over rounds that ran close in time. */
export interface CpuRatios {
  readonly till?: number
  readonly postgres?: number
}

export interface BudgetResults {
  readonly at: string
  readonly machine: Machine
  readonly costs: Costs.Costs
  readonly cpu: Readonly<Record<Kind, CpuRatios>>
  /** The rounds behind the ratios. */
  readonly scenarios: ReadonlyArray<ScenarioResult>
}

const SCENARIOS: Readonly<Record<Kind, Scenario>> = { create, confirm, retrieve, list }
const COMPARED: ReadonlyArray<ContenderName> = ["till", "echo"]

/** Returns the median ratio of a time to the echo's CPU time; undefined where the system does not report them. */
const ratioOf = ({ subjects }: ScenarioResult, measure: "serverMicros" | "postgresMicros"): number | undefined => {
  const roundsOf = (name: ContenderName): ReadonlyArray<Round> =>
    subjects.find(({ contender }) => contender === name)?.rounds ?? []
  const echo = roundsOf("echo")
  const ratios = roundsOf("till").flatMap((round, i) => {
    const [micros, echoMicros] = [round[measure], echo[i]?.serverMicros]
    return micros === undefined || echoMicros === undefined ? [] : micros / echoMicros
  })
  return ratios.length === 0 ? undefined : median(ratios)
}

const cpuRatiosOf = (result: ScenarioResult): CpuRatios => {
  const [till, postgres] = [ratioOf(result, "serverMicros"), ratioOf(result, "postgresMicros")]
  return { ...(till !== undefined && { till }), ...(postgres !== undefined && { postgres }) }
}

export const run = Effect.fnUntraced(function* (pace: Pace) {
  const { costs } = yield* Costs.measure
  const measured = yield* ApiBench.run({
    pace,
    scenarios: KINDS.map((kind) => ({
      ...SCENARIOS[kind],
      subjects: SCENARIOS[kind].subjects.filter(({ contender }) => COMPARED.includes(contender))
    })),
    pacedPace: null,
    takesPart: (name) => COMPARED.includes(name),
    objects: 0,
    nodeOptions: []
  })
  if (measured.failures.length > 0) return yield* new BenchFailure({ problem: measured.failures.join("\n") })
  const cpu = Object.fromEntries(
    KINDS.map((kind) => [kind, cpuRatiosOf(measured.scenarios.find(({ name }) => name === SCENARIOS[kind].name)!)])
  ) as Record<Kind, CpuRatios>
  const { at, machine, scenarios } = measured
  return { at, machine, costs, cpu, scenarios } satisfies BudgetResults as BudgetResults
})
