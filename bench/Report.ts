/** The results as text: a table for the terminal, the same as Markdown, and the goals. */
import type { Verdict } from "./Goals.ts"
import type { Results, ScenarioResult, Speeds, SubjectResult } from "./Results.ts"
import { medianOf, noiseOf, throughputRatio, unsteadinessOf } from "./Results.ts"
import * as Table from "./Table.ts"

const COLUMNS = ["", "requests/s", "p50 ms", "p99 ms", "max ms", "CPU µs server", "CPU µs Postgres", "first ÷ this"]

/** Three significant digits are more than such a machine repeats; whole numbers keep theirs. */
export const figure = (value: number | undefined): string => {
  if (value === undefined || !Number.isFinite(value)) return "–"
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

export const heading = (scenario: Pick<ScenarioResult, "title" | "connections">): string =>
  scenario.connections === 1 ? scenario.title : `${scenario.title}, ${scenario.connections} connections`

/** Warnings if the machine was not the bench's own, or not always as fast, by the worst of the scenarios. */
export const warnings = (scenarios: ReadonlyArray<ScenarioResult>): ReadonlyArray<string> => {
  const shareMax = Math.max(0, ...scenarios.flatMap((scenario) => noiseOf(scenario) ?? []))
  const [worst] = scenarios
    .flatMap((scenario) => unsteadinessOf(scenario) ?? [])
    .toSorted((a, b) => b.slowMicros / b.quickMicros - a.slowMicros / a.quickMicros)
  return [...(shareMax === 0 ? [] : [noiseText(shareMax)]), ...(worst === undefined ? [] : [unsteadinessText(worst)])]
}

export const noiseText = (share: number): string =>
  `Not a quiet machine: in a quarter of the rounds, others took ${Math.round(share * 100)} % of its CPU or more.`

const unsteadinessText = ({ quickMicros, slowMicros }: Speeds): string =>
  `Not a steady machine: a request to the same echo took ${figure(quickMicros)} µs of CPU in its quick rounds, ` +
  `${figure(slowMicros)} in its slow ones.`

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
