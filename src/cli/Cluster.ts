/**
 * `till cluster` lists the runners of an installation with their partitions and their health (semantics
 * runners.partitions).
 */
import { Console, Effect } from "effect"
import * as app from "../app.ts"
import { columns, timeOf } from "./Columns.ts"

type Report = Effect.Success<typeof app.clusterReport>
type Runner = Report["runners"][number]

const LEASE_MILLIS = 6000

const stateOf = ({ confirmed_millis_ago, healthy, leaving }: Runner): string => {
  if (leaving) return "leaving"
  if (confirmed_millis_ago === null || confirmed_millis_ago > LEASE_MILLIS) return "gone"
  return healthy ? "serving" : "unhealthy"
}

const secondsOf = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

const runnerLines = ({ partitions, runners }: Report): ReadonlyArray<ReadonlyArray<string>> => [
  ["RUNNER", "STATE", "VERSION", "SINCE", "PARTITIONS", "LAG", "CONFIRMED", "CLOCK"],
  ...runners.map((runner) => [
    runner.url,
    stateOf(runner),
    runner.version,
    timeOf(runner.since / 1000),
    String(runner.partitions.length),
    String(partitions.reduce((sum, { lag_records, url }) => sum + (url === runner.url ? lag_records : 0), 0)),
    runner.confirmed_millis_ago === null ? "-" : `${secondsOf(runner.confirmed_millis_ago)} ago`,
    `${runner.clock_ahead_millis < 0 ? "" : "+"}${secondsOf(runner.clock_ahead_millis)}`
  ])
]

/** Formats ids as ranges: `0-3,7`. */
const rangesOf = (ids: ReadonlyArray<number>): string => {
  const ranges: Array<[number, number]> = []
  for (const id of ids) {
    const last = ranges.at(-1)
    if (last !== undefined && last[1] === id - 1) last[1] = id
    else ranges.push([id, id])
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",")
}

const textOf = (report: Report): string => {
  const { partitions, runners } = report
  if (runners.length === 0) return "No runners share this installation: a single process serves it, or none does."
  const served = new Set(runners.flatMap((runner) => runner.partitions))
  const moving = partitions.filter(({ id }) => !served.has(id)).map(({ id }) => id)
  const placed = [
    ...runners.map((runner) => [runner.url, rangesOf(runner.partitions)]),
    ...(moving.length === 0 ? [] : [["no runner", rangesOf(moving)]])
  ]
  return `${columns(runnerLines(report))}\n\n${columns([["RUNNER", "SERVES"], ...placed])}`
}

/** Prints the report on the runners, as a table or as JSON. */
export const cluster = (json: boolean) =>
  Effect.flatMap(app.clusterReport, (report) => Console.log(json ? JSON.stringify(report, null, 2) : textOf(report)))
