/** The results as tables, for the terminal and as Markdown. */
import { figure, noiseText } from "../Report.ts"
import { noiseIn } from "../Results.ts"
import * as Table from "../Table.ts"
import { createsRatio } from "./LiveGoals.ts"
import type { Beside, Confirms, Killed, LiveResults, Outage, Waiting } from "./LiveResults.ts"

interface Section {
  readonly title: string
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
}

const confirms = ({ paced, pacedPerSecond, saturated }: LiveResults): Section => {
  const row = (name: string, { answer, postgresMicros, requestsPerSecond, serverMicros }: Confirms) => [
    name,
    figure(requestsPerSecond),
    ...[answer.p50Millis, answer.p99Millis, answer.maxMillis, serverMicros, postgresMicros].map(figure)
  ]
  return {
    title: "Payments through a gateway that answers at once",
    rows: [
      "|payments/s|p50 ms|p99 ms|max ms|CPU µs Till|CPU µs Postgres".split("|"),
      row("64 connections, as many as go", saturated),
      row(`${pacedPerSecond} a second`, paced)
    ]
  }
}

const besides = ({ beside, confirms, quiet: [before, after], waitMillis }: Waiting): Section => {
  const row = (name: string, { createsPerSecond, reads }: Beside) => [
    name,
    ...[reads.p50Millis, reads.p99Millis, createsPerSecond].map(figure)
  ]
  return {
    title: `${confirms} payments of one account that wait ${waitMillis / 1000} s for their gateway`,
    rows: [
      ["", "the account's reads, p50 ms", "p99 ms", "another merchant's creates/s"],
      row("before", before),
      row("while they wait", beside),
      row("afterwards", after)
    ]
  }
}

const waitingSentence = (waiting: Waiting): string => {
  const { confirms, grownBytes } = waiting
  const memory = grownBytes === undefined ? "" : `; Till's memory grew by ${figure(grownBytes / 1_000_000)} MB`
  return `The creates while ${confirms} wait ÷ those without: ${figure(createsRatio(waiting))}${memory}.`
}

const killedSentence = ({ open, readySeconds, resolvedSeconds }: Killed): string =>
  `kill -9 of Till with ${open} open operations: it was ready ${figure(readySeconds)} s after its start, and all were ` +
  `resolved ${figure(resolvedSeconds)} s later.`

const outageSentence = ({ goneSeconds, refusals, resolvedSeconds, unresolved }: Outage): string =>
  `The gateway was gone for ${figure(goneSeconds)} s with ${unresolved} unresolved operations: new payments were ` +
  `refused within ${figure(refusals.p99Millis)} ms (p99), and all were resolved ${figure(resolvedSeconds)} s after its ` +
  `return.`

const sentences = ({ killed, outage, waiting }: LiveResults): ReadonlyArray<string> => [
  waitingSentence(waiting),
  ...(killed === undefined ? [] : [killedSentence(killed)]),
  ...(outage === undefined ? [] : [outageSentence(outage)])
]

/** Returns a warning if other processes were busy during the run. */
const warnings = ({ paced, saturated }: LiveResults): ReadonlyArray<string> => {
  const share = noiseIn([paced, saturated].map(({ othersShare }) => othersShare))
  return share === undefined ? [] : [noiseText(share)]
}

const sectionsOf = (results: LiveResults): ReadonlyArray<Section> => [confirms(results), besides(results.waiting)]

export const text = (results: LiveResults): string =>
  [
    ...sectionsOf(results).map(({ rows, title }) => [title, ...Table.textLines(rows)].join("\n  ")),
    ...sentences(results),
    ...warnings(results)
  ].join("\n\n")

export const markdown = (results: LiveResults): string =>
  [
    ...sectionsOf(results).map(({ rows, title }) => `**${title}**\n\n${Table.markdown(rows)}`),
    ...sentences(results),
    ...warnings(results)
  ].join("\n\n")
