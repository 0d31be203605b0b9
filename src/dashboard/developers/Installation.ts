/** Health of the installation (semantics dashboard.health), without other merchants' data. */
import { Clock, Effect } from "effect"
import { getHeapStatistics } from "node:v8"
import { RequestLog } from "../../engine/RequestLog.ts"
import type { Child } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import { MERCHANT } from "../../payments/merchants/Merchants.ts"
import { table } from "../frame/Table.ts"
import { badge, facts, section, time } from "../frame/Values.ts"
import { InstallationReports, type RunnerSeen, type StorageStanding } from "./InstallationReports.ts"
import { page, type Show } from "../frame/Page.ts"
import { listObjects } from "../frame/Queries.ts"

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"]

/** `1536` → `1.5 KiB`. */
const bytesOf = (bytes: number): string => {
  const power = bytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10))
  const number = bytes / 1024 ** power
  return `${power === 0 || number >= 100 ? Math.round(number) : number.toFixed(1)} ${UNITS[power]}`
}

const countOf = (count: number): string => (count === 0 ? "none" : count.toLocaleString("en"))

/** `93784` → `1 d 2 h`. */
const spanOf = (seconds: number): string => {
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [Math.floor(seconds) % 60, "s"]
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  return (first === -1 ? parts.slice(3) : parts.slice(first, first + 2)).map((part) => part.join(" ")).join(" ")
}

/** True if the installation has one merchant. Only then is the size of its database shown. */
const isAlone = Effect.map(listObjects(INSTALLATION, MERCHANT, { limit: 2 }), ({ rows }) => rows.length < 2)

const database = (standing: StorageStanding, millis: number, alone: boolean): Child =>
  facts([
    ["State", badge("available", "good")],
    ["Response time", `${Math.ceil(millis)} ms`],
    ["Postgres", standing.version],
    ["Size", alone ? bytesOf(standing.database_bytes) : null]
  ])

const journal = ({ lag_records, record_bytes, records }: StorageStanding): Child =>
  facts([
    ["Records", countOf(records)],
    ["Size", `about ${bytesOf(record_bytes)}`],
    ["Not yet indexed", countOf(lag_records)]
  ])

const webhooks = ({ due, due_since, pending }: StorageStanding, now: number): Child =>
  facts([
    ["Pending", countOf(pending)],
    ["Due now", countOf(due)],
    ["Oldest due", due_since === null ? null : `for ${spanOf(Math.max(0, now - due_since) / 1000)}`]
  ])

const stateOf = ({ healthy, leaving }: RunnerSeen): Child =>
  leaving ? badge("stopping", "wait") : healthy ? badge("running", "good") : badge("not responding", "bad")

const runnersTable = (runners: ReadonlyArray<RunnerSeen> | null): Child =>
  table({
    caption: "Processes of the installation",
    columns: [
      { name: "Runner", cell: ({ url }) => url },
      { name: "State", cell: stateOf },
      { name: "Partitions", align: "end", cell: ({ partitions }) => partitions.length },
      { name: "Till", cell: ({ version }) => version, wide: true },
      { name: "Started", cell: ({ since }) => time(Math.floor(since / 1000)) },
      { name: "Clock ahead", align: "end", cell: ({ clock_ahead_millis }) => `${clock_ahead_millis} ms`, wide: true }
    ],
    rows: runners ?? [],
    empty: runners === null ? "Unknown while the database is not responding." : "The installation has a single process."
  })

/** The summary badge: whether the database and all runners respond. */
const verdict = (standing: StorageStanding | null, runners: ReadonlyArray<RunnerSeen> | null): Child => {
  const isWell = standing !== null && runners?.every(({ healthy, leaving }) => healthy || leaving) === true
  return isWell ? badge("healthy", "good") : badge("not healthy", "bad")
}

const show: Show = Effect.fnUntraced(function* ({ account }) {
  const reports = yield* InstallationReports
  const log = yield* RequestLog
  const now = yield* Clock.currentTimeMillis
  const began = performance.now()
  const timed = Effect.map(reports.standing(account), (standing) => [standing, performance.now() - began] as const)
  const [[standing, millis], runners, alone] = yield* Effect.all(
    [
      Effect.orElseSucceed(timed, () => [null, 0] as const),
      Effect.orElseSucceed(reports.runners, () => null),
      Effect.orElseSucceed(isAlone, () => false)
    ],
    { concurrency: "unbounded" }
  )
  const { heapUsed, rss } = process.memoryUsage()
  return {
    title: "Installation",
    section: "Developers",
    back: ["/developers", "Developers"],
    live: ["event", "delivery"],
    aside: verdict(standing, runners),
    content: [
      section(
        "This process",
        facts([
          ["Till", reports.version],
          ["Node.js", process.version.slice(1)],
          ["Uptime", spanOf(process.uptime())],
          ["Memory", `${bytesOf(rss)}; heap ${bytesOf(heapUsed)} of ${bytesOf(getHeapStatistics().heap_size_limit)}`],
          ["Requests not logged", log.days === 0 ? "the log is off" : countOf(log.leftOut())]
        ])
      ),
      section(
        "Database",
        standing === null ? facts([["State", badge("not responding", "bad")]]) : database(standing, millis, alone)
      ),
      standing !== null && section("Journal of this environment", journal(standing)),
      standing !== null && section("Webhooks of this environment", webhooks(standing, now)),
      section("Runners", runnersTable(runners))
    ]
  }
})

export const layer = page("/developers/installation", "build", show)
