/**
 * The actor of one account: a bounded mailbox, drained one command after the other, and the account's newest state in
 * memory. A command that finds the actor at rest runs at once, where it was submitted: nothing is woken, nothing waits.
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
import type { Context, Scope } from "effect"
import { Cause, Effect, Exit, Fiber } from "effect"
import type { AccountNumber, AccountNumbersShape } from "../log/AccountNumbers.ts"
import type { AccountId, Document, Millis, Tombstone } from "../log/Document.ts"
import { stored, weightOf } from "../log/Document.ts"
import { EntryCache } from "./EntryCache.ts"
import { nextSequence } from "../log/Identifiers.ts"
import { StorageFailure } from "../log/Journal.ts"
import type { FilterRoom } from "./KeyFilter.ts"
import { KeyFilter } from "./KeyFilter.ts"
import type { EventVersionsShape } from "../log/Events.ts"
import type { JournalRecord, RequestIdentity, Sealed, StoredAnswer } from "../log/Record.ts"
import { seal } from "../log/Record.ts"
import type { Partition } from "../process/Placement.ts"
import { partitionOf } from "../process/Placement.ts"
import type { RunningTimeShape } from "./RunningTime.ts"
import type { DueTimer, Postponed, Timer } from "./Timers.ts"
import { Timers } from "./Timers.ts"
import type { AccountState, Moment } from "./Transaction.ts"
import { ActiveTransaction, Transaction } from "./Transaction.ts"
import { MailboxFull, BoundedQueue } from "../process/BoundedQueue.ts"

/**
 * Why an actor stopped: it lost the account to another owner, the log failed, a record got into the log when the
 * account may have been another's already, or it was idle.
 */
export type ClosedReason = "fenced" | "failed" | "lapsed" | "passivated"

/**
 * The actor stopped before the command was durable. After `failed` and `lapsed` it may have happened, or not. This is a
 * plain class, because a flush that fails makes one for each of thousands of waiters, and a stack trace for each would
 * take the thread.
 */
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
/** A key takes up about so many bytes beside its response. */
const KEY_BYTES = 500
/** Of what an actor may keep; all else is for documents, which are what is asked for most. */
const KEYS_PART = 1 / 16
/** Timers that fire before one command, at most: what else is due waits for the next, and time with it. */
const FIRING_MAX = 256
/** Commands that run one right after the other; then others get their turn of the event loop. */
const DRAINED_MAX = 64
/** Records that may wait for their flush while timers go on firing. */
const UNFLUSHED_MAX = 1024

/** A head says where an account stands in the log. */
export interface Head {
  readonly version: number
  readonly hash: string
  readonly sequence: number
  /** The account's clock is so far ahead of the wall clock. */
  readonly clock: Millis
  /** Its newest record happened at this time of the account's clock. */
  readonly now: Millis
  /** The version that the views have reached. */
  readonly projected: number
}

/** An actor starts with this. */
export interface Start {
  readonly head: Head
  readonly subscriptions: ReadonlyArray<{ readonly destination: string; readonly types: ReadonlyArray<string> }>
  /** The first in due order, a page of them. */
  readonly timers: ReadonlyArray<Timer>
}

/** The engine knows this of an idempotency key: the request that used it, and its response. */
export interface KeyState {
  /** Version of the record that holds them. */
  readonly version: number
  readonly at: Millis
  readonly request: RequestIdentity
  readonly response: StoredAnswer
}

export interface Command<A, E> {
  readonly program: Effect.Effect<A, E, Transaction>
  readonly request: RequestIdentity | null
  /** Says what to keep for repetitions of the request, if anything. */
  readonly responseOf: (exit: Exit.Exit<A, E>) => StoredAnswer | null
}

interface Mail extends Command<unknown, unknown> {
  readonly answer: (exit: Exit.Exit<unknown, unknown>) => void
}

