/**
 * Projection: the fold of records into rows of the views. Pure; the one definition of what the views hold.
 *
 * Several changes of one document within a batch become one row: only the last is ever looked at. What changes rows
 * that it does not name (a wipe, the end of a subscription, a moved clock) is folded in a batch of its own. Documents
 * that are known to be new stand apart: to insert their rows costs less than to look for older ones as well.
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
import type { SearchEntry } from "../log/Search.ts"
import { entryOf } from "../log/Search.ts"
import type { TallyEntry } from "../log/Tallies.ts"

/** Points to a document inside the journal. */
export interface DocumentRow {
  readonly account: AccountId
  readonly id: string
  readonly kind: string
  readonly version: number
  /** Its JSON text lies here in the record of its version; null for a tombstone. */
  readonly documentSpan: Span | null
  readonly hiddenSpan: Span | null
  readonly labels: Labels
  /** In which it was written: see `Formats.ts`. */
  readonly format: number
  /** Of the row and the texts that it points to; see `Checksum.ts`. */
  readonly checksum: Checksum.Checksum
}

/** A document's row as it is written; nobody reads the rest back but searches and verification. */
export interface ProjectedDocument extends DocumentRow {
  /** Null for a tombstone, and for documents that nobody searches. */
  readonly search: SearchEntry | null
  /** What it counts as; of a kind that counts, a tombstone counts as nothing. Null for all others. */
  readonly tallies: ReadonlyArray<TallyEntry> | null
}

/**
 * A record that has written a document, which a later one has written again. The newest record of a document is in its
 * own row: so what is new has no other, and costs nothing more.
 */
export interface RevisionRow {
  readonly account: AccountId
  /** Of the document. */
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
  /** Of all but the wall clock's time. */
  readonly checksum: Checksum.Checksum
}

/** A subscription says who gets which events. */
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
  /** Version of the record that holds the event. */
  readonly eventVersion: number
  /** Version of the record that made the delivery. */
  readonly version: number
  /** It was made at this time of the account's clock. */
  readonly at: Millis
  readonly state: DeliveryState
  readonly attempts: ReadonlyArray<Attempt>
  /** By the account's clock; null unless pending. */
  readonly nextAttemptAt: Millis | null
  /** The same by the wall clock. */
  readonly dueAt: Millis | null
}

/**
 * Moves a delivery that an earlier batch made, if it is pending and has had exactly `after` attempts: by one attempt,
 * or just nearer, whoever holds it.
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

/**
 * Points to the response to a request inside the journal. A key that is used again after its retention has a second
 * row.
 */
export interface KeyRow {
  readonly account: AccountId
  readonly key: string
  readonly version: number
  readonly at: Millis
}

/** A step carries an account on. */
export interface Step {
  readonly account: AccountId
  readonly from: number
  readonly to: number
  /** By how many seconds ids were ahead of their time on the way; see `Created.ts`. */
  readonly ahead: number
}

export interface Projection {
  /** From which version to which the rows carry each account. */
  readonly checkpoints: ReadonlyArray<Step>
  /** Documents that have no row yet. */
  readonly documentsCreated: ReadonlyArray<ProjectedDocument>
  /** All others; they may have a row. */
  readonly documentsChanged: ReadonlyArray<ProjectedDocument>
  /**
   * Records whose documents others of the same batch have written again. What the changed ones were before the batch
   * is a revision as well: their rows say which.
   */
  readonly revisions: ReadonlyArray<RevisionRow>
  readonly events: ReadonlyArray<EventRow>
  readonly timersSet: ReadonlyArray<TimerRow>
  readonly timersCleared: ReadonlyArray<{ readonly account: AccountId; readonly id: string }>
  readonly keys: ReadonlyArray<KeyRow>
  readonly subscriptionsSet: ReadonlyArray<SubscriptionRow>
  readonly deliveriesMade: ReadonlyArray<DeliveryRow>
  readonly deliverySteps: ReadonlyArray<DeliveryStep>
  /** Applies to all rows that were there before; null in nearly all projections. */
  readonly sweep: Sweep | null
}

/** A sweep says what a record does to rows that it does not name. */
export interface Sweep {
  readonly account: AccountId
  /** All rows of the account go. */
  readonly wiped: boolean
  /** Subscriptions that end; what is pending for them is canceled. */
  readonly unsubscribed: ReadonlyArray<string>
  /** The account's clock, if it was moved: how far it is ahead of the wall clock now. */
  readonly clock: Millis | null
}

const sweepOf = ({ account, advanced, clock, subscriptions, wiped }: JournalRecord): Sweep | null => {
  const unsubscribed = subscriptions.filter(({ types }) => types === null).map(({ destination }) => destination)
  if (!wiped && advanced === 0 && unsubscribed.length === 0) return null
  return { account, wiped, unsubscribed, clock: wiped || advanced > 0 ? clock : null }
}

/**
 * Cuts records into pieces that can be folded at once: a sweep stands alone, and so does a second step of a delivery.
 */
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

/** Folds records that make one piece, each account's in ascending order without a gap, into rows. */
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

/** How far ids are ahead after one account's step, if they were by `before`: of what was wiped none are left. */
export const aheadAfter = (before: number, { checkpoints, sweep }: Projection): number =>
  Math.max(sweep?.wiped === true ? 0 : before, ...checkpoints.map(({ ahead }) => ahead))

/** The newest rows of one account. */
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
      const row = { account, id, kind, version, documentSpan, hiddenSpan, labels, format }
      rows.set(id, {
        ...row,
        search: search ? entryOf(account, search) : null,
        tallies: change.tallies ?? null,
        checksum: Checksum.ofDocument(row, document, hidden)
      })
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

/** A delivery that is attempted in the batch that made it becomes one row. */
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

/** A delivery after a step; unchanged if the step is not its next. */
export const moved = (row: DeliveryRow, step: DeliveryStep): DeliveryRow => {
  if (row.state !== "pending" || row.attempts.length !== step.after) return row
  const { attempt, dueAt, nextAttemptAt, state } = step
  const attempts = attempt === null ? row.attempts : [...row.attempts, attempt]
  return { ...row, attempts, state, nextAttemptAt, dueAt }
}

/** The rows of an account by their ids; of some a sweep only needs to know that they are there. */
interface Tables extends Readonly<
  Record<"documents" | "revisions" | "events" | "keys" | "tallies", { readonly clear: () => void }>
> {
  readonly subscriptions: Map<string, unknown>
  readonly timers: Map<string, TimerRow>
  readonly deliveries: Map<string, DeliveryRow>
}

/** Carries a sweep out. */
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
