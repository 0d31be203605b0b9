/** A comparison as text: per scenario and measure both medians, the ratio with its interval, and the verdict. */
import { median } from "../load/Percentiles.ts"
import * as Report from "../Report.ts"
import { noiseIn, type Round } from "../Results.ts"
import * as Table from "../Table.ts"
import { intervalOf, verdictOf } from "./Bootstrap.ts"
import type { Compared, Pair, Side } from "./Comparison.ts"

interface Measure {
  readonly title: string
  readonly of: (round: Round) => number | undefined
  readonly better: "higher" | "lower"
}

const MEASURES: ReadonlyArray<Measure> = [
  { title: "requests/s", of: ({ requestsPerSecond }) => requestsPerSecond, better: "higher" },
  { title: "CPU µs server", of: ({ serverMicros }) => serverMicros, better: "lower" },
  { title: "CPU µs Postgres", of: ({ postgresMicros }) => postgresMicros, better: "lower" },
  { title: "p99 ms", of: ({ p99Millis }) => p99Millis, better: "lower" }
]

const decimals = (value: number): string => value.toFixed(3)

/** Returns both values of a pair; undefined if one is unknown or too small for the clock that measured it. */
const valuesOf = (pair: Pair, { of }: Measure): readonly [number, number] | undefined => {
  const [own, other] = [of(pair.own) ?? 0, of(pair.other) ?? 0]
  return own > 0 && other > 0 ? [own, other] : undefined
}

const row = ({ starts }: Compared, measure: Measure, seed: number): ReadonlyArray<string> => {
  const medianOf = (side: Side) =>
    Report.figure(median(starts.flatMap((pairs) => pairs.map((pair) => measure.of(pair[side]) ?? 0))))
  const ratios = starts.map((pairs) =>
    pairs.flatMap((pair) => {
      const values = valuesOf(pair, measure)
      return values === undefined ? [] : [values[0] / values[1]]
    })
  )
  if (ratios.some((ratios) => ratios.length === 0)) return [measure.title, "–", "–", "–", "–", "–", "–"]
  const interval = intervalOf(ratios, seed)
  return [
    measure.title,
    medianOf("own"),
    medianOf("other"),
    decimals(interval.ratio),
    `${decimals(interval.low)}–${decimals(interval.high)}`,
    verdictOf(interval, measure.better),
    ratios.map((ratios) => median(ratios).toFixed(2)).join(" ")
  ]
}

/** Formats one scenario for the terminal. `otherTitle` names the other version. */
export const scenarioText = (compared: Compared, otherTitle: string, seed: number): string => {
  const columns = ["", "this", otherTitle, "this ÷ other", "95 % interval", "this is", "by start"]
  const rounds = compared.starts.flat().flatMap(({ other, own }) => [own, other])
  const noise = noiseIn(rounds.map(({ othersShare }) => othersShare))
  return [
    Report.heading(compared.scenario),
    ...Table.textLines([columns, ...MEASURES.map((measure) => row(compared, measure, seed))]),
    ...(noise === undefined ? [] : [Report.noiseText(noise)])
  ].join("\n  ")
}

/** Returns a note on how to read the verdicts. */
export const caution = (scenarios: number): string => {
  const count = scenarios * MEASURES.length
  const byChance = Math.max(1, Math.round(count / 20))
  return (
    `Of ${count} intervals of 95 %, ${byChance} or so misses the truth by chance: ` +
    `a difference counts if a second run shows it too.`
  )
}