/** The rest of the engine gives this to every actor. */
export interface ActorServices {
  readonly clock: { readonly currentTimeMillisUnsafe: () => Millis }
  /** Commands run with these services, and no longer than the scope lives. */
  readonly context: Context.Context<never>
  readonly scope: Scope.Scope
  /** True while no record could be written. */
  readonly isStorageHanging: () => boolean
  readonly numbers: AccountNumbersShape
  /** Commands, and reads of what is not in memory, that may wait for an answer, per account. */
  readonly mailboxCapacity: number
  /** Says how much an actor may keep in memory beyond what it must, in bytes. */
  readonly cacheShare: (actor: Actor) => number
  /** Idempotency keys are remembered by it. */
  readonly runningTime: RunningTimeShape
  /** For the filters of used keys of all accounts. */
  readonly filterRoom: FilterRoom
  readonly loadDocument: (
    account: AccountId,
    id: string
  ) => Effect.Effect<Document | Tombstone | undefined, StorageFailure>
  /** The account's first timers in due order. */
  readonly loadTimers: (account: AccountId, limit: number) => Effect.Effect<ReadonlyArray<Timer>, StorageFailure>
  /**
   * Says in which version of the API the account's events are rendered that happen now; at once, if that is in memory.
   */
  readonly eventVersion: (account: AccountId) => string | Effect.Effect<string, StorageFailure>
  readonly shownIn: EventVersionsShape["shownIn"]
  /** Carries out what is to happen when a timer is due. */
  readonly handleTimer: (timer: DueTimer) => Effect.Effect<void, Postponed, Transaction>
  /** Waits until the views have a version of the account, and hurries them. */
  readonly reach: (actor: Actor, version: number) => Effect.Effect<void, Closed>
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

/** A command is turned away, or its actor ends, for one of these reasons. */
export type Turned = Closed | MailboxFull | StorageFailure

const storageHangs = Exit.fail(new StorageFailure({ cause: "The database hangs" }))

const durableNow: Exit.Exit<void, Closed> = Exit.void

export class Actor implements AccountState {
  readonly account: AccountId
  readonly partition: Partition
  /** Ids that lead to the account carry it. */
  readonly number: AccountNumber
  readonly documents: EntryCache<Document | Tombstone, StorageFailure>
  readonly timers = new Timers()
  readonly keys: EntryCache<KeyState, StorageFailure | MailboxFull>
  readonly usedKeys: KeyFilter
  /** Event types by destination. */
  readonly subscriptions: Map<string, ReadonlyArray<string>>
  /** Tells it from the actors that its account has before and after it. */
  readonly incarnation = Symbol("incarnation")
  /** The account's clock is so far ahead of the wall clock. */
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
  /** The newest record happened at this time of the account's clock. */
  #now: Millis
  /** Version of the newest record that has made the account forget; older rows of the views do not count any more. */
  #forgottenAt = 0
  /** Versions of the newest changes of documents, by kind. */
  readonly #changedAt = new Map<string, number>()
  /** What has changed before this version is not known. */
  #knownSince: number
  #durableWaiters: Array<Waiter> = []
  #projectedWaiters: Array<Waiter> = []
  /** Commands that wait for their turn. */
  #mailbox: Array<Mail> = []
  /** True while a command runs, or the mailbox waits for its next turn of the event loop. */
  #isDraining = false
  /** Commands that have no answer yet, and reads. */
  readonly #waiting: BoundedQueue
  readonly #services: ActorServices

