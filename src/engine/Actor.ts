/**
 * The actor of one account: a bounded mailbox that one fiber drains, and the account's newest state in memory.
 *
 * Interleavings that matter, and what becomes of them:
 * - The actor does not wait for the flush of a record; it goes on with the next command on the new state. So memory
 *   may be ahead of the log, but no answer is: every answer, a refusal too, waits until all that its command has seen
 *   is durable.
 * - A flush fails. Everything later in this actor stands on records that may not exist: the actor closes, its commands
 *   get `Closed`, and the account starts anew from the log. Nothing of a closed actor ever reaches the journal.
 * - A command is still running while its actor closes: its outcome is dropped, and it gets `Closed` as well.
 * - A caller goes away while its command waits or runs: the command is carried out all the same.
 */
import { Cause, Deferred, Effect, Exit, Queue } from "effect"
import type { AccountId, Document, Millis, Tombstone } from "./Document.ts"
import { stored, weightOf } from "./Document.ts"
import { EntryCache } from "./EntryCache.ts"
import { nextSequence } from "./Identifiers.ts"
import { StorageFailure } from "./Journal.ts"
import { KeyFilter } from "./KeyFilter.ts"
import type { JournalRecord, RequestIdentity, Sealed, StoredResponse } from "./Record.ts"
import { seal } from "./Record.ts"
import { ActiveTransaction, Transaction } from "./Transaction.ts"
import { MailboxFull, WaitingRoom } from "./WaitingRoom.ts"

/** Why an actor stopped: it lost the account to another owner, the log failed, or it was idle. */
export type ClosedReason = "fenced" | "failed" | "passivated"

/** The actor stopped before the command was durable. After `failed` it may have happened, or not. */
export class Closed {
  readonly _tag = "Closed"
  readonly reason: ClosedReason
  constructor(reason: ClosedReason) {
    this.reason = reason
  }

  toString(): string {
    return `the account's actor has ended (${this.reason})`
  }
}

/** Responses in memory beyond those not projected yet, in bytes: repetitions come soon or hardly ever. */
const KEYS_BYTES_MAX = 1_048_576
/** What a key takes up beside its response, in bytes. */
const KEY_BYTES = 500
const TIMER_BYTES = 200
/** Of what an actor may keep; all else is for documents, which are what is asked for most. */
const TIMERS_PART = 1 / 8
const KEYS_PART = 1 / 16

/** Where an account stands in the log. */
export interface Head {
  readonly version: number
  readonly hash: string
  readonly sequence: number
  /** How far the account's clock is ahead of the wall clock. */
  readonly clock: Millis
  /** The version that the views have reached. */
  readonly projected: number
}

/** What an actor starts with. */
export interface Start {
  readonly head: Head
  readonly subscriptions: ReadonlyArray<{ readonly destination: string; readonly types: ReadonlyArray<string> }>
}

export interface TimerState {
  readonly version: number
  readonly name: string
  /** Null once cleared. */
  readonly dueAt: Millis | null
}

/** What is known of an idempotency key: where its response lies in the journal, and the response if it is at hand. */
export interface KeyState {
  readonly version: number
  readonly fingerprint: string
  readonly at: Millis
  readonly request: RequestIdentity | null
  readonly response: StoredResponse | null
}

export interface Command<A, E> {
  readonly program: Effect.Effect<A, E, Transaction>
  readonly request: RequestIdentity | null
  /** What to keep for repetitions of the request, if anything. */
  readonly responseOf: (exit: Exit.Exit<A, E>) => StoredResponse | null
}

interface Mail extends Command<unknown, unknown> {
  readonly reply: Deferred.Deferred<unknown, unknown>
}

/** What an actor needs from the rest of the engine. */
export interface Surroundings {
  readonly clock: { readonly currentTimeMillisUnsafe: () => Millis }
  /** Commands, and reads of what is not in memory, that may wait for an answer, per account. */
  readonly mailboxCapacity: number
  /** How much an actor may keep in memory, beyond what it must, in bytes. */
  readonly cacheShare: (actor: Actor) => number
  readonly loadDocument: (
    account: AccountId,
    id: string
  ) => Effect.Effect<Document | Tombstone | undefined, StorageFailure>
  readonly loadTimer: (account: AccountId, id: string) => Effect.Effect<TimerState | undefined, StorageFailure>
  /** Ends an actor that does not know the newest state: somebody else has written to its account, or it has died. */
  readonly lose: (actor: Actor, reason: "fenced" | "failed") => void
  /** Queues a record for the next flush, behind all earlier ones. */
  readonly append: (actor: Actor, sealed: Sealed, settle: (exit: Exit.Exit<void, Closed>) => void) => void
}

