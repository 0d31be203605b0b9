/**
 * The operations of a command on its account. An account runs one command at a time, so nothing here needs a lock, and
 * nothing becomes visible before the command's record is in the journal.
 *
 * A command that succeeds commits all its changes as one record; a command that fails commits none. A failure that must
 * be kept (a declined card) is therefore returned as a value.
 */
import { Context, Effect } from "effect"
import {
  type AccountId,
  type Document,
  encode,
  formatOf,
  type Identified,
  type Kind,
  type Labels,
  type Millis,
  type Tombstone
} from "../log/Document.ts"
import type { EventVersionsShape } from "../log/Events.ts"
import { randomText } from "../log/Identifiers.ts"
import type { StorageFailure } from "../log/Journal.ts"
import {
  AS_SHOWN,
  type AttemptEntry,
  type AttemptOutcome,
  type Change,
  type DeliveryEntry,
  type Derived,
  derivedOf,
  derivedOfDeleted,
  derives,
  type Erased,
  type EventEntry,
  type HastenedEntry,
  NOTHING_DERIVED,
  type Released,
  type RequestIdentity,
  type StoredAnswer,
  type SubscriptionChange,
  type TimerChange
} from "../log/Record.ts"

export const EVENT_PREFIX = "evt"
export const DELIVERY_PREFIX = "whd"

/** Type in a subscription that stands for all types. */
const ALL_TYPES = "*"

export interface Transaction {
  readonly account: AccountId
  /** Time of the whole record by the account's clock: the command's start, or its timer's due time. */
  readonly now: Millis
  /** Start of the command by the wall clock, in milliseconds. */
  readonly startedAt: Millis
  /** Milliseconds by which the account's clock is ahead of the wall clock. */
  readonly clockOffset: Millis
  /** The HTTP request behind the command; null for a timer's. */
  readonly request: RequestIdentity | null

  /** Returns the document with this id, including this command's changes; undefined if there is none of this kind. */
  readonly get: <V extends Identified, H>(kind: Kind<V, H>, id: string) => Effect.Effect<Document<V, H> | undefined>

  /** Writes a document. Values are immutable: each change needs a new object. */
  readonly put: <V extends Identified, H>(
    kind: Kind<V, H>,
    value: V,
    ...hidden: undefined extends H ? [hidden?: H] : [hidden: H]
  ) => void

  /** Replaces a document by a tombstone. The command must have read or written the document before. */
  readonly delete: <V extends Identified, H>(kind: Kind<V, H>, id: string) => void

  /** Appends an event about a document as it is now, so before `delete`. `previous` has the old values. */
  readonly emit: (type: string, id: string, previous?: Readonly<Record<string, unknown>>) => void

  /** Sets (or moves) the timer with this id: at `dueAt` the account runs the handler of `name`. */
  readonly setTimer: (timer: { readonly id: string; readonly name: string; readonly dueAt: Millis }) => void

  readonly clearTimer: (id: string) => void

  /** Subscribes a destination to events of these types, `*` for all, from this command on. */
  readonly subscribe: (destination: string, types: ReadonlyArray<string>) => void

  /** Ends a destination's subscription, and cancels its pending deliveries. */
  readonly unsubscribe: (destination: string) => void

  readonly destinationsOf: (type: string) => ReadonlyArray<string>

  readonly deliver: (event: { readonly id: string; readonly version: number }, destination: string) => void

  /** Makes the next attempt of a pending delivery due now. */
  readonly hasten: (delivery: HastenedEntry) => void

  readonly attempted: (outcome: AttemptOutcome) => void

  /**
   * Answers an earlier request, whose idempotency key awaits this command's outcome, or releases its key. The command's
   * record names that request, and so do its events. The command itself must have no idempotency key.
   */
  readonly answer: (request: RequestIdentity, response: StoredAnswer | Released) => void

  /** Moves the account's clock ahead, `now` included: timers and deliveries are due sooner by that. */
  readonly advanceClock: (millis: Millis) => void

  /** Names records whose texts are replaced next (`Erasures.ts`). */
  readonly noteErased: (erased: Erased) => void

  /** Deletes everything in the account, and resets its clock. The command must not change anything else. */
  readonly wipe: () => void

  /** Makes an id: `prefix_` and 24 characters that ascend in order of creation (semantics responses.ids). */
  readonly newId: (prefix: string) => string

  /** Makes a secret of random base-62 characters from a CSPRNG. */
  readonly newSecret: (length: number) => string
}

export const Transaction: Context.Key<Transaction, Transaction> =
  Context.Service<Transaction>("till/engine/Transaction")

const NO_LABELS: Labels = {}
const NOTHING: ReadonlyArray<never> = []

/**
 * Returns the labels of a document. Postgres cannot store NUL or lone surrogates in text. One such label would stop the
 * projection of all accounts, so it must not get into a record.
 */
const labelsOf = <V extends Identified, H>(kind: Kind<V, H>, value: V): Labels => {
  if (kind.labels === undefined) return NO_LABELS
  const labels = kind.labels(value)
  for (const name in labels) {
    const label = labels[name]!
    if (label.includes("\0") || !label.isWellFormed()) throw new Error(`The label ${name} of ${value.id} is no text`)
  }
  return labels
}

