/** The results as text: a table for the terminal, the same as Markdown, and the goals. */
import { type ContenderName, contenders } from "./Contender.ts"
import type { Verdict } from "./Verdict.ts"
import {
  medianOf,
  noiseOf,
  type Results,
  type ScenarioResult,
  type Speeds,
  type SubjectResult,
  throughputRatio,
  unsteadinessOf
} from "./Results.ts"
import * as Table from "./Table.ts"

const COLUMNS = ["", "requests/s", "p50 ms", "p99 ms", "max ms", "CPU µs server", "CPU µs Postgres", "first ÷ this"]

/** Formats with three significant digits, the precision of repeated runs; whole numbers keep all digits. */
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
  contenders[subject.contender].countQuery === null ? "–" : figure(medianOf(subject, "postgresMicros")),
  subject === first ? "" : `${figure(throughputRatio(first, subject))} ×`
]

const rows = ({ subjects }: ScenarioResult): ReadonlyArray<ReadonlyArray<string>> =>
  subjects.map((subject) => row(subject, subjects[0]!))

export const heading = (scenario: Pick<ScenarioResult, "title" | "connections">): string =>
  scenario.connections === 1 ? scenario.title : `${scenario.title}, ${scenario.connections} connections`

/** Warns of a busy or an unsteady machine, by the worst of the scenarios. */
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

/** Formats one scenario for the terminal. */
export const scenarioText = (scenario: ScenarioResult): string =>
  [heading(scenario), ...Table.textLines([COLUMNS, ...rows(scenario)]), ...warnings([scenario])].join("\n  ")

/** Formats all scenarios as one Markdown table. */
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

/** The servers beside Till in the summary. */
const BESIDE: ReadonlyArray<ContenderName> = ["transactionPerRequest", "emulate", "groupCommit", "echo"]
const SUMMARIZED = ["retrieve", "list", "create", "create-and-confirm"]

/** The first table of `bench/results/table.md`: requests per second of Till and of the others. */
export const summary = ({ scenarios }: Results): string =>
  Table.markdown([
    ["", "Till, requests/s", "p50 ms", "p99 ms", ...BESIDE.map((name) => contenders[name].title)],
    ...SUMMARIZED.flatMap((wanted) => scenarios.find(({ name }) => name === wanted) ?? []).map(
      ({ subjects, title }) => {
        const of = (name: ContenderName) => subjects.find(({ contender }) => contender === name)
        const perSecond = (one: SubjectResult | undefined) =>
          one === undefined ? "–" : figure(medianOf(one, "requestsPerSecond"))
        const till = of("till")
        return [
          title,
          perSecond(till),
          figure(till?.latency.p50Millis),
          figure(till?.latency.p99Millis),
          ...BESIDE.map((name) => perSecond(of(name)))
        ]
      }
    )
  ])

/** Formats a verdict's figure with its unit. */
const measured = ({ figure: value, unit }: Verdict): string => {
  if (!Number.isFinite(value)) return "not seen"
  return `${Number.isInteger(value) && value < 100 ? value : figure(value)}${unit === "×" ? " " : ""}${unit}`
}

export const verdictText = (verdict: Verdict): string =>
  `${verdict.reached ? "reached    " : "NOT reached"}  ${verdict.text}: ${measured(verdict)}`

export const verdictsMarkdown = (verdicts: ReadonlyArray<Verdict>): string =>
  Table.markdown([
    ["Goal", "measured", ""],
    ...verdicts.map((verdict) => [verdict.text, measured(verdict), verdict.reached ? "reached" : "**not reached**"])
  ])
