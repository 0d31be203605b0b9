/**
 * Projection: the fold of records into rows of the views. Pure; the only definition of the views' content.
 *
 * Several changes of one document within a batch become one row, with the last change. A record that changes rows it
 * does not name (a wipe, the end of a subscription, an advanced clock) is folded in a batch of its own. Documents known
 * to be new are listed apart: an insert costs less than an insert or update.
 */
import * as Checksum from "../log/Checksum.ts"
import { aheadOf } from "../log/Created.ts"
import type { AccountId, Labels, Millis } from "../log/Document.ts"
import type {
  Attempt,
  AttemptEntry,
  DeliveryEntry,
  DeliveryState,
  HastenedEntry,
  JournalRecord,
  SealedRecord,
  Span
} from "../log/Record.ts"
import { entryOf, type SearchEntry } from "../log/Search.ts"
import type { TallyEntry } from "../log/Tallies.ts"

/** Points to a document inside the journal. */
export interface DocumentRow {
  readonly account: AccountId
  readonly id: string
  readonly kind: string
  readonly version: number
  /** The position of its JSON text in the record of its version; null for a tombstone. */
  readonly documentSpan: Span | null
  readonly hiddenSpan: Span | null
  readonly labels: Labels
  /** The format that it was written in; see `DocumentFormats`. */
  readonly format: number
  /** The checksum of the row and the texts that it points to; see `Checksum.ts`. */
  readonly checksum: Checksum.Checksum
}

/** A document's row as it is written. Only searches and verification read the additional fields. */
export interface ProjectedDocument extends DocumentRow {
  /** Null for a tombstone, and for kinds without search. */
  readonly search: SearchEntry | null
  /** Empty for a tombstone; null for kinds without tallies. */
  readonly tallies: ReadonlyArray<TallyEntry> | null
}

/** A record that wrote a document which a later record has written again. A new document has none. */
export interface RevisionRow {
  readonly account: AccountId
  readonly id: string
  readonly version: number
}

/** Points to an event inside the journal. */
export interface EventRow {
  readonly account: AccountId
  readonly id: string
  readonly type: string
  readonly version: number
}

export interface TimerRow {
  readonly account: AccountId
  readonly id: string
  readonly name: string
  readonly version: number
  /** By the account's clock. */
  readonly dueAt: Millis
  /** By the wall clock. */
  readonly wakeAt: Millis
  /** The checksum of all fields except `wakeAt`. */
  readonly checksum: Checksum.Checksum
}

export interface SubscriptionRow {
  readonly account: AccountId
  readonly destination: string
  readonly types: ReadonlyArray<string>
  readonly version: number
  readonly checksum: Checksum.Checksum
}

export interface DeliveryRow {
  readonly account: AccountId
  readonly destination: string
  readonly id: string
  readonly event: string
  /** The version of the record that holds the event. */
  readonly eventVersion: number
  /** The version of the record that created the delivery. */
  readonly version: number
  /** When it was created, by the account's clock. */
  readonly at: Millis
  readonly state: DeliveryState
  readonly attempts: ReadonlyArray<Attempt>
  /** By the account's clock; null unless pending. */
  readonly nextAttemptAt: Millis | null
  /** The same by the wall clock. */
  readonly dueAt: Millis | null
}

/**
 * A change of a delivery that an earlier batch created. It applies if the delivery is pending and has had exactly
 * `after` attempts: it adds an attempt or, without one, makes the next one due earlier, also under another's lease.
 */
export interface DeliveryStep {
  readonly account: AccountId
  readonly destination: string
  readonly id: string
  readonly after: number
  readonly attempt: Attempt | null
  readonly state: DeliveryState
  readonly nextAttemptAt: Millis | null
  readonly dueAt: Millis | null
}

/** Points to a response to a request: an answer, or the wait for one. The newest row of a key is valid. */
export interface KeyRow {
  readonly account: AccountId
  readonly key: string
  readonly version: number
  readonly at: Millis
}

