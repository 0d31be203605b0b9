/** The results as tables, for the terminal and as Markdown. */
import { median, type TailLatency } from "../load/Percentiles.ts"
import { figure, noiseText } from "../Report.ts"
import { noiseIn, type Round } from "../Results.ts"
import * as Table from "../Table.ts"
import type { GrownPair, GrowthResults } from "./GrowthResults.ts"

const MEGABYTE = 1_000_000

/** Returns the median of the ratios round by round. */
export const createsRatio = ({ starts }: GrowthResults): number =>
  median(starts.flat().map(({ empty, grown }) => grown.requestsPerSecond / empty.requestsPerSecond))

export const diskBytesPerObject = ({ objects, sizes }: GrowthResults): number =>
  sizes.reduce((sum, { indexBytes, rowBytes }) => sum + indexBytes + rowBytes, 0) / objects

export const verifySecondsPerMillion = ({ records, verifySeconds }: GrowthResults): number =>
  (verifySeconds / records) * 1_000_000

export const readySeconds = ({ restarts }: GrowthResults): number =>
  median(restarts.map(({ readyMillis }) => readyMillis)) / 1000

/** Returns the greater of two figures: after creating all objects, and after a start on them. */
export const residentBytes = ({ residentBytesFilled, residentBytesStarted }: GrowthResults): number | undefined =>
  residentBytesFilled === undefined ? undefined : Math.max(residentBytesFilled, residentBytesStarted ?? 0)

const accountsOf = ({ accounts }: GrowthResults): string =>
  accounts === 1 ? "the account" : `${figure(accounts)} accounts`

const creates = (results: GrowthResults) => {
  const pairs = results.starts.flat()
  const row = (name: string, side: keyof GrownPair) => {
    const of = (measure: keyof Round) => figure(median(pairs.map((pair) => pair[side][measure] ?? 0)))
    return [name, of("requestsPerSecond"), of("p50Millis"), of("p99Millis"), of("serverMicros"), of("postgresMicros")]
  }
  return [
    ["Creates, 64 connections", "creates/s", "p50 ms", "p99 ms", "CPU µs Till", "CPU µs Postgres"],
    row(`with ${figure(results.objects)} PaymentIntents in ${accountsOf(results)}`, "grown"),
    row("empty", "empty")
  ]
}

const reads = ({ list, retrieve }: GrowthResults) => {
  const row = (name: string, { p50Millis, p999Millis, p99Millis }: TailLatency) => [
    name,
    ...[p50Millis, p99Millis, p999Millis].map(figure)
  ]
  return [
    ["Reads of what is not in memory, one connection", "p50 ms", "p99 ms", "p99.9 ms"],
    row("retrieve a PaymentIntent", retrieve),
    row("list 10 PaymentIntents", list)
  ]
}

const others = (results: GrowthResults) => {
  const { residentBytesEmpty, residentBytesFilled, residentBytesStarted, restarts } = results
  const megabytes = (bytes: number | undefined) => (bytes === undefined ? "–" : `${figure(bytes / MEGABYTE)} MB`)
  const first = median(restarts.map(({ firstCreateMillis }) => firstCreateMillis))
  return [
    ["All else", ""],
    [
      "creates/s while they were made, first and last",
      [0, -1].map((i) => figure(results.fillPerSecond.at(i))).join(", ")
    ],
    ["memory (RSS) of the Till that has made them all", megabytes(residentBytesFilled)],
    ["memory of one that was started on them, after creates", megabytes(residentBytesStarted)],
    ["memory of one with an empty database, after as many creates", megabytes(residentBytesEmpty)],
    ["start after a kill, to the first good answer", `${figure(readySeconds(results))} s`],
    ["the first create after that", `${figure(first)} ms`],
    ["longest wait while one of two runners is stopped", `${figure(results.takeoverMillis)} ms`],
    ["`till verify`, per million records", `${figure(verifySecondsPerMillion(results))} s`]
  ]
}

const disk = (results: GrowthResults) => {
  const { objects, sizes } = results
  const row = (name: string, rowBytes: number, indexBytes: number) => [
    name,
    ...[rowBytes + indexBytes, rowBytes, indexBytes].map((bytes) => figure(bytes / objects))
  ]
  const sum = (part: "rowBytes" | "indexBytes") => sizes.reduce((sum, size) => sum + size[part], 0)
  return [
    ["Disk, bytes per PaymentIntent", "in all", "rows", "indexes"],
    ...sizes
      .filter(({ indexBytes, rowBytes }) => rowBytes + indexBytes >= objects)
      .map(({ indexBytes, rowBytes, table }) => row(table, rowBytes, indexBytes)),
    row("all tables", sum("rowBytes"), sum("indexBytes"))
  ]
}

const warnings = ({ starts }: GrowthResults): ReadonlyArray<string> => {
  const share = noiseIn(starts.flat().flatMap(({ empty, grown }) => [empty.othersShare, grown.othersShare]))
  return share === undefined ? [] : [noiseText(share)]
}

const tables = (results: GrowthResults) => [creates(results), reads(results), others(results), disk(results)]

export const text = (results: GrowthResults): string =>
  [...tables(results).map((rows) => Table.textLines(rows).join("\n  ")), ...warnings(results)].join("\n\n")

export const markdown = (results: GrowthResults): string =>
  [...tables(results).map((rows) => Table.markdown(rows)), ...warnings(results)].join("\n\n")
