/** The goals of the API's bench. Each is judged by the figures of one run: ratios within it, and medians. */
import type { ContenderName } from "./Contender.ts"
import { pacedMedian } from "./paced/PacedReport.ts"
import { type Results, type ScenarioResult, type SubjectResult, throughputRatio } from "./Results.ts"
import { type Bound, type Verdict, verdictOf } from "./Verdict.ts"

interface Goal extends Bound {
  /** The figure, or undefined if the run does not have it. */
  readonly figure: (results: Results) => number | undefined
}

const subject = (scenario: ScenarioResult | undefined, name: ContenderName): SubjectResult | undefined =>
  scenario?.subjects.find(({ contender }) => contender === name)

const ofScenario = ({ scenarios }: Results, name: string) => scenarios.find((scenario) => scenario.name === name)

const throughput =
  (scenario: string, name: ContenderName) =>
  (results: Results): number | undefined => {
    const till = subject(ofScenario(results, scenario), "till")
    const other = subject(ofScenario(results, scenario), name)
    return till === undefined || other === undefined ? undefined : throughputRatio(till, other)
  }

/** Ratio of Till's p99 to another server's, each over the requests of all rounds. */
const p99Ratio =
  (scenario: string, name: ContenderName) =>
  (results: Results): number | undefined => {
    const till = subject(ofScenario(results, scenario), "till")
    const other = subject(ofScenario(results, scenario), name)
    return till === undefined || other === undefined ? undefined : till.latency.p99Millis / other.latency.p99Millis
  }

const paced =
  (measure: "p99Millis" | "p999Millis") =>
  ({ paced }: Results): number | undefined => {
    const till = paced.find(({ contender }) => contender === "till")
    return till === undefined ? undefined : pacedMedian(till, measure)
  }

const goals: ReadonlyArray<Goal> = [
  {
    text: "create ÷ transaction per request",
    figure: throughput("create", "transactionPerRequest"),
    unit: "×",
    bound: 4
  },
  { text: "create ÷ emulate", figure: throughput("create", "emulate"), unit: "×", bound: 1.5 },
  { text: "create ÷ node:http + group commit", figure: throughput("create", "groupCommit"), unit: "×", bound: 0.6 },
  { text: "retrieve ÷ echo", figure: throughput("retrieve", "echo"), unit: "×", bound: 1 },
  { text: "list of 10 ÷ echo", figure: throughput("list", "echo"), unit: "×", bound: 0.5 },
  { text: "p99 at 70 % load, open loop", figure: paced("p99Millis"), unit: " ms", bound: 25, isMaximum: true },
  { text: "p99.9 at 70 % load, open loop", figure: paced("p999Millis"), unit: " ms", bound: 60, isMaximum: true },
  {
    text: "create over one connection, p99 ÷ transaction per request's",
    figure: p99Ratio("create-latency", "transactionPerRequest"),
    unit: "×",
    bound: 1,
    isMaximum: true
  }
]

/** Returns the verdicts on the goals that this run has figures for. */
export const judge = (results: Results): ReadonlyArray<Verdict> =>
  goals.flatMap((goal) => {
    const value = goal.figure(results)
    return value === undefined ? [] : [verdictOf(goal, value)]
  })
