/** Till wants to reach these goals; each is judged on the run's own figures. */
import type { ContenderName } from "./Contender.ts"
import type { Results, ScenarioResult, SubjectResult } from "./Results.ts"
import { throughputRatio } from "./Results.ts"

interface Goal {
  readonly scenario: string
  readonly text: string
  /** The figure, or undefined if the run does not have it. */
  readonly figure: (scenario: ScenarioResult) => number | undefined
  readonly unit: string
  readonly reached: (figure: number) => boolean
}

const subject = (scenario: ScenarioResult, name: ContenderName): SubjectResult | undefined =>
  scenario.subjects.find(({ contender }) => contender === name)

const ratioTo = (name: ContenderName) => (scenario: ScenarioResult) => {
  const till = subject(scenario, "till")
  const other = subject(scenario, name)
  return till === undefined || other === undefined ? undefined : throughputRatio(till, other)
}

const goals: ReadonlyArray<Goal> = [
  {
    scenario: "create",
    text: "create: at least 3 times the throughput of a transaction per request",
    figure: ratioTo("transactionPerRequest"),
    unit: "×",
    reached: (figure) => figure >= 3
  },
  {
    scenario: "retrieve",
    text: "retrieve: at least 0.25 times the throughput of a bare echo",
    figure: ratioTo("echo"),
    unit: "×",
    reached: (figure) => figure >= 0.25
  },
  {
    scenario: "create",
    text: "create: p99 of at most 25 ms at 64 connections",
    figure: (scenario) => subject(scenario, "till")?.latency.p99Millis,
    unit: " ms",
    reached: (figure) => figure <= 25
  }
]

export interface Verdict {
  readonly text: string
  readonly figure: number
  readonly unit: string
  readonly reached: boolean
}

/** The goals that this run can judge. */
export const judge = ({ scenarios }: Results): ReadonlyArray<Verdict> =>
  goals.flatMap(({ figure, reached, scenario, text, unit }) => {
    const result = scenarios.find(({ name }) => name === scenario)
    const value = result === undefined ? undefined : figure(result)
    return value === undefined ? [] : [{ text, figure: value, unit, reached: reached(value) }]
  })