interface Waiter {
  readonly version: number
  readonly settle: (exit: Exit.Exit<void, Closed>) => void
}

const NOTHING: ReadonlyArray<never> = []

const durableNow: Exit.Exit<void, Closed> = Exit.void

export class Actor {
  readonly account: AccountId
  readonly documents: EntryCache<Document | Tombstone, StorageFailure>
  readonly timers: EntryCache<TimerState, StorageFailure>
  readonly keys: EntryCache<KeyState, StorageFailure | MailboxFull>
  readonly usedKeys: KeyFilter
  /** Event types by destination. */
  readonly subscriptions: Map<string, ReadonlyArray<string>>
  /** How far the account's clock is ahead of the wall clock. */
  clockOffset: Millis
  /** Version of the newest record, durable or not. */
  version: number
  /** Version up to which the journal has the account. */
  durable: number
  /** Version up to which the views have it. */
  projected: number
  closed: Closed | null = null
  lastUsed: Millis
  #hash: string
  #sequence: number
  /** Version of the newest record that has made the account forget; older rows of the views do not count any more. */
  #forgottenAt = 0
  #durableWaiters: Array<Waiter> = []
  #projectedWaiters: Array<Waiter> = []
  readonly #mailbox: Queue.Queue<Mail>
  /** Commands that have no answer yet, and reads. */
  readonly #waiting: WaitingRoom
  readonly #surroundings: Surroundings

  constructor(
    account: AccountId,
    { head, subscriptions }: Start,
    mailbox: Queue.Queue<Mail>,
    surroundings: Surroundings
  ) {
    this.account = account
    this.subscriptions = new Map(subscriptions.map(({ destination, types }) => [destination, types]))
    this.clockOffset = head.clock
    this.version = this.durable = head.version
    this.projected = head.projected
    this.#hash = head.hash
    this.#sequence = head.sequence
    this.lastUsed = surroundings.clock.currentTimeMillisUnsafe()
    this.usedKeys = new KeyFilter(this.lastUsed)
    this.#mailbox = mailbox
    this.#waiting = new WaitingRoom(surroundings.mailboxCapacity)
    this.#surroundings = surroundings
    const projected = () => this.projected
    const part = (of: number) => surroundings.cacheShare(this) * of
    this.documents = new EntryCache({ weightOf, projected, capacity: () => part(1 - TIMERS_PART - KEYS_PART) })
    this.timers = new EntryCache({ weightOf: () => TIMER_BYTES, projected, capacity: () => part(TIMERS_PART) })
    this.keys = new EntryCache({
      weightOf: ({ response }) => KEY_BYTES + (response?.body.length ?? 0),
      projected,
      capacity: () => Math.min(KEYS_BYTES_MAX, part(KEYS_PART))
    })
  }

  static make(account: AccountId, start: Start, surroundings: Surroundings): Effect.Effect<Actor> {
    return Effect.map(Queue.unbounded<Mail>(), (mailbox) => new Actor(account, start, mailbox, surroundings))
  }

