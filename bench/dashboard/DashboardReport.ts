/** The results as tables, for the terminal and as Markdown. */
import { median } from "../load/Percentiles.ts"
import { figure } from "../Report.ts"
import * as Table from "../Table.ts"
import { ratioOf, ratioOfStarts } from "./DashboardGoals.ts"
import type { CreatesPair, DashboardResults } from "./DashboardResults.ts"

const pages = ({ loadsAtOnce, pages, payments }: DashboardResults) => [
  [
    `Pages of an account with ${payments.toLocaleString("en")} payments`,
    "p50 ms",
    "p95 ms",
    "max ms",
    "CPU ms Till",
    "CPU ms Postgres",
    `p50 ms, ${loadsAtOnce} at once`,
    `p95 ms, ${loadsAtOnce} at once`
  ],
  ...pages.map(({ alone, atOnce, postgresMillis, serverMillis, title }) => [
    title,
    figure(alone.p50Millis),
    figure(alone.p95Millis),
    figure(alone.maxMillis),
    figure(serverMillis),
    figure(postgresMillis),
    figure(atOnce.p50Millis),
    figure(atOnce.p95Millis)
  ])
]

const creates = ({ live, openPages, requestLog }: DashboardResults) => {
  const row = (title: string, pairs: ReadonlyArray<CreatesPair>, ratio: number) => [
    title,
    figure(median(pairs.map((pair) => pair.with))),
    figure(median(pairs.map((pair) => pair.without))),
    `${figure(ratio)} ×`
  ]
  return [
    ["Creates per second, 64 connections", "with", "without", "with ÷ without"],
    row(`${openPages} open pages`, live, ratioOf(live)),
    row("the log of requests", requestLog.flat(), ratioOfStarts(requestLog))
  ]
}

const notes = ({ loadsPerSecond, openPages, requestLog, residentBytes }: DashboardResults): string => {
  const starts = `Ratios with the log by start: ${requestLog.map((pairs) => figure(ratioOf(pairs))).join(", ")}.`
  const loads = `${openPages} open pages loaded themselves ${figure(loadsPerSecond)} times a second in all. ${starts}`
  if (residentBytes === undefined) return loads
  const { open, without } = residentBytes
  const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`
  return `${loads} Till's memory under creates: ${mebibytes(open)} with them, ${mebibytes(without)} without.`
}

export const text = (results: DashboardResults): string =>
  [...[pages(results), creates(results)].map((rows) => Table.textLines(rows).join("\n")), notes(results)].join("\n\n")

export const markdown = (results: DashboardResults): string =>
  [...[pages(results), creates(results)].map(Table.markdown), notes(results)].join("\n\n")
