/** The report of a run, for the terminal and for docs/faults.md. */
import { type Machine, sentence } from "../../bench/Machine.ts"
import { markdown } from "../../bench/Table.ts"
import type { Kind } from "./Finding.ts"
import type { Row } from "./Scene.ts"

/** A deliberate mistake and the judge's result. */
export interface ControlResult {
  readonly name: string
  /** The changed line. */
  readonly mutation: string
  readonly fault: string
  /** The finding; undefined if the mistake was not seen. */
  readonly seen: string | undefined
  /** The number of its runs; those before the last have not shown the mistake. */
  readonly runs: number
  /** The reason why the control could not run. */
  readonly skipped?: string
}

export interface Run {
  readonly at: string
  readonly minutes: number
  readonly seed: number
  readonly machine: Machine
  readonly rows: ReadonlyArray<Row>
  readonly controls: ReadonlyArray<ControlResult>
}

export const hasFailed = ({ controls, rows }: Pick<Run, "rows" | "controls">): boolean =>
  rows.some(({ findings }) => findings.all.length > 0) ||
  controls.some(({ seen, skipped }) => seen === undefined && skipped === undefined)

const HEAD = ["Fault", "rounds", "acknowledged", "lost", "doubled", "wrong", "recovery p50", "max"]

const medianOf = (sorted: ReadonlyArray<number>): number => sorted[Math.floor((sorted.length - 1) / 2)]!

const seconds = (value: number): string => `${value < 10 ? value.toFixed(2) : value.toFixed(0)} s`

const cells = ({ acknowledged, fault, findings, recoveries, rounds, skipped }: Row): ReadonlyArray<string> => {
  if (skipped !== undefined) return [fault, "skipped", ...Array.from({ length: 6 }, () => "")]
  const sorted = recoveries.toSorted((a, b) => a - b)
  const counts = (["lost", "doubled", "wrong"] as const).map((kind: Kind) => String(findings.count(kind)))
  const times = sorted.length === 0 ? ["", ""] : [seconds(medianOf(sorted)), seconds(sorted.at(-1)!)]
  return [fault, String(rounds), String(acknowledged), ...counts, ...times]
}

export const table = (rows: ReadonlyArray<Row>): ReadonlyArray<ReadonlyArray<string>> => [HEAD, ...rows.map(cells)]

const SHOWN_MAX = 12

/** Formats some findings of each row. */
export const findingLines = ({ fault, findings }: Row): ReadonlyArray<string> => {
  const shown = findings.all.slice(0, SHOWN_MAX).map(({ kind, text }) => `${fault}: ${kind}: ${text}`)
  const more = findings.all.length - shown.length
  return more > 0 ? [...shown, `${fault}: and ${more} more`] : shown
}

export const controlLine = ({ name, runs, seen, skipped }: ControlResult): string =>
  skipped !== undefined
    ? `${name}: skipped, ${skipped}`
    : seen === undefined
      ? `${name}: NOT SEEN in ${runs} runs`
      : `${name}: seen in run ${runs}, ${seen}`

const remarks = (rows: ReadonlyArray<Row>): ReadonlyArray<string> =>
  rows.flatMap(({ fault, remark, skipped }) => {
    if (skipped !== undefined) return [`- **${fault}** was skipped: ${skipped}.`]
    return remark === undefined ? [] : [`- **${fault}**: ${remark}`]
  })

/** Formats text as code in one line of a document. */
const code = (text: string): string => `\`${text.replaceAll(/\s+/g, " ").replaceAll("`", "'").slice(0, 300)}\``

export const tables = (run: Run): string => {
  const controls = run.controls.map(({ fault, mutation, name, runs, seen, skipped }) => [
    name,
    mutation,
    fault,
    skipped !== undefined ? `skipped: ${skipped}` : seen === undefined ? "**not seen**" : `seen in run ${runs}`
  ])
  const found = run.rows.flatMap((row) => findingLines(row)).map((line) => `- ${code(line)}`)
  return [
    `${run.at.slice(0, 10)}, ${run.minutes} minutes, seed ${run.seed}. ${sentence(run.machine)}.`,
    "",
    ...(run.rows.length > 0 ? [markdown(table(run.rows)), "", ...remarks(run.rows), ""] : []),
    ...(run.controls.length > 0
      ? [
          "## Controls",
          "",
          "Each is a copy of the sources with one line changed, under a fault that has to show it, by chance in one of three runs.",
          "",
          markdown([["Mistake", "what was changed", "fault", "verdict"], ...controls]),
          "",
          ...run.controls.flatMap(({ name, seen }) => (seen === undefined ? [] : [`- **${name}**: ${code(seen)}`])),
          ""
        ]
      : []),
    "## What was found",
    "",
    ...(found.length > 0 ? found : ["Nothing."])
  ].join("\n")
}