/** The part of an account that its transactions use. */
export interface AccountState {
  readonly account: AccountId
  readonly version: number
  /** Milliseconds by which the account's clock is ahead of the wall clock. */
  readonly clockOffset: Millis
  /** Event types by destination. */
  readonly subscriptions: ReadonlyMap<string, ReadonlyArray<string>>
  readonly document: (id: string) => Effect.Effect<Document | Tombstone | undefined, StorageFailure>
  /** Makes the account's next id. Its counter follows the account's time, and always increases. */
  readonly nextId: (prefix: string, now: Millis) => string
}

export interface Moment {
  /** Time by the wall clock. */
  readonly at: Millis
  /** Time by the account's clock. */
  readonly now: Millis
}

/** The reads and writes of a running command. Its account commits or drops them. */
export class ActiveTransaction implements Transaction {
  readonly account: AccountId
  readonly request: RequestIdentity | null
  readonly events: Array<EventEntry> = []
  readonly attempts: Array<AttemptEntry> = []
  readonly hastened: Array<HastenedEntry> = []
  /** Start of the command by the wall clock. */
  readonly startedAt: Millis
  now: Millis
  clockOffset: Millis
  advanced: Millis = 0
  wiped = false
  /** API version in which the events are rendered, set after the command has emitted some. */
  apiVersion: string | null = null
  /** The earlier request that the command answers. */
  answered: { readonly request: RequestIdentity; readonly response: StoredAnswer | Released } | null = null
  /** The records whose texts are replaced next. */
  erased: Erased | undefined
  readonly #state: AccountState
  readonly #version: number
  /** Documents read or written, in their present state. */
  readonly #seen = new Map<string, Document | Tombstone>()
  readonly #written: Array<Document | Tombstone> = []
  /** Search terms and tallies of the documents written, computed only for each document's last state. */
  #derived: Map<string, () => Derived> | undefined
  readonly #newIds: Array<string> = []
  #timers: Map<string, TimerChange> | undefined
  readonly #deliveries: Array<DeliveryEntry> = []
  #subscriptions: Map<string, SubscriptionChange> | undefined

  constructor(state: AccountState, { at, now }: Moment, request: RequestIdentity | null) {
    this.#state = state
    this.#version = state.version + 1
    this.account = state.account
    this.startedAt = at
    this.now = now
    this.clockOffset = state.clockOffset
    this.request = request
  }