/** The range of versions that a projection carries an account through. */
export interface Step {
  readonly account: AccountId
  readonly from: number
  readonly to: number
  /** By how many seconds ids were ahead of their time in these versions, at most; see `Created.ts`. */
  readonly ahead: number
}

export interface Projection {
  readonly checkpoints: ReadonlyArray<Step>
  /** Documents that have no row yet. */
  readonly documentsCreated: ReadonlyArray<ProjectedDocument>
  /** All other documents; they may have a row. */
  readonly documentsChanged: ReadonlyArray<ProjectedDocument>
  /**
   * Records whose documents a later record of the same batch has written again. The previous version in the row of each
   * changed document becomes a revision too, which the storage adds.
   */
  readonly revisions: ReadonlyArray<RevisionRow>
  readonly events: ReadonlyArray<EventRow>
  readonly timersSet: ReadonlyArray<TimerRow>
  readonly timersCleared: ReadonlyArray<{ readonly account: AccountId; readonly id: string }>
  readonly keys: ReadonlyArray<KeyRow>
  readonly subscriptionsSet: ReadonlyArray<SubscriptionRow>
  readonly deliveriesMade: ReadonlyArray<DeliveryRow>
  readonly deliverySteps: ReadonlyArray<DeliveryStep>
  /** Applies to all earlier rows; null in nearly all projections. */
  readonly sweep: Sweep | null
}

/** A record's changes of rows that it does not name. */
export interface Sweep {
  readonly account: AccountId
  readonly wiped: boolean
  /** Destinations whose subscriptions end; their pending deliveries are canceled. */
  readonly unsubscribed: ReadonlyArray<string>
  /** How far the account's clock is ahead of the wall clock, in milliseconds; null if the record does not move it. */
  readonly clock: Millis | null
}

const sweepOf = ({ account, advanced, clock, subscriptions, wiped }: JournalRecord): Sweep | null => {
  if (!wiped && advanced === 0 && subscriptions.length === 0) return null
  const unsubscribed = subscriptions.filter(({ types }) => types === null).map(({ destination }) => destination)
  if (!wiped && advanced === 0 && unsubscribed.length === 0) return null
  return { account, wiped, unsubscribed, clock: wiped || advanced > 0 ? clock : null }
}

/** Cuts records into pieces: a sweep is one, and a second change of the same delivery begins one. */
export const piecesOf = (records: ReadonlyArray<SealedRecord>): ReadonlyArray<ReadonlyArray<SealedRecord>> => {
  const pieces: Array<Array<SealedRecord>> = []
  let piece: Array<SealedRecord> | undefined
  let stepped = new Set<string>()
  for (const record of records) {
    const isSweep = sweepOf(record) !== null
    const steps = [...record.attempts, ...record.hastened]
    if (piece === undefined || isSweep || steps.some(({ id }) => stepped.has(id))) {
      pieces.push((piece = []))
      stepped = new Set()
    }
    piece.push(record)
    for (const { id } of steps) stepped.add(id)
    if (isSweep) piece = undefined
  }
  return pieces
}