  /** Drains the mailbox, one command after the other, until the actor closes. Dies of what no command can be blamed for. */
  get run(): Effect.Effect<never> {
    return Effect.forever(
      Effect.flatMap(Queue.take(this.#mailbox), (mail) => this.#perform(mail))
    ) as Effect.Effect<never>
  }

  /** Nobody waits for it, and the views have all it knows. */
  get idle(): boolean {
    return this.#waiting.isEmpty && this.projected === this.version
  }

  /** About how many bytes it takes up. */
  get weight(): number {
    return this.documents.weight + this.timers.weight + this.keys.weight
  }

  /** Puts a command into the mailbox and waits for its answer. Commands run in the order of their submission. */
  submit<A, E>(command: Command<A, E>): Effect.Effect<A, E | Closed | MailboxFull> {
    return Effect.suspend((): Effect.Effect<A, E | Closed | MailboxFull> => {
      if (this.closed !== null) return Effect.fail(this.closed)
      if (!this.#waiting.enter()) return Effect.fail(new MailboxFull())
      this.lastUsed = this.#surroundings.clock.currentTimeMillisUnsafe()
      const reply = Deferred.makeUnsafe<unknown, unknown>()
      const { program, request, responseOf } = command as Command<unknown, unknown>
      Queue.offerUnsafe(this.#mailbox, { program, request, responseOf, reply })
      return Deferred.await(reply) as Effect.Effect<A, E | Closed>
    })
  }

  /** Waits for the storage beside the mailbox, and counts with what waits in it. */
  reading<A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E | MailboxFull> {
    return this.#waiting.during(read)
  }

  /** The document, if it is in memory and the journal has it. */
  durableDocument(id: string): Document | Tombstone | undefined {
    const known = this.documents.get(id)
    return known !== undefined && known.version <= this.durable ? known : undefined
  }

  /** The document for this actor's own commands: the newest state, durable or not. */
  document(id: string): Effect.Effect<Document | Tombstone | undefined, StorageFailure> {
    return this.documents.load(id, this.#own(this.remembered(this.#surroundings.loadDocument(this.account, id))))
  }

  /** The timer as the newest record left it. */
  timer(id: string): Effect.Effect<TimerState | undefined, StorageFailure> {
    return this.timers.load(id, this.#own(this.remembered(this.#surroundings.loadTimer(this.account, id))))
  }

  /** What was read; if this actor's account had no such version yet, the actor is not its only owner any more. */
  #own<Entry extends { readonly version: number }>(
    read: Effect.Effect<Entry | undefined, StorageFailure>
  ): Effect.Effect<Entry | undefined, StorageFailure> {
    return Effect.flatMap(read, (entry) => {
      if (entry === undefined || entry.version <= this.version) return Effect.succeed(entry)
      this.#surroundings.lose(this, "fenced")
      return Effect.fail(new StorageFailure({ cause: this.closed }))
    })
  }

  /** Reads the views once they have forgotten what the account has. */
  remembered<A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E | StorageFailure> {
    if (this.#forgottenAt <= this.projected) return read
    const forgotten = Effect.mapError(this.whenProjected(this.#forgottenAt), (cause) => new StorageFailure({ cause }))
    return Effect.andThen(forgotten, read)
  }

  nextSequence(now: Millis): number {
    return (this.#sequence = nextSequence(this.#sequence, now))
  }

  /** Waits until the journal has a version. */
  whenDurable(version: number): Effect.Effect<void, Closed> {
    return this.#when(version, () => this.durable, this.#durableWaiters)
  }

  /** Waits until the views have a version. */
  whenProjected(version: number): Effect.Effect<void, Closed> {
    return this.#when(version, () => this.projected, this.#projectedWaiters)
  }

  markDurable(version: number): void {
    this.durable = version
    settleUpTo(version, this.#durableWaiters)
  }

  markProjected(version: number): void {
    if (version <= this.projected) return
    this.projected = version
    this.documents.trim()
    this.timers.trim()
    this.keys.trim()
    settleUpTo(version, this.#projectedWaiters)
  }

  /** Stops for good. Whoever waits learns why. */
  close(reason: ClosedReason): void {
    if (this.closed !== null) return
    const failure = Exit.fail((this.closed = new Closed(reason)))
    for (const waiter of [...this.#durableWaiters.splice(0), ...this.#projectedWaiters.splice(0)]) {
      waiter.settle(failure)
    }
    for (let mail = Queue.takeUnsafe(this.#mailbox); mail !== undefined; mail = Queue.takeUnsafe(this.#mailbox)) {
      if (Exit.isFailure(mail)) break
      this.#answer(mail.value, failure)
    }
    Queue.shutdownUnsafe(this.#mailbox)
  }

  #when(version: number, reached: () => number, waiters: Array<Waiter>): Effect.Effect<void, Closed> {
    return Effect.callback<void, Closed>((resume) => {
      if (version <= reached()) return resume(durableNow)
      if (this.closed !== null) return resume(Exit.fail(this.closed))
      waiters.push({ version, settle: resume })
    })
  }

  #perform(mail: Mail): Effect.Effect<void> {
    const now = this.#surroundings.clock.currentTimeMillisUnsafe()
    const transaction = new ActiveTransaction(this, now, mail.request)
    return Effect.map(Effect.exit(Effect.provideService(mail.program, Transaction, transaction)), (exit) => {
      try {
        this.#finish(mail, transaction, exit)
      } catch (defect) {
        this.#answer(mail, Exit.die(defect))
        throw defect
      }
    })
  }

  #finish(mail: Mail, transaction: ActiveTransaction, exit: Exit.Exit<unknown, unknown>): void {
    if (this.closed !== null) return this.#answer(mail, Exit.fail(this.closed))
    const response = mail.responseOf(exit)
    const kept = Exit.isSuccess(exit) && transaction.touched
    if (!kept && response === null) {
      if (this.version === this.durable) return this.#answer(mail, exit)
      this.#durableWaiters.push({
        version: this.version,
        settle: (durable) => this.#answer(mail, Exit.isSuccess(durable) ? exit : durable)
      })
      return
    }
    const sealed = this.#seal(mail, transaction, kept, response)
    if (Exit.isExit(sealed)) return this.#answer(mail, sealed)
    this.#hash = sealed.hash
    this.version = sealed.record.version
    if (kept) this.#install(sealed.record)
    this.#rememberResponse(sealed.record)
    this.#surroundings.append(this, sealed, (durable) => this.#answer(mail, Exit.isSuccess(durable) ? exit : durable))
  }

  /** The record of a command; what cannot be written down is a bug of the command's, and costs nobody else anything. */
  #seal(
    mail: Mail,
    transaction: ActiveTransaction,
    kept: boolean,
    response: StoredResponse | null
  ): Sealed | Exit.Exit<never> {
    try {
      return seal(this.#hash, this.#recordOf(mail, transaction, kept, response))
    } catch (defect) {
      return Exit.die(defect)
    }
  }

  #recordOf(mail: Mail, transaction: ActiveTransaction, kept: boolean, response: StoredResponse | null): JournalRecord {
    if (kept) transaction.requireConsistent()
    // Deliveries get ids, so they come before the counter behind the ids is read.
    const deliveries = kept ? transaction.deliveries() : NOTHING
    return {
      account: this.account,
      version: this.version + 1,
      at: transaction.startedAt,
      clock: kept ? transaction.clockOffset : this.clockOffset,
      advanced: kept ? transaction.advanced : 0,
      wiped: kept && transaction.wiped,
      sequence: this.#sequence,
      request: mail.request,
      changes: kept ? transaction.changes() : NOTHING,
      events: kept ? transaction.events : NOTHING,
      timers: kept ? transaction.timerChanges() : NOTHING,
      subscriptions: kept ? transaction.subscriptionChanges() : NOTHING,
      deliveries,
      attempts: kept ? transaction.attempts : NOTHING,
      response
    }
  }

  /** Makes what a record holds the newest state. Of a document its text stays: whoever looks inside again parses it. */
  #install({ changes, clock, subscriptions, timers, version, wiped }: JournalRecord): void {
    if (wiped) return this.#forget(version)
    this.clockOffset = clock
    for (const { destination, types } of subscriptions) {
      if (types === null) this.subscriptions.delete(destination)
      else this.subscriptions.set(destination, types)
    }
    for (const { document, format, hidden, id, kind, labels } of changes) {
      this.documents.set(id, stored({ id, kind, version, document, hidden, labels, format }))
    }
    for (const { dueAt, id, name } of timers) this.timers.set(id, { version, name, dueAt })
  }

  /** Nothing that was there before a version is there any more. */
  #forget(version: number): void {
    this.#forgottenAt = version
    this.clockOffset = 0
    this.subscriptions.clear()
    this.documents.clear()
    this.timers.clear()
    this.keys.clear()
  }

  #rememberResponse({ at, request, response, version }: JournalRecord): void {
    if (response === null || request?.idempotencyKey == null || request.fingerprint === null) return
    this.usedKeys.add(request.idempotencyKey, at)
    this.keys.set(request.idempotencyKey, { version, fingerprint: request.fingerprint, at, request, response })
  }

  #answer(mail: Mail, exit: Exit.Exit<unknown, unknown>): void {
    this.#waiting.leave()
    Deferred.doneUnsafe(mail.reply, exit)
  }
}

const settleUpTo = (version: number, waiters: Array<Waiter>): void => {
  if (waiters.length === 0) return
  const later: Array<Waiter> = []
  for (const waiter of waiters.splice(0)) {
    if (waiter.version <= version) waiter.settle(durableNow)
    else later.push(waiter)
  }
  waiters.push(...later)
}

/** Whether a command ended because the storage failed under it. */
export const storageFailed = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isDieReason(reason) && reason.defect instanceof StorageFailure)