  constructor(account: AccountId, { head, subscriptions, timers }: Start, services: ActorServices) {
    this.account = account
    this.partition = partitionOf(account)
    this.number = services.numbers.of(account)
    this.subscriptions = new Map(subscriptions.map(({ destination, types }) => [destination, types]))
    this.clockOffset = head.clock
    this.version = this.durable = head.version
    this.projected = head.projected
    this.#knownSince = head.version
    this.#hash = head.hash
    this.#sequence = head.sequence
    this.#now = head.now
    this.timers.fill(timers)
    this.lastUsed = services.clock.currentTimeMillisUnsafe()
    this.usedKeys = new KeyFilter(services.runningTime.now(), services.filterRoom)
    this.#waiting = new BoundedQueue(services.mailboxCapacity)
    this.#services = services
    const projected = () => this.projected
    const part = (of: number) => services.cacheShare(this) * of
    this.documents = new EntryCache({ weightOf, projected, capacity: () => part(1 - KEYS_PART) })
    this.keys = new EntryCache({
      weightOf: ({ response }) => KEY_BYTES + response.body.length,
      projected,
      capacity: () => Math.min(KEYS_BYTES_MAX, part(KEYS_PART))
    })
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
  submit<A, E>(command: Command<A, E>): Effect.Effect<A, E | Turned> {
    return Effect.callback<A, E | Turned>((resume) => this.take(command, resume))
  }

  /** The same without a fiber that waits: `answer` is called once, perhaps at once. */
  take<A, E>(command: Command<A, E>, answer: (exit: Exit.Exit<A, E | Turned>) => void): void {
    if (this.closed !== null) return answer(Exit.fail(this.closed))
    // Its record could not be written, and the actor would have to start anew: so it goes on to answer from memory.
    if (this.#services.isStorageHanging()) return answer(storageHangs)
    if (!this.#waiting.enter()) return answer(Exit.fail(new MailboxFull()))
    this.lastUsed = this.#services.clock.currentTimeMillisUnsafe()
    const { program, request, responseOf } = command
    this.#mailbox.push({ program, request, responseOf, answer } as Mail)
    if (this.#isDraining) return
    this.#isDraining = true
    this.#drain()
  }

  /**
   * Carries out what is in the mailbox. A command has nearly always ended when its fiber has been started, because what
   * it needs is in memory; one that has to wait holds up the others, until its fiber has ended.
   */
  readonly #drain = (): void => {
    for (let drained = 0; drained < DRAINED_MAX; drained++) {
      const mail = this.#mailbox.shift()
      if (mail === undefined) {
        this.#isDraining = false
        return
      }
      const fiber = Effect.runForkWith(this.#services.context)(this.#perform(mail))
      const exit = fiber.pollUnsafe()
      if (exit === undefined) {
        Fiber.runIn(fiber, this.#services.scope)
        fiber.addObserver((exit) => {
          this.#performed(exit)
          this.#drain()
        })
        return
      }
      this.#performed(exit)
    }
    setImmediate(this.#drain)
  }

  /** The actor dies of what no command can be blamed for. */
  #performed(exit: Exit.Exit<void>): void {
    if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return
    this.#services.lose(this, "failed")
    Effect.runForkWith(this.#services.context)(Effect.logFatal(`Account ${this.account} starts anew`, exit.cause))
  }

  /** Waits for the storage beside the mailbox, and counts with what waits in it. */
  reading<A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E | MailboxFull> {
    return this.#waiting.during(read)
  }

  /** Says that no document of a kind has changed since a version, durable or not. */
  isUnchanged(kind: string, since: number): boolean {
    return (this.#changedAt.get(kind) ?? this.#knownSince) <= since
  }

  /** The document, if it is in memory and the journal has it. */
  durableDocument(id: string): Document | Tombstone | undefined {
    const known = this.documents.get(id)
    return known !== undefined && known.version <= this.durable ? known : undefined
  }

  /** Gives the durable document at once, if it is in memory and no timer is due that may change it. */
  peek(id: string): Document | Tombstone | undefined {
    return this.isTimely ? this.durableDocument(id) : undefined
  }

  /** Reads the newest document once everything that is due has fired, and once the journal has it. */
  read(id: string): Effect.Effect<Document | Tombstone | undefined, StorageFailure | Closed | MailboxFull> {
    return this.timely(Effect.suspend(() => this.reading(this.#readDurable(id))))
  }

  #readDurable(id: string): Effect.Effect<Document | Tombstone | undefined, StorageFailure | Closed> {
    return Effect.flatMap(
      Effect.mapError(this.document(id), (failure) =>
        failure.cause instanceof Closed ? failure.cause : (this.closed ?? failure)
      ),
      (entry) => {
        // A miss is an answer about the account's newest version as well.
        const version = entry?.version ?? this.version
        return version <= this.durable ? Effect.succeed(entry) : Effect.as(this.whenDurable(version), entry)
      }
    )
  }

  /** The document for this actor's own commands: the newest state, durable or not. */
  document(id: string): Effect.Effect<Document | Tombstone | undefined, StorageFailure> {
    return this.documents.load(id, this.#own(this.remembered(this.#services.loadDocument(this.account, id))))
  }

  /** Says that no timer is due, so that what is in memory is how things stand. */
  get isTimely(): boolean {
    return this.timers.nextDueAt > this.#services.clock.currentTimeMillisUnsafe() + this.clockOffset
  }

  /** Says when the account has to be woken for its timers, by the wall clock. */
  wakeAt(now: Millis): Millis {
    return Math.min(this.timers.nextDueAt - this.clockOffset, this.timers.retryAt(now))
  }

  /** Fires what is due, but no more than may fire at once. */
  readonly fireDue: Effect.Effect<void, Turned> = Effect.suspend(() => this.#ask(Effect.void))

  /** Fires everything that is due. Other commands of the account run in between. */
  readonly settle: Effect.Effect<void, Turned> = Effect.suspend(() =>
    this.isTimely ? Effect.void : Effect.andThen(this.fireDue, this.settle)
  )

  /** The same, and tries again what could not fire before. */
  readonly wake: Effect.Effect<void, Turned> = Effect.suspend(() =>
    Effect.andThen(this.#ask(this.#retryTimers), this.settle)
  )

  /** Reads once everything that is due has fired, or as much of it as may fire at once. */
  timely<A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E | Turned> {
    return Effect.suspend(() => (this.isTimely ? read : Effect.andThen(this.fireDue, read)))
  }

  /** Gives what was read. If the account had no such version yet, somebody else has written to it: the actor is old. */
  #own<Entry extends { readonly version: number }>(
    read: Effect.Effect<Entry | undefined, StorageFailure>
  ): Effect.Effect<Entry | undefined, StorageFailure> {
    return Effect.flatMap(read, (entry) => {
      if (entry === undefined || entry.version <= this.version) return Effect.succeed(entry)
      this.#services.lose(this, "fenced")
      return Effect.fail(new StorageFailure({ cause: new Closed("fenced") }))
    })
  }

  /** Reads the views once they have forgotten what the account has. */
  remembered<A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E | StorageFailure> {
    if (this.#forgottenAt <= this.projected) return read
    const forgotten = Effect.mapError(
      this.#services.reach(this, this.#forgottenAt),
      (cause) => new StorageFailure({ cause })
    )
    return Effect.andThen(forgotten, read)
  }

  nextId(prefix: string, now: Millis): string {
    this.#sequence = nextSequence(this.#sequence, now)
    return this.#services.numbers.idOf(prefix, this.#sequence, this.number)
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
    this.keys.trim()
    settleUpTo(version, this.#projectedWaiters)
  }

  /** Takes over that another process has written these records, all of which the views have. Only for a replica. */
  follow(records: ReadonlyArray<JournalRecord>): void {
    for (const { changes, clock, version, wiped } of records) {
      if (wiped) this.#forget(version)
      this.clockOffset = clock
      for (const { id, kind } of changes) {
        this.documents.drop(id)
        this.#changedAt.set(kind, version)
      }
      this.version = this.durable = version
      this.markProjected(version)
    }
  }

  /** Stops for good, and tells everybody who waits why. */
  close(reason: ClosedReason): void {
    if (this.closed !== null) return
    const failure = Exit.fail((this.closed = new Closed(reason)))
    this.usedKeys.release()
    for (const waiter of [...this.#durableWaiters.splice(0), ...this.#projectedWaiters.splice(0)]) {
      waiter.settle(failure)
    }
    for (const mail of this.#mailbox.splice(0)) this.#answer(mail, failure)
  }

  #when(version: number, reached: () => number, waiters: Array<Waiter>): Effect.Effect<void, Closed> {
    return Effect.callback<void, Closed>((resume) => {
      if (version <= reached()) return resume(durableNow)
      if (this.closed !== null) return resume(Exit.fail(this.closed))
      waiters.push({ version, settle: resume })
    })
  }

  /** Runs what is no command of the account's in the mailbox's order. */
  #ask(program: Effect.Effect<void>): Effect.Effect<void, Turned> {
    return this.submit({ program, request: null, responseOf: () => null })
  }

  #perform(mail: Mail): Effect.Effect<void> {
    const at = this.#services.clock.currentTimeMillisUnsafe()
    if (this.timers.nextDueAt > at + this.clockOffset) return this.#carryOut(mail, at)
    return Effect.flatMap(Effect.exit(this.#fireTimers(at)), (exit) =>
      Exit.isSuccess(exit) ? this.#carryOut(mail, at) : Effect.sync(() => this.#answer(mail, exit))
    )
  }

  #carryOut(mail: Mail, at: Millis): Effect.Effect<void> {
    // While more is due than may fire at once, time stands still where the next timer is due: no command comes too
    // late.
    const now = Math.min(at + this.clockOffset, this.timers.nextDueAt)
    return this.#transact(mail.program, { at, now }, mail.request, (transaction, exit) => {
      try {
        this.#finish(mail, transaction, exit)
      } catch (defect) {
        this.#answer(mail, Exit.die(defect))
        throw defect
      }
    })
  }

  #transact(
    program: Effect.Effect<unknown, unknown, Transaction>,
    moment: Moment,
    request: RequestIdentity | null,
    finish: (transaction: ActiveTransaction, exit: Exit.Exit<unknown, unknown>) => void
  ): Effect.Effect<void> {
    const transaction = new ActiveTransaction(this, moment, request)
    return Effect.flatMap(Effect.exit(Effect.provideService(program, Transaction, transaction)), (exit) => {
      if (Exit.isFailure(exit) || transaction.events.length === 0) return Exit.succeed(finish(transaction, exit))
      const { shownIn } = this.#services
      const version = this.#services.eventVersion(this.account)
      if (typeof version !== "string") return Effect.map(Effect.exit(version), finishIn)
      return Exit.succeed(finishIn(Exit.succeed(version)))

      function finishIn(found: Exit.Exit<string, StorageFailure>): void {
        if (Exit.isFailure(found)) return finish(transaction, Exit.die(Cause.squash(found.cause)))
        try {
          transaction.showEventsIn(found.value, shownIn)
        } catch (defect) {
          return finish(transaction, Exit.die(defect))
        }
        finish(transaction, exit)
      }
    })
  }

  /** Fires what is due, in due order, each timer as a record of its own and at its own time. */
  readonly #fireTimers = Effect.fnUntraced({ self: this }, function* (at: Millis) {
    for (let fired = 0; fired < FIRING_MAX && this.version - this.durable < UNFLUSHED_MAX; fired++) {
      const now = at + this.clockOffset
      if (this.timers.mustFill(now)) {
        yield* this.#services.reach(this, this.version)
        this.timers.fill(yield* this.#services.loadTimers(this.account, this.timers.pageSize))
      }
      const timer = this.timers.due(now)
      if (timer === undefined || this.closed !== null) return
      yield* this.#fire(timer, at)
    }
  })

  /** Tries timers again that could not fire. What the storage fails at is tried once more later. */
  readonly #retryTimers = Effect.suspend(() => {
    const at = this.#services.clock.currentTimeMillisUnsafe()
    return Effect.forEach(this.timers.retries(at), (timer) => Effect.ignore(this.#fire(timer, at)), { discard: true })
  })

  #fire(timer: Timer, at: Millis): Effect.Effect<void, StorageFailure> {
    const now = Math.min(Math.max(timer.dueAt, this.#now), at + this.clockOffset)
    const program = Effect.flatMap(Transaction, (transaction) => {
      transaction.clearTimer(timer.id)
      return this.#services.handleTimer(timer)
    })
    let after: Effect.Effect<void, StorageFailure> = Effect.void
    const finish = (transaction: ActiveTransaction, exit: Exit.Exit<unknown, unknown>) => {
      if (this.closed !== null) return
      const sealed = Exit.isSuccess(exit) ? this.#seal(null, transaction, true, null) : exit
      if (Exit.isSuccess(sealed)) return this.#append(sealed.value, true, () => {})
      if (storageFailed(sealed.cause)) {
        after = Effect.fail(new StorageFailure({ cause: Cause.squash(sealed.cause) }))
      } else {
        this.timers.park(timer, at)
        // A timer that is postponed is nobody's mistake.
        if (!Cause.hasDies(sealed.cause)) return
        after = Effect.logError(`Timer ${timer.id} of account ${this.account} could not fire`, sealed.cause)
      }
    }
    return Effect.andThen(
      this.#transact(program, { at, now }, null, finish),
      Effect.suspend(() => after)
    )
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
    const sealed = this.#seal(mail.request, transaction, kept, response)
    if (Exit.isFailure(sealed)) return this.#answer(mail, sealed)
    this.#append(sealed.value, kept, (durable) => this.#answer(mail, Exit.isSuccess(durable) ? exit : durable))
  }

  /** Makes a record the newest, in memory at once, and in the log as soon as can be. */
  #append(sealed: Sealed, kept: boolean, settle: (durable: Exit.Exit<void, Closed>) => void): void {
    this.#hash = sealed.hash
    this.version = sealed.record.version
    this.#now = sealed.record.now
    if (kept) this.#install(sealed.record)
    this.#rememberResponse(sealed.record)
    this.#services.append(this, sealed, settle)
  }

  /**
   * Seals a command's record. What cannot be written down is a bug of the command's, and costs nobody else anything.
   */
  #seal(
    request: RequestIdentity | null,
    transaction: ActiveTransaction,
    kept: boolean,
    response: StoredAnswer | null
  ): Exit.Exit<Sealed> {
    try {
      return Exit.succeed(seal(this.#hash, this.#recordOf(request, transaction, kept, response)))
    } catch (defect) {
      return Exit.die(defect)
    }
  }

  #recordOf(
    request: RequestIdentity | null,
    transaction: ActiveTransaction,
    kept: boolean,
    response: StoredAnswer | null
  ): JournalRecord {
    if (kept) transaction.requireConsistent()
    // Deliveries get ids, so they come before the counter behind the ids is read.
    const deliveries = kept ? transaction.deliveries() : NOTHING
    return {
      account: this.account,
      version: this.version + 1,
      at: transaction.startedAt,
      ...(request !== null && request.idempotencyKey !== null && { ran: this.#services.runningTime.now() }),
      // Timers that become due because the clock moves ahead fire after this, each at its time.
      now: transaction.now - transaction.advanced,
      clock: kept ? transaction.clockOffset : this.clockOffset,
      advanced: kept ? transaction.advanced : 0,
      wiped: kept && transaction.wiped,
      sequence: kept && transaction.wiped ? 0 : this.#sequence,
      request,
      changes: kept ? transaction.changes() : NOTHING,
      events: kept ? transaction.events : NOTHING,
      apiVersion: kept ? transaction.apiVersion : null,
      timers: kept ? transaction.timerChanges() : NOTHING,
      subscriptions: kept ? transaction.subscriptionChanges() : NOTHING,
      deliveries,
      attempts: kept ? transaction.attempts : NOTHING,
      hastened: kept ? transaction.hastened : NOTHING,
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
      this.#changedAt.set(kind, version)
    }
    for (const { dueAt, id, name } of timers) {
      if (dueAt === null) this.timers.clear(id)
      else this.timers.set({ id, name, dueAt })
    }
  }

  /** Nothing that was there before a version is there any more. */
  #forget(version: number): void {
    this.#forgottenAt = this.#knownSince = version
    this.#changedAt.clear()
    this.clockOffset = 0
    // Nothing is left that new ids would have to come after, and the clock was put back.
    this.#sequence = 0
    this.subscriptions.clear()
    this.documents.clear()
    this.timers.clearAll()
    this.keys.clear()
  }

  #rememberResponse({ at, ran = at, request, response, version }: JournalRecord): void {
    if (response === null || request?.idempotencyKey == null || request.fingerprint === null) return
    this.usedKeys.add(request.idempotencyKey, ran)
    this.keys.set(request.idempotencyKey, { version, at: ran, request, response })
  }

  #answer(mail: Mail, exit: Exit.Exit<unknown, unknown>): void {
    this.#waiting.leave()
    mail.answer(exit)
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

/** Says whether a command ended because the storage failed under it. */
export const storageFailed = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isDieReason(reason) && reason.defect instanceof StorageFailure)
