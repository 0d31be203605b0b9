/** The results as tables, for the terminal and as Markdown. */
import { figure, noiseText } from "../Report.ts"
import { noiseIn } from "../Results.ts"
import * as Table from "../Table.ts"
import {
  allMicros,
  capacityOf,
  costsOf,
  forwardingMicros,
  medianOf,
  ratioOf,
  ratiosByStart,
  roundsOf,
  runnersMicros
} from "./ClusterFigures.ts"
import { type ClusterResults, type ClusterRound, type SubjectName, SUBJECTS } from "./ClusterResults.ts"

const TITLES: Readonly<Record<SubjectName, string>> = {
  sole: "one process, without cluster",
  one: "1 runner",
  two: "2 runners",
  four: "4 runners",
  local: "to the runner that serves the account",
  forwarded: "to the other runner"
}

const percent = (share: number | undefined): string => (share === undefined ? "–" : `${figure(share * 100)} %`)

const creates = (results: ClusterResults) => {
  const row = (name: SubjectName) => {
    const of = (measure: (round: ClusterRound) => number | undefined) => medianOf(results, name, measure)
    return [
      TITLES[name],
      figure(of(({ requestsPerSecond }) => requestsPerSecond)),
      `${figure(ratioOf(results, [name, "one"], ({ requestsPerSecond }) => requestsPerSecond))} ×`,
      figure(of(({ p50Millis }) => p50Millis)),
      figure(of(({ p99Millis }) => p99Millis)),
      figure(of(runnersMicros)),
      figure(of(({ postgresMicros }) => postgresMicros)),
      figure(of(allMicros)),
      percent(of(({ forwardedShare }) => forwardedShare)),
      figure(of(({ logBytes }) => logBytes))
    ]
  }
  return [
    [
      `Creates in ${results.accounts} accounts, ${results.connections} connections`,
      "creates/s",
      "÷ 1 runner",
      "p50 ms",
      "p99 ms",
      "CPU µs Till",
      "CPU µs Postgres",
      "in all",
      "forwarded",
      "log bytes"
    ],
    ...(["sole", "one", "two", "four"] as const).map(row)
  ]
}

/** The first of the two runners serves all accounts of these loads; the second one forwards. */
const forwarding = (results: ClusterResults) => {
  const row = (name: SubjectName) => [
    TITLES[name],
    ...[0, 1].map((i) => figure(medianOf(results, name, ({ runnerMicros }) => runnerMicros?.[i]))),
    figure(medianOf(results, name, ({ postgresMicros }) => postgresMicros)),
    figure(medianOf(results, name, allMicros))
  ]
  return [
    ["A create on two runners, CPU µs", "owner", "forwarder", "Postgres", "in all"],
    row("local"),
    row("forwarded"),
    ["forwarding it takes", "", "", "", figure(forwardingMicros(results, allMicros))]
  ]
}

/** Numbers of cores in the estimate. */
const CORES = [4, 16, 64]

const capacities = (results: ClusterResults) => {
  const costs = costsOf(results)
  if (costs === undefined) return []
  return [
    ["Cores of all machines together", "runners", "forwarded", "creates/s", "cores of Postgres", "log MB/s"],
    ...CORES.map((cores) => {
      const one = capacityOf(cores, costs)
      return [
        String(cores),
        String(one.runners),
        percent(one.forwardedShare),
        figure(one.createsPerSecond),
        figure(one.postgresCores),
        figure(one.logBytesPerSecond / 1_000_000)
      ]
    })
  ]
}

export const ASSUMPTION =
  "Not measured, but reckoned from the CPU times above: as if a create cost each process the same however many there " +
  "are, no process ever waited, and no disk, network or lock were in the way. The load is on other machines, spread " +
  "evenly over the runners and over many accounts. What one Postgres' log and disk carry ends earlier."

const byStart = (results: ClusterResults): string => {
  const ratios = ratiosByStart(results, ["one", "sole"], allMicros).map((ratio) => ratio.toFixed(3))
  return `CPU of a cluster of one ÷ without cluster, by start: ${ratios.length === 0 ? "–" : ratios.join(" ")}`
}

const tables = (results: ClusterResults) =>
  [creates(results), forwarding(results), capacities(results)].filter(({ length }) => length > 0)

const noise = (results: ClusterResults): ReadonlyArray<string> => {
  const shares = SUBJECTS.flatMap((name) => roundsOf(results, name).map(({ othersShare }) => othersShare))
  const share = noiseIn(shares)
  return share === undefined ? [] : [noiseText(share)]
}

const notes = (results: ClusterResults) => [byStart(results), ASSUMPTION, ...noise(results)]

export const text = (results: ClusterResults): string =>
  [...tables(results).map((rows) => Table.textLines(rows).join("\n  ")), ...notes(results)].join("\n\n  ")

export const markdown = (results: ClusterResults): string =>
  [...tables(results).map(Table.markdown), ...notes(results)].join("\n\n")
