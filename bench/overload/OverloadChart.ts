/**
 * The chart: goodput and latency over the offered load, by requests per second on the left and by connections on the
 * right. Plain SVG, with the colours of the other chart.
 */
import { frame, label, STYLE } from "../Chart.ts"
import { sentence } from "../Machine.ts"
import { figure } from "../Report.ts"
import { warnings } from "./OverloadReport.ts"
import { goodputRatio, type OverloadResults, type Turn } from "./OverloadResults.ts"

const WIDTH = 860
const HEIGHT = 570
const PLOT_WIDTH = 330
const PLOT_HEIGHT = 170
/** Approximate width of a note's letter. */
const LETTER_WIDTH = 5.6
const LEFTS = [70, 500]
const TOPS = [115, 355]

interface Point {
  readonly at: number
  readonly value: number
}

interface Line {
  readonly className: string
  readonly title: string
  readonly points: ReadonlyArray<Point>
}

interface Plot {
  readonly left: number
  readonly top: number
  readonly title: string
  readonly lines: ReadonlyArray<Line>
  /** Labels of the horizontal axis, by place. */
  readonly names: ReadonlyArray<string>
  /** Marks of the vertical axis. */
  readonly marks: ReadonlyArray<number>
  /** Maps a value to 0 at the bottom up to 1 at the top. */
  readonly height: (value: number) => number
}

const draw = ({ height, left, lines, marks, names, title, top }: Plot): string => {
  const x = (at: number) => left + ((at + 0.5) / names.length) * PLOT_WIDTH
  const y = (value: number) => top + (1 - Math.min(1, Math.max(0, height(value)))) * PLOT_HEIGHT
  const grid = marks.flatMap((mark) => [
    `<line x1="${left}" x2="${left + PLOT_WIDTH}" y1="${y(mark)}" y2="${y(mark)}" class="grid"/>`,
    label(left - 8, y(mark) + 4, "note end", mark < 1 ? String(mark) : figure(mark).replace(/\.0+$/, ""))
  ])
  const curves = lines.flatMap(({ className, points }) => [
    `<polyline points="${points.map(({ at, value }) => `${x(at)},${y(value)}`).join(" ")}" class="curve ${className}"/>`,
    ...points.map(({ at, value }) => `<circle cx="${x(at)}" cy="${y(value)}" r="3" class="dot ${className}"/>`)
  ])
  const legend = lines.map((line, i) => {
    const before = lines.slice(0, i).reduce((sum, { title }) => sum + title.length * LETTER_WIDTH + 34, 0)
    const at = left + before
    const swatch = `<rect x="${at}" y="${top - 19}" width="10" height="3" class="dot ${line.className}"/>`
    return `${swatch}${label(at + 14, top - 14, "note", line.title)}`
  })
  return [
    label(left, top - 30, "scenario", title),
    ...grid,
    ...names.map((name, i) => label(x(i), top + PLOT_HEIGHT + 16, "note middle", name)),
    ...curves,
    ...legend
  ].join("\n")
}

const pointsOf = (turns: ReadonlyArray<Turn>, value: (turn: Turn) => number | undefined): ReadonlyArray<Point> =>
  turns.flatMap((turn, at) => {
    const known = value(turn)
    return known === undefined ? [] : [{ at, value: known }]
  })

const RATIO_MAX = 1.25
const MILLIS_MIN = 1
const MILLIS_MAX = 30_000
const MILLIS_MARKS = [1, 10, 100, 1000, 10_000]

const column = (
  turns: ReadonlyArray<Turn>,
  names: ReadonlyArray<string>,
  { left, over }: { left: number; over: string }
): string => {
  const ratios: Plot = {
    left,
    top: TOPS[0]!,
    title: `Of the peak, over ${over}`,
    names,
    marks: [0, 0.25, 0.5, 0.75, 1],
    height: (value) => value / RATIO_MAX,
    lines: [{ className: "till", title: "acknowledged creates/s", points: pointsOf(turns, goodputRatio) }]
  }
  const latencies: Plot = {
    left,
    top: TOPS[1]!,
    title: `Latency in ms, over ${over}`,
    names,
    marks: MILLIS_MARKS,
    height: (value) => Math.log(value / MILLIS_MIN) / Math.log(MILLIS_MAX / MILLIS_MIN),
    lines: [
      { className: "till", title: "accepted, p99", points: pointsOf(turns, ({ step }) => step.accepted?.p99Millis) },
      { className: "pale", title: "p50", points: pointsOf(turns, ({ step }) => step.accepted?.p50Millis) },
      {
        className: "baseline",
        title: "another merchant, p50",
        points: pointsOf(turns, ({ step }) => step.probe.latency?.p50Millis)
      }
    ]
  }
  return `${draw(ratios)}\n${draw(latencies)}`
}

const OWN_STYLE = `
  .grid { stroke: #818b98; stroke-opacity: 0.3 }
  .end { text-anchor: end }
  .middle { text-anchor: middle }
  .curve { fill: none; stroke-width: 2 }
  .curve.till { stroke: #0969da; fill: none }
  .curve.pale { stroke: #54aeff; fill: none }
  .curve.baseline { stroke: #818b98; fill: none }
  .dot.pale { fill: #54aeff }`

/** Returns the whole chart as an SVG document. */
export const svg = (results: OverloadResults): string => {
  const { byConnections, byOffer, machine } = results
  const [left, right] = LEFTS
  const offers = byOffer.map(({ timesPeak }) => `${timesPeak}×`)
  const connections = byConnections.map(({ step }) => step.connections.toLocaleString("en-US").replaceAll(",", " "))
  return frame(
    { width: WIDTH, height: HEIGHT, label: "Goodput and latency under overload", style: STYLE + OWN_STYLE },
    [
      label(24, 30, "heading", "Creates under overload, another merchant beside them"),
      ...[sentence(machine), ...warnings(results)].map((note, i) => label(24, 48 + i * 15, "note", note)),
      column(byOffer, offers, { left: left!, over: "offered creates/s (open loop)" }),
      column(byConnections, connections, { left: right!, over: "connections (closed loop)" })
    ]
  )
}