/** Folds the records of one piece into rows. Each account's records ascend without gaps. */
export const project = (records: ReadonlyArray<SealedRecord>): Projection => {
  const folds = new Map<AccountId, AccountFold>()
  const events: Array<EventRow> = []
  const deliveries = new DeliveryFold()
  let sweep: Sweep | null = null
  for (const record of records) {
    const { account, version } = record
    let fold = folds.get(account)
    if (fold === undefined) folds.set(account, (fold = new AccountFold(account, version - 1)))
    fold.add(record)
    for (const { id, type } of record.events) events.push({ account, id, type, version })
    deliveries.add(record)
    sweep = sweepOf(record)
  }
  const accounts = [...folds.values()]
  const [timersSet, timersCleared] = split(accounts.flatMap(({ timers }) => [...timers.values()]))
  return {
    checkpoints: accounts.map(({ account, ahead, from, to }) => ({ account, from, to, ahead })),
    documentsCreated: accounts.flatMap(({ created }) => [...created.values()]),
    documentsChanged: accounts.flatMap(({ changed }) => [...changed.values()]),
    revisions: accounts.flatMap(({ revisions }) => revisions),
    events,
    timersSet,
    timersCleared,
    keys: accounts.flatMap(({ keys }) => keys),
    subscriptionsSet: accounts.flatMap(({ subscriptions }) => [...subscriptions.values()]),
    deliveriesMade: deliveries.made,
    deliverySteps: deliveries.steps,
    sweep
  }
}

/** Returns how far an account's ids are ahead after a projection, in seconds; `before` counts unless it wipes. */
export const aheadAfter = (before: number, { checkpoints, sweep }: Projection): number =>
  Math.max(sweep?.wiped === true ? 0 : before, ...checkpoints.map(({ ahead }) => ahead))

class AccountFold {
  readonly created = new Map<string, ProjectedDocument>()
  readonly changed = new Map<string, ProjectedDocument>()
  readonly revisions: Array<RevisionRow> = []
  readonly timers = new Map<string, TimerRow | ClearedTimer>()
  readonly keys: Array<KeyRow> = []
  readonly subscriptions = new Map<string, SubscriptionRow>()
  readonly account: AccountId
  readonly from: number
  to: number
  ahead = 0

  constructor(account: AccountId, from: number) {
    this.account = account
    this.from = this.to = from
  }

  add(record: SealedRecord): void {
    const { at, changes, clock, ran = at, request, response, subscriptions, timers, version } = record
    const { account } = this
    this.to = version
    this.ahead = Math.max(this.ahead, aheadOf(record))
    for (const change of changes) {
      const { created, document, documentSpan, format, hidden, hiddenSpan, id, kind, labels, search } = change
      const rows = created || this.created.has(id) ? this.created : this.changed
      const earlier = rows.get(id)
      if (earlier !== undefined) this.revisions.push({ account, id, version: earlier.version })
      const row = {
        account,
        id,
        kind,
        version,
        documentSpan,
        hiddenSpan,
        labels,
        format,
        search: search ? entryOf(account, kind, search) : null,
        tallies: change.tallies ?? null,
        checksum: 0
      }
      row.checksum = Checksum.ofDocument(row, document, hidden)
      rows.set(id, row)
    }
    for (const { dueAt, id, name } of timers) {
      this.timers.set(
        id,
        dueAt === null ? { account, id, dueAt } : timerRow({ account, id, name, version, dueAt }, clock)
      )
    }
    if (response !== null && request?.idempotencyKey != null && request.fingerprint !== null) {
      this.keys.push({ account, key: request.idempotencyKey, version, at: ran })
    }
    for (const { destination, types } of subscriptions) {
      if (types === null) continue
      const row = { account, destination, types, version }
      this.subscriptions.set(destination, { ...row, checksum: Checksum.ofSubscription(row) })
    }
  }
}

const timerRow = (row: Omit<TimerRow, "wakeAt" | "checksum">, clock: Millis): TimerRow => {
  return { ...row, wakeAt: row.dueAt - clock, checksum: Checksum.ofTimer(row) }
}

interface ClearedTimer {
  readonly account: AccountId
  readonly id: string
  readonly dueAt: null
}

const split = (timers: Iterable<TimerRow | ClearedTimer>): [Array<TimerRow>, Array<ClearedTimer>] => {
  const set: Array<TimerRow> = []
  const cleared: Array<ClearedTimer> = []
  for (const timer of timers) {
    if (timer.dueAt === null) cleared.push(timer)
    else set.push(timer)
  }
  return [set, cleared]
}

