/** The results as a table, for the terminal and as Markdown. */
import { figure, noiseText } from "../Report.ts"
import { noiseIn } from "../Results.ts"
import * as Table from "../Table.ts"
import { goodputRatio, type OverloadResults, type Probe, type Step, type Turn } from "./OverloadResults.ts"

const COLUMNS = [
  "",
  "peak/s",
  "sent/s",
  "goodput/s",
  "÷ peak",
  "refused/s",
  "lost",
  "p50 ms",
  "p99 ms",
  "other's quiet p50 ms",
  "other's p50 ms",
  "other's p99 ms",
  "other's refused",
  "recovery ms"
]

export const nameOf = ({ connections, offeredPerSecond }: Pick<Step, "connections" | "offeredPerSecond">): string =>
  offeredPerSecond === undefined ? `${count(connections)} connections` : `${figure(offeredPerSecond)} creates/s`

/** Formats a count for a name, without insignificant digits. */
const count = (value: number): string => (value < 100 ? String(value) : figure(value))

const otherCells = ({ latency, lost, refused, requests }: Probe): ReadonlyArray<string> => [
  figure(latency?.p50Millis),
  figure(latency?.p99Millis),
  refused + lost === 0 ? "0" : `${refused + lost} of ${requests}`
]

const row = (name: string, turn: Turn): ReadonlyArray<string> => {
  const { peak, quiet, step } = turn
  const { accepted, goodputPerSecond, lost, probe, recoveryMillis, refusedPerSecond, sentPerSecond } = step
  return [
    name,
    figure(peak.goodputPerSecond),
    figure(sentPerSecond),
    figure(goodputPerSecond),
    figure(goodputRatio(turn)),
    refusedPerSecond === 0 ? "0" : figure(refusedPerSecond),
    String(lost),
    figure(accepted?.p50Millis),
    figure(accepted?.p99Millis),
    figure(quiet.latency?.p50Millis),
    ...otherCells(probe),
    recoveryMillis === undefined ? "not seen" : figure(recoveryMillis)
  ]
}

/** Formats one load during the run. */
export const turnLine = (turn: Turn): string => {
  const [name, ...cells] = row(nameOf(turn.step), turn)
  return `${name}: ${cells.map((cell, i) => `${COLUMNS[i + 1]} ${cell}`).join(", ")}`
}

const rows = ({ byConnections, byOffer }: OverloadResults) => [
  COLUMNS,
  ...byOffer.map((turn) => row(`${turn.timesPeak} × peak: ${nameOf(turn.step)}`, turn)),
  ...byConnections.map((turn) => row(nameOf(turn.step), turn))
]

/** Returns a warning if other processes were busy during the run. */
export const warnings = ({ byConnections, byOffer }: OverloadResults): ReadonlyArray<string> => {
  const turns: ReadonlyArray<Turn> = [...byOffer, ...byConnections]
  const share = noiseIn(turns.flatMap(({ peak, step }) => [peak.othersShare, step.othersShare]))
  return share === undefined ? [] : [noiseText(share)]
}

export const text = (results: OverloadResults): string =>
  [...Table.textLines(rows(results)), ...warnings(results)].join("\n  ")

export const markdown = (results: OverloadResults): string =>
  [Table.markdown(rows(results)), ...warnings(results)].join("\n\n")
