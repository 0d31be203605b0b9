/**
 * Rows of the views as texts, for verification: two rows are equal exactly if their texts are. Ids and accounts are
 * compared elsewhere.
 *
 * The texts are joined from arrays: concatenated strings keep their parts in memory.
 */
import { labelsText } from "../log/Checksum.ts"
import type {
  DeliveryRow,
  EventRow,
  KeyRow,
  ProjectedDocument,
  RevisionRow,
  SubscriptionRow,
  TimerRow
} from "./Projection.ts"
import type { Attempt, Span } from "../log/Record.ts"
import { entriesText, type TallyRow } from "../log/Tallies.ts"

const documents = (row: ProjectedDocument): string => {
  const { checksum, documentSpan, format, hiddenSpan, kind, labels, search, tallies, version } = row
  const found = search === null ? "" : `${search.measure} ${search.terms.join()}`
  const spans = `${span(documentSpan)}|${span(hiddenSpan)}`
  return [kind, version, spans, labelsText(labels), format, found, entriesText(tallies), checksum].join("|")
}

const revisions = ({ version }: RevisionRow): string => String(version)

const events = ({ version }: EventRow): string => String(version)

const timers = ({ checksum, dueAt, name, version, wakeAt }: TimerRow): string =>
  JSON.stringify([name, version, dueAt, wakeAt, checksum])

const keys = ({ at, key, version }: KeyRow): string => [at, version, key].join(" ")

const subscriptions = ({ checksum, types, version }: SubscriptionRow): string =>
  JSON.stringify([version, types, checksum])

const deliveries = (row: DeliveryRow): string => {
  const { at, attempts, dueAt, event, eventVersion, nextAttemptAt, state, version } = row
  return JSON.stringify([event, eventVersion, version, at, state, attempts.map(attempt), nextAttemptAt, dueAt])
}

const tallies = ({ amount, count }: Pick<TallyRow, "count" | "amount">): string => `${count} ${amount}`

const attempt = ({ attempt, body, durationMillis, error, startedAt, status }: Attempt) => [
  attempt,
  startedAt,
  durationMillis,
  status,
  error,
  ...(body === undefined ? [] : [body])
]

const span = (place: Span | null): string => (place === null ? "" : `${place.at}+${place.length}`)

export const rowText = { documents, revisions, events, timers, keys, subscriptions, deliveries, tallies }
