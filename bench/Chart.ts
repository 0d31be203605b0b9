/**
 * The chart: throughput per scenario as horizontal bars, each scenario on its own scale because an echo dwarfs
 * everything that stores. Plain SVG; its colours follow the reader's light or dark scheme.
 */
import { sentence } from "./Machine.ts"
import { figure, heading, warnings } from "./Report.ts"
import { medianOf, type Results, type ScenarioResult, type SubjectResult } from "./Results.ts"

const WIDTH = 860
const MARGIN = 24
const LABEL_WIDTH = 250
const VALUE_WIDTH = 190
const BAR_WIDTH_MAX = WIDTH - 2 * MARGIN - LABEL_WIDTH - VALUE_WIDTH
const BAR_HEIGHT = 18
const BAR_PITCH = 25
const TITLE_HEIGHT = 30
const GAP = 16
const HEADER_HEIGHT = 62
const NOTE_HEIGHT = 18

export const STYLE = `
  svg { color-scheme: light dark }
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .heading { font-size: 17px; font-weight: 600 }
  .scenario { font-weight: 600 }
  .note { font-size: 11px; fill: #59636e }
  .background { fill: #ffffff }
  .till { fill: #0969da }
  .baseline { fill: #818b98 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .note { fill: #9198a1 }
    .background { fill: #0d1117 }
    .till { fill: #4493f8 }
    .baseline { fill: #656c76 }
  }`

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

export const label = (x: number, y: number, className: string, content: string): string =>
  `<text x="${x}" y="${y}" class="${className}">${escape(content)}</text>`

/** Returns an SVG document with these lines in a frame. */
export const frame = (
  { height, label, style, width }: { width: number; height: number; label: string; style: string },
  drawn: ReadonlyArray<string>
): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(label)}">`,
    `<style>${style}\n</style>`,
    `<rect width="${width}" height="${height}" class="background"/>`,
    ...drawn,
    "</svg>\n"
  ].join("\n")

const throughput = (subject: SubjectResult): number => medianOf(subject, "requestsPerSecond") ?? 0

const bar = (subject: SubjectResult, y: number, throughputMax: number): string => {
  const width = Math.max(1, Math.round((throughput(subject) / throughputMax) * BAR_WIDTH_MAX))
  const x = MARGIN + LABEL_WIDTH
  const baseline = y + BAR_HEIGHT - 5
  const value = `${figure(throughput(subject))}/s, p99 ${figure(subject.latency.p99Millis)} ms`
  return [
    label(MARGIN, baseline, "label", subject.title),
    `<rect x="${x}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="2" ` +
      `class="${subject.contender === "till" ? "till" : "baseline"}"/>`,
    label(x + width + 8, baseline, "label", value)
  ].join("\n")
}

const heightOf = (scenario: ScenarioResult): number => TITLE_HEIGHT + scenario.subjects.length * BAR_PITCH + GAP

const group = (scenario: ScenarioResult, y: number): string => {
  const throughputMax = Math.max(...scenario.subjects.map(throughput))
  return [
    label(MARGIN, y + 20, "scenario", heading(scenario)),
    ...scenario.subjects.map((subject, i) => bar(subject, y + TITLE_HEIGHT + i * BAR_PITCH, throughputMax))
  ].join("\n")
}

/** Returns the whole chart as an SVG document. */
export const svg = ({ machine, scenarios }: Results): string => {
  const notes = [sentence(machine), ...warnings(scenarios)]
  let height = HEADER_HEIGHT + (notes.length - 1) * NOTE_HEIGHT
  const groups = scenarios.map((scenario) => {
    const drawn = group(scenario, height)
    height += heightOf(scenario)
    return drawn
  })
  return frame({ width: WIDTH, height, label: "Requests per second", style: STYLE }, [
    label(MARGIN, 30, "heading", "Requests per second, higher is better; each scenario on a scale of its own"),
    ...notes.map((note, i) => label(MARGIN, 50 + i * NOTE_HEIGHT, "note", note)),
    ...groups
  ])
}
