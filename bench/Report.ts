/** The results as text: a table for the terminal, the same as Markdown, and the goals. */
import type { Verdict } from "./Goals.ts"
import type { Results, ScenarioResult, SubjectResult } from "./Results.ts"
import { medianOf, noiseOf, throughputRatio } from "./Results.ts"
import * as Table from "./Table.ts"

const COLUMNS = ["", "requests/s", "p50 ms", "p99 ms", "max ms", "CPU µs server", "CPU µs Postgres", "first ÷ this"]

/** Three significant digits are more than such a machine repeats; whole numbers keep theirs. */
export const figure = (value: number | undefined): string => {
  if (value === undefined) return "–"
  if (value >= 100) return Math.round(value).toLocaleString("en-US").replaceAll(",", " ")
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

const row = (subject: SubjectResult, first: SubjectResult): ReadonlyArray<string> => [
  subject.title,
  figure(medianOf(subject, "requestsPerSecond")),
  figure(subject.latency.p50Millis),
  figure(subject.latency.p99Millis),
  figure(subject.latency.maxMillis),
  figure(medianOf(subject, "serverMicros")),
  subject.contender === "echo" ? "–" : figure(medianOf(subject, "postgresMicros")),
  subject === first ? "" : `${figure(throughputRatio(first, subject))} ×`
]

const rows = ({ subjects }: ScenarioResult): ReadonlyArray<ReadonlyArray<string>> =>
  subjects.map((subject) => row(subject, subjects[0]!))

export const heading = (scenario: ScenarioResult): string =>
  scenario.connections === 1 ? scenario.title : `${scenario.title}, ${scenario.connections} connections`

/** A warning if the machine was not the bench's own, in the noisiest of the scenarios; else nothing. */
export const warnings = (scenarios: ReadonlyArray<ScenarioResult>): ReadonlyArray<string> => {
  const shareMax = Math.max(0, ...scenarios.flatMap((scenario) => noiseOf(scenario) ?? []))
  return shareMax === 0 ? [] : [noiseText(shareMax)]
}

export const noiseText = (share: number): string =>
  `Not a quiet machine: in a quarter of the rounds, others took ${Math.round(share * 100)} % of its CPU or more.`

/** One scenario, for the terminal. */
export const scenarioText = (scenario: ScenarioResult): string =>
  [heading(scenario), ...Table.textLines([COLUMNS, ...rows(scenario)]), ...warnings([scenario])].join("\n  ")

/** All scenarios in one Markdown table. */
export const markdown = ({ scenarios }: Results): string =>
  [
    Table.markdown([
      COLUMNS,
      ...scenarios.flatMap((scenario) => [
        [`**${heading(scenario)}**`, ...COLUMNS.slice(1).map(() => "")],
        ...rows(scenario)
      ])
    ]),
    ...warnings(scenarios).map((warning) => `\n${warning}`)
  ].join("\n")

export const verdictText = ({ figure: value, reached, text, unit }: Verdict): string =>
  `${reached ? "reached    " : "NOT reached"}  ${text}: ${figure(value)}${unit}`