  get<V extends Identified, H>(kind: Kind<V, H>, id: string): Effect.Effect<Document<V, H> | undefined> {
    const ofKind = (entry: Document | Tombstone | undefined): Document<V, H> | undefined =>
      entry === undefined || entry.deleted || entry.kind !== kind.name ? undefined : (entry as Document<V, H>)
    const seen = this.#seen.get(id)
    if (seen !== undefined) return Effect.succeed(ofKind(seen))
    const load = Effect.map(this.#state.document(id), (entry) => {
      if (entry !== undefined) this.#seen.set(id, entry)
      return ofKind(entry)
    })
    return Effect.orDie(load)
  }

  put<V extends Identified, H>(kind: Kind<V, H>, value: V, hidden?: H): void {
    if (derives(kind)) (this.#derived ??= new Map()).set(value.id, () => derivedOf(kind, value))
    this.#write({
      id: value.id,
      kind: kind.name,
      version: this.#version,
      format: formatOf(kind),
      deleted: false,
      value,
      hidden,
      labels: labelsOf(kind, value),
      json: encode(value)
    })
  }

  delete<V extends Identified, H>(kind: Kind<V, H>, id: string): void {
    this.#known(id)
    if (derives(kind)) (this.#derived ??= new Map()).set(id, () => derivedOfDeleted(kind))
    this.#write({ id, kind: kind.name, version: this.#version, deleted: true })
  }

  emit(type: string, id: string, previous?: Readonly<Record<string, unknown>>): void {
    const { format, json } = this.#known(id)
    this.events.push({ id: this.#nextId(EVENT_PREFIX), type, object: json, format, previous: previous ?? null })
  }

  /** Renders the command's events in a version of the API, which they keep. */
  showEventsIn(version: string, shownIn: EventVersionsShape["shownIn"]): void {
    this.apiVersion = version
    for (const [i, event] of this.events.entries()) {
      const shown = shownIn(version, event)
      if (shown !== event) this.events[i] = { ...event, ...shown, format: AS_SHOWN }
    }
  }

  setTimer(timer: { readonly id: string; readonly name: string; readonly dueAt: Millis }): void {
    ;(this.#timers ??= new Map()).set(timer.id, { id: timer.id, name: timer.name, dueAt: timer.dueAt })
  }

  clearTimer(id: string): void {
    ;(this.#timers ??= new Map()).set(id, { id, name: "", dueAt: null })
  }

  subscribe(destination: string, types: ReadonlyArray<string>): void {
    ;(this.#subscriptions ??= new Map()).set(destination, { destination, types })
  }

  unsubscribe(destination: string): void {
    ;(this.#subscriptions ??= new Map()).set(destination, { destination, types: null })
  }

  destinationsOf(type: string): ReadonlyArray<string> {
    const wants = (types: ReadonlyArray<string> | null) =>
      types !== null && (types.includes(type) || types.includes(ALL_TYPES))
    const destinations: Array<string> = []
    for (const [destination, types] of this.#state.subscriptions) {
      if (this.#subscriptions?.has(destination) !== true && wants(types)) destinations.push(destination)
    }
    for (const { destination, types } of this.subscriptionChanges()) if (wants(types)) destinations.push(destination)
    return destinations
  }

  deliver(event: { readonly id: string; readonly version: number }, destination: string): void {
    this.#deliveries.push({
      id: this.#nextId(DELIVERY_PREFIX),
      destination,
      event: event.id,
      eventVersion: event.version
    })
  }

  hasten({ attempt, destination, id }: HastenedEntry): void {
    // A first attempt is due at once in any case.
    if (attempt > 1) this.hastened.push({ id, destination, attempt })
  }

  attempted({ next, startedAt, ...outcome }: AttemptOutcome): void {
    const endedAt = startedAt + outcome.durationMillis + this.clockOffset
    this.attempts.push({
      ...outcome,
      startedAt: startedAt + this.clockOffset,
      state: typeof next === "string" ? next : "pending",
      nextAttemptAt: typeof next === "string" ? null : endedAt + next.retryAfterMillis
    })
  }

  answer(request: RequestIdentity, response: StoredAnswer | Released): void {
    if (this.request !== null && this.request.idempotencyKey !== null) {
      throw new Error("A command with an idempotency key of its own answered another request")
    }
    this.answered = { request, response }
  }

  advanceClock(millis: Millis): void {
    this.now += millis
    this.clockOffset += millis
    this.advanced += millis
  }

  noteErased(erased: Erased): void {
    this.erased = erased
  }

  wipe(): void {
    this.wiped = true
    this.now = this.startedAt
    this.clockOffset = 0
  }

  newId(prefix: string): string {
    const id = this.#nextId(prefix)
    this.#newIds.push(id)
    return id
  }

  newSecret(length: number): string {
    return randomText(length)
  }

  get touched(): boolean {
    return this.#hasChanges || this.wiped
  }

  get #hasChanges(): boolean {
    return (
      this.#written.length > 0 ||
      this.events.length > 0 ||
      this.#timers !== undefined ||
      this.#subscriptions !== undefined ||
      this.#deliveries.length > 0 ||
      this.attempts.length > 0 ||
      this.hastened.length > 0 ||
      this.answered !== null ||
      this.erased !== undefined ||
      this.advanced > 0
    )
  }

  /** Dies if the command wipes the account and changes it too: the order of both would be unclear. */
  requireConsistent(): void {
    if (this.wiped && this.#hasChanges) throw new Error("A command that wipes an account did something else as well")
  }

  subscriptionChanges(): ReadonlyArray<SubscriptionChange> {
    return this.#subscriptions === undefined ? NOTHING : [...this.#subscriptions.values()]
  }

  /** All deliveries: those made by `deliver`, and one of each event to each destination subscribed to its type. */
  deliveries(): ReadonlyArray<DeliveryEntry> {
    if (this.#state.subscriptions.size === 0 && this.#subscriptions === undefined) return this.#deliveries
    for (const { id, type } of this.events) {
      for (const destination of this.destinationsOf(type)) this.deliver({ id, version: this.#version }, destination)
    }
    return this.#deliveries
  }

  changes(): ReadonlyArray<Change> {
    return this.#written.map((entry) =>
      changeOf(entry, this.#newIds.includes(entry.id), this.#derived?.get(entry.id)?.() ?? NOTHING_DERIVED)
    )
  }

  timerChanges(): ReadonlyArray<TimerChange> {
    return this.#timers === undefined ? NOTHING : [...this.#timers.values()]
  }

  #nextId(prefix: string): string {
    return this.#state.nextId(prefix, this.now)
  }

  #write(entry: Document | Tombstone): void {
    const before = this.#seen.get(entry.id)
    const place = before === undefined ? -1 : this.#written.indexOf(before)
    if (place === -1) this.#written.push(entry)
    else this.#written[place] = entry
    this.#seen.set(entry.id, entry)
  }

  /** Returns a document that was read or written; dies otherwise, so that a bug in a lifecycle commits nothing. */
  #known(id: string): Document {
    const entry = this.#seen.get(id)
    if (entry === undefined || entry.deleted) throw new Error(`${id} was not read or written in this command`)
    return entry
  }
}

const changeOf = (entry: Document | Tombstone, created: boolean, { search, tallies }: Derived): Change => {
  const { id, kind } = entry
  if (entry.deleted) {
    return { id, kind, document: null, hidden: null, labels: NO_LABELS, format: 1, created, search, tallies }
  }
  const { format, json, labels } = entry
  return { id, kind, document: json, hidden: hiddenText(entry), labels, format, created, search, tallies }
}

const hiddenText = ({ hidden }: Document): string | null => (hidden === undefined ? null : encode(hidden as object))