/** Folds deliveries. A delivery that is attempted in the batch that created it becomes one row. */
class DeliveryFold {
  readonly steps: Array<DeliveryStep> = []
  readonly #made = new Map<string, DeliveryRow>()

  get made(): ReadonlyArray<DeliveryRow> {
    return [...this.#made.values()]
  }

  add(record: JournalRecord): void {
    for (const delivery of record.deliveries) {
      this.#made.set(`${record.account}/${delivery.id}`, newDelivery(record, delivery))
    }
    for (const entry of record.attempts) this.#move(stepOf(record, entry))
    for (const entry of record.hastened) this.#move(nearerOf(record, entry))
  }

  #move(step: DeliveryStep): void {
    const key = `${step.account}/${step.id}`
    const row = this.#made.get(key)
    if (row === undefined) this.steps.push(step)
    else this.#made.set(key, moved(row, step))
  }
}

const newDelivery = ({ account, at, clock, now, version }: JournalRecord, delivery: DeliveryEntry): DeliveryRow => ({
  account,
  destination: delivery.destination,
  id: delivery.id,
  event: delivery.event,
  eventVersion: delivery.eventVersion,
  version,
  at: now,
  state: "pending",
  attempts: [],
  nextAttemptAt: at + clock,
  dueAt: at
})

const stepOf = ({ account, clock }: JournalRecord, entry: AttemptEntry): DeliveryStep => {
  const { attempt, body, destination, durationMillis, error, id, nextAttemptAt, startedAt, state, status } = entry
  return {
    account,
    destination,
    id,
    after: attempt - 1,
    attempt: { attempt, startedAt, durationMillis, status, error, ...(body !== undefined && { body }) },
    state,
    nextAttemptAt,
    dueAt: nextAttemptAt === null ? null : nextAttemptAt - clock
  }
}

const nearerOf = ({ account, at, clock }: JournalRecord, entry: HastenedEntry): DeliveryStep => {
  const { attempt, destination, id } = entry
  const due = { nextAttemptAt: at + clock, dueAt: at }
  return { account, destination, id, after: attempt - 1, attempt: null, state: "pending", ...due }
}

/** Returns a delivery after a step; unchanged if the step does not apply. */
export const moved = (row: DeliveryRow, step: DeliveryStep): DeliveryRow => {
  if (row.state !== "pending" || row.attempts.length !== step.after) return row
  const { attempt, dueAt, nextAttemptAt, state } = step
  const attempts = attempt === null ? row.attempts : [...row.attempts, attempt]
  return { ...row, attempts, state, nextAttemptAt, dueAt }
}

interface Tables extends Readonly<
  Record<"documents" | "revisions" | "events" | "keys" | "tallies", { readonly clear: () => void }>
> {
  readonly subscriptions: Map<string, unknown>
  readonly timers: Map<string, TimerRow>
  readonly deliveries: Map<string, DeliveryRow>
}

export const sweepTables = (
  { deliveries, documents, events, keys, revisions, subscriptions, tallies, timers }: Tables,
  sweep: Sweep
): void => {
  const { clock, unsubscribed, wiped } = sweep
  const all = [deliveries, documents, events, keys, revisions, subscriptions, tallies, timers]
  if (wiped) for (const rows of all) rows.clear()
  for (const destination of unsubscribed) subscriptions.delete(destination)
  if (clock !== null) for (const [id, row] of timers) timers.set(id, { ...row, wakeAt: row.dueAt - clock })
  for (const [id, row] of deliveries) deliveries.set(id, swept(row, sweep))
}

const swept = (row: DeliveryRow, { clock, unsubscribed }: Sweep): DeliveryRow => {
  if (row.state !== "pending") return row
  if (unsubscribed.includes(row.destination)) return { ...row, state: "canceled", nextAttemptAt: null, dueAt: null }
  return clock === null ? row : { ...row, dueAt: row.nextAttemptAt! - clock }
}
