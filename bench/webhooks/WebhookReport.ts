/** The results as tables, for the terminal and as Markdown. */
import { median } from "../load/Percentiles.ts"
import { figure, noiseText } from "../Report.ts"
import { noiseIn } from "../Results.ts"
import * as Table from "../Table.ts"
import type { Distribution } from "./Figures.ts"
import { createsRatio } from "./WebhookGoals.ts"
import type { FanOut, Retries, Trial, WebhookResults } from "./WebhookResults.ts"

interface Section {
  readonly title: string
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
}

const trials = ({ half, idle, offered, offeredPerSecond, saturated }: WebhookResults): Section => {
  const row = (name: string, trial: Trial) => [
    name,
    figure(trial.requestsPerSecond),
    figure(trial.deliveriesPerSecond),
    ...[trial.fromSent.averageMillis, trial.fromSent.p50Millis, trial.fromSent.p95Millis].map(figure),
    ...[trial.fromSent.p99Millis, trial.fromSent.maxMillis, trial.fromAnswered.p50Millis].map(figure),
    figure(trial.serverMicros),
    figure(trial.postgresMicros)
  ]
  return {
    title: "Request → first byte at the endpoint (ms), one endpoint",
    rows: [
      "|creates/s|deliveries/s|average|p50|p95|p99|max|after the answer, p50|CPU µs Till|CPU µs Postgres".split("|"),
      row(`${figure(offeredPerSecond)} creates/s`, offered),
      row("64 connections, as many as go", saturated),
      row("half as many", half),
      row("one at a time, with pauses", idle)
    ]
  }
}

const fanOuts = ({ fanOut }: WebhookResults): Section => {
  const row = (line: FanOut) => {
    const { deliveriesPerSecond, endpoints, requestsPerSecond } = line
    return [
      endpoints === 1 ? "1 endpoint" : `${endpoints} endpoints`,
      figure(median(requestsPerSecond)),
      figure(createsRatio(fanOut, line)),
      deliveriesPerSecond.length === 0 ? "–" : figure(median(deliveriesPerSecond))
    ]
  }
  return {
    title: "What subscribed endpoints cost the creates (64 connections)",
    rows: [["", "creates/s", "× without", "deliveries/s"], ...fanOut.map(row)]
  }
}

const creates = (name: string, { maxMillis, p50Millis, p99Millis }: Distribution) => [
  name,
  ...[p50Millis, p99Millis, maxMillis].map(figure)
]

const retryRows = ({ createsMeanwhile, createsOtherwise, createsPerSecond }: Retries): Section => ({
  title: `Creates at ${createsPerSecond}/s after a start (ms)`,
  rows: [
    ["", "p50", "p99", "max"],
    creates("while the retries are delivered", createsMeanwhile),
    creates("with nothing due", createsOtherwise)
  ]
})

const retrySentence = ({ deliveredSeconds, deliveries, readySeconds, repeated }: Retries): string =>
  `${figure(deliveries)} retries due at the start: all delivered ${figure(deliveredSeconds)} s after it; ` +
  `Till answered ` +
  `after ${figure(readySeconds)} s. ${repeated} came twice because of the kill before.`

const sectionsOf = (results: WebhookResults): ReadonlyArray<Section> => [
  trials(results),
  fanOuts(results),
  ...(results.retries === undefined ? [] : [retryRows(results.retries)])
]

/** Returns a warning if other processes were busy during the run. */
const warnings = ({ half, idle, offered, saturated }: WebhookResults): ReadonlyArray<string> => {
  const share = noiseIn([half, idle, offered, saturated].map(({ othersShare }) => othersShare))
  return share === undefined ? [] : [noiseText(share)]
}

export const text = (results: WebhookResults): string =>
  [
    ...sectionsOf(results).map(({ rows, title }) => [title, ...Table.textLines(rows)].join("\n  ")),
    ...(results.retries === undefined ? [] : [retrySentence(results.retries)]),
    ...warnings(results)
  ].join("\n\n")

export const markdown = (results: WebhookResults): string =>
  [
    ...sectionsOf(results).map(({ rows, title }) => `**${title}**\n\n${Table.markdown(rows)}`),
    ...(results.retries === undefined ? [] : [retrySentence(results.retries)]),
    ...warnings(results)
  ].join("\n\n")
