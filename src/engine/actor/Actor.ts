/**
 * The actor of one account: a bounded mailbox, drained one command after the other, and the account's newest state in
 * memory. A command that finds the actor at rest runs immediately, where it was submitted: nothing is woken or waits.
 *
 * Interleavings that matter:
 * - The actor does not wait for the flush of a record; it goes on with the next command on the new state. So memory
 *   may be ahead of the log, but no answer is: every answer, a refusal too, waits until all state that its command
 *   has seen is durable.
 * - A flush fails. Everything later in this actor stands on records that may not exist: the actor closes, its commands
 *   get `Closed`, and the account starts anew from the log. Nothing of a closed actor ever reaches the journal.
 * - A command is still running while its actor closes: its outcome is dropped, and it gets `Closed` as well.
 * - A caller goes away while its command waits or runs: the command is carried out all the same.
 */
import { Cause, type Clock, type Context, Effect, Exit, Fiber, type Scope } from "effect"
import type { AccountNumber, AccountNumbersShape } from "../log/AccountNumbers.ts"
import { type AccountId, type Document, type Millis, stored, type Tombstone, weightOf } from "../log/Document.ts"
import { EntryCache } from "./EntryCache.ts"
import { nextSequence } from "../log/Identifiers.ts"
import { StorageFailure } from "../log/Journal.ts"
import { type FilterRoom, KeyFilter } from "./KeyFilter.ts"
import type { EventVersionsShape } from "../log/Events.ts"
import {
  isAnswer,
  isAwaiting,
  type JournalRecord,
  type RequestIdentity,
  type Response,
  seal,
  type Sealed
} from "../log/Record.ts"
import { type Partition, partitionOf } from "../process/Placement.ts"
import type { RunningTimeShape } from "./RunningTime.ts"
import { type DueTimer, type Postponed, type Timer, Timers } from "./Timers.ts"
import { type AccountState, ActiveTransaction, type Moment, Transaction } from "./Transaction.ts"
import { MailboxFull, BoundedQueue } from "../process/BoundedQueue.ts"
import { logOf } from "../process/Log.ts"

const log = logOf("engine")

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

/** Bytes of projected responses that stay in memory: repetitions come soon or hardly ever. */
const KEYS_BYTES_MAX = 1_048_576
/** Bytes that a key takes up beside its response, about. */
const KEY_BYTES = 500
/** Share of an actor's memory that keys may take. The rest is for documents, which are read most. */
const KEYS_PART = 1 / 16
/** Timers that fire before one command, at most. Further due timers wait for the next command, and time with them. */
const FIRING_MAX = 256
/** Commands that run in a row before the event loop gets a turn. */
const DRAINED_MAX = 64
/** Requests of one account that may wait for the outcomes of operations. They count towards nothing else. */
const AWAITING_MAX = 4096
/** Unflushed records beyond which no further timers fire. */
const UNFLUSHED_MAX = 1024

export interface Head {
  readonly version: number
  readonly hash: string
  readonly sequence: number
  /** Offset of the account's clock from the wall clock. */
  readonly clock: Millis
  /** Time of the newest record by the account's clock. */
  readonly now: Millis
  /** Newest version in the views. */
  readonly projected: number
}

export interface Start {
  readonly head: Head
  readonly subscriptions: ReadonlyArray<{ readonly destination: string; readonly types: ReadonlyArray<string> }>
  /** The first page of timers in due order. */
  readonly timers: ReadonlyArray<Timer>
}

export interface KeyState {
  /** Version of the record that holds them. */
  readonly version: number
  readonly at: Millis
  readonly request: RequestIdentity
  readonly response: Response
}

export interface Command<A, E> {
  readonly program: Effect.Effect<A, E, Transaction>
  readonly request: RequestIdentity | null
  /** Returns the response to keep for repetitions of the request, if any. */
  readonly responseOf: (exit: Exit.Exit<A, E>) => Response | null
}

interface Mail extends Command<unknown, unknown> {
  readonly answer: (exit: Exit.Exit<unknown, unknown>) => void
}

/** Services that every actor gets from the engine. */
export interface ActorServices {
  readonly clock: Pick<Clock.Clock, "currentTimeMillisUnsafe" | "monotonicTimeNanosUnsafe">
  /** Services of commands, which run no longer than the scope lives. */
  readonly context: Context.Context<never>
  readonly scope: Scope.Scope
  /** Returns true while records cannot be written. */
  readonly isStorageHanging: () => boolean
  readonly numbers: AccountNumbersShape
  /** Commands, and reads of documents that are not in memory, that may wait for an answer, per account. */
  readonly mailboxCapacity: number
  readonly cacheShare: (actor: Actor) => number
  /** Clock of the retention of idempotency keys. */
  readonly runningTime: RunningTimeShape
  /** Memory for the filters of used keys of all accounts. */
  readonly filterRoom: FilterRoom
  readonly loadDocument: (
    account: AccountId,
    id: string
  ) => Effect.Effect<Document | Tombstone | undefined, StorageFailure>
  /** Reads the account's first timers in due order. */
  readonly loadTimers: (account: AccountId, limit: number) => Effect.Effect<ReadonlyArray<Timer>, StorageFailure>
  /** Returns the API version of the account's new events; immediately, if it is in memory. */
  readonly eventVersion: (account: AccountId) => string | Effect.Effect<string, StorageFailure>
  readonly shownIn: EventVersionsShape["shownIn"]
  /** Runs the effect of a due timer. */
  readonly handleTimer: (timer: DueTimer) => Effect.Effect<void, Postponed, Transaction>
  /** Hurries the views, and waits until they have a version of the account. */
  readonly reach: (actor: Actor, version: number) => Effect.Effect<void, Closed>
  /** Ends an actor whose state is not the newest: another process wrote to its account, or a defect ended it. */
  readonly lose: (actor: Actor, reason: "fenced" | "failed") => void
  /** Queues a record for the next flush, behind all earlier ones. */
  readonly append: (actor: Actor, sealed: Sealed, settle: (exit: Exit.Exit<void, Closed>) => void) => void
}

type Settle = (exit: Exit.Exit<void, Closed>) => void

interface Waiter {
  readonly version: number
  readonly settle: Settle
}

const NOTHING: ReadonlyArray<never> = []

/** Failures of a command that was refused, or whose actor ended. */
export type Turned = Closed | MailboxFull | StorageFailure

const storageHangs = Exit.fail(new StorageFailure({ cause: "The database hangs" }))

const durableNow: Exit.Exit<void, Closed> = Exit.void

export class Actor implements AccountState {
  readonly account: AccountId
  readonly partition: Partition
  readonly number: AccountNumber
  readonly documents: EntryCache<Document | Tombstone, StorageFailure>
  readonly timers = new Timers()
  readonly keys: EntryCache<KeyState, StorageFailure | MailboxFull>
  readonly usedKeys: KeyFilter
  /** Event types by destination. */
  readonly subscriptions: Map<string, ReadonlyArray<string>>
  /** Identity of this actor among the successive actors of its account. */
  readonly incarnation = Symbol("incarnation")
  /** Offset of the account's clock from the wall clock. */
  clockOffset: Millis
  /** Version of the newest record, durable or not. */
  version: number
  /** Newest version in the journal. */
  durable: number
  /** Newest version in the views. */
  projected: number
  closed: Closed | null = null
  lastUsed: Millis
  #hash: string
  #sequence: number
  /** Time of the newest record by the account's clock. */
  #now: Millis
  /** Version of the newest wipe. Rows of the views with an older version are void. */
  #forgottenAt = 0
  /** Version of the newest change of a document, by kind. */
  readonly #changedAt = new Map<string, number>()
  /** Version from which `#changedAt` is complete. */
  #knownSince: number
  #durableWaiters: Array<Waiter> = []
  #projectedWaiters: Array<Waiter> = []
  /** Requests that wait for the answer to an idempotency key. */
  readonly #answerWaiters = new Map<string, Set<Settle>>()
  #awaiting = 0
  #mailbox: Array<Mail> = []
  /** True while a command runs, or the mailbox waits for a turn of the event loop. */
  #isDraining = false
  /** Count of commands without an answer and of reads. */
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
    this.#waiting = new BoundedQueue(services.mailboxCapacity, services.clock)
    this.#services = services
    const projected = () => this.projected
    const part = (of: number) => services.cacheShare(this) * of
    this.documents = new EntryCache({ weightOf, projected, capacity: () => part(1 - KEYS_PART) })
    this.keys = new EntryCache({
      weightOf: ({ response }) => KEY_BYTES + (isAnswer(response) ? response.body.length : 0),
      projected,
      capacity: () => Math.min(KEYS_BYTES_MAX, part(KEYS_PART))
    })
  }

  /** True if no caller waits and the views are up to date. */
  get idle(): boolean {
    return this.#waiting.isEmpty && this.projected === this.version
  }

  /** Commands and reads that wait for an answer. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Bytes that the actor takes up, about. */
  get weight(): number {
    return this.documents.weight + this.timers.weight + this.keys.weight
  }

  /** Puts a command into the mailbox and waits for its answer. Commands run in the order of their submission. */
  submit<A, E>(command: Command<A, E>): Effect.Effect<A, E | Turned> {
    return Effect.callback<A, E | Turned>((resume) => this.take(command, resume))
  }

  /** Does the same without a waiting fiber: `answer` is called once, perhaps before `take` returns. */
  take<A, E>(command: Command<A, E>, answer: (exit: Exit.Exit<A, E | Turned>) => void): void {
    if (this.closed !== null) return answer(Exit.fail(this.closed))
    // The record could not be written, and the actor would have to restart. Refusing keeps its memory for reads.
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
   * Runs the commands in the mailbox. Nearly every command ends synchronously, because its documents are in memory; a
   * command that has to wait holds up the others until its fiber ends.
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

  /** A defect outside of a command ends the actor. */
  #performed(exit: Exit.Exit<void>): void {
    if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return
    this.#services.lose(this, "failed")
    Effect.runForkWith(this.#services.context)(
      log.fatal(`Account ${this.account} starts anew`, exit.cause, { cause: "starts anew" })
    )
  }

  /** Runs a read of the storage beside the mailbox; it counts towards the mailbox's capacity. */
  reading<A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E | MailboxFull> {
    return this.#waiting.during(read)
  }

  /** Returns true if no document of a kind has changed since a version, durable or not. */
  isUnchanged(kind: string, since: number): boolean {
    return (this.#changedAt.get(kind) ?? this.#knownSince) <= since
  }

  /** Returns the document if it is in memory and durable. */
  durableDocument(id: string): Document | Tombstone | undefined {
    const known = this.documents.get(id)
    return known !== undefined && known.version <= this.durable ? known : undefined
  }

  /** Returns the durable document if it is in memory and no timer is due that may change it. */
  peek(id: string): Document | Tombstone | undefined {
    return this.isTimely ? this.durableDocument(id) : undefined
  }

  /** Reads the newest durable document after all due timers have fired. */
  read(id: string): Effect.Effect<Document | Tombstone | undefined, StorageFailure | Closed | MailboxFull> {
    return this.timely(Effect.suspend(() => this.reading(this.#readDurable(id))))
  }

  #readDurable(id: string): Effect.Effect<Document | Tombstone | undefined, StorageFailure | Closed> {
    return Effect.flatMap(
      Effect.mapError(this.document(id), (failure) =>
        failure.cause instanceof Closed ? failure.cause : (this.closed ?? failure)
      ),
      (entry) => {
        // A miss is an answer about the account's newest version, too.
        const version = entry?.version ?? this.version
        return version <= this.durable ? Effect.succeed(entry) : Effect.as(this.whenDurable(version), entry)
      }
    )
  }

  /** Returns the newest state of a document, durable or not, for this actor's commands. */
  document(id: string): Effect.Effect<Document | Tombstone | undefined, StorageFailure> {
    return this.documents.load(id, this.#own(this.remembered(this.#services.loadDocument(this.account, id))))
  }

  /** True if no timer is due, so that the state in memory is current. */
  get isTimely(): boolean {
    return this.timers.nextDueAt > this.#services.clock.currentTimeMillisUnsafe() + this.clockOffset
  }

  /** Returns the wall-clock time at which the account has to be woken for its timers. */
  wakeAt(now: Millis): Millis {
    return Math.min(this.timers.nextDueAt - this.clockOffset, this.timers.retryAt(now))
  }

  /** Fires due timers, `FIRING_MAX` at most. */
  readonly fireDue: Effect.Effect<void, Turned> = Effect.suspend(() => this.#ask(Effect.void))

  /** Fires all due timers. Other commands of the account run in between. */
  readonly settle: Effect.Effect<void, Turned> = Effect.suspend(() =>
    this.isTimely ? Effect.void : Effect.andThen(this.fireDue, this.settle)
  )

  readonly wake: Effect.Effect<void, Turned> = Effect.suspend(() =>
    Effect.andThen(this.#ask(this.#retryTimers), this.settle)
  )

  /** Reads after due timers have fired, `FIRING_MAX` at most. */
  timely<A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E | Turned> {
    return Effect.suspend(() => (this.isTimely ? read : Effect.andThen(this.fireDue, read)))
  }

  /** Returns the entry that was read. An entry newer than the actor shows another writer: the actor is fenced. */
  #own<Entry extends { readonly version: number }>(
    read: Effect.Effect<Entry | undefined, StorageFailure>
  ): Effect.Effect<Entry | undefined, StorageFailure> {
    return Effect.flatMap(read, (entry) => {
      if (entry === undefined || entry.version <= this.version) return Effect.succeed(entry)
      this.#services.lose(this, "fenced")
      return Effect.fail(new StorageFailure({ cause: new Closed("fenced") }))
    })
  }

  /** Reads the views after they include the account's newest wipe. */
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

  whenDurable(version: number): Effect.Effect<void, Closed> {
    return this.#when(version, () => this.durable, this.#durableWaiters)
  }

  /**
   * Waits until a durable record answers or releases an idempotency key. Waiting keeps no actor in memory, and needs no
   * place in its mailbox.
   */
  whenAnswered(key: string): Effect.Effect<void, Closed | MailboxFull> {
    return Effect.suspend((): Effect.Effect<void, Closed | MailboxFull> => {
      const state = this.keys.get(key)
      if (state !== undefined && !isAwaiting(state.response)) return this.whenDurable(state.version)
      if (this.closed !== null) return Effect.fail(this.closed)
      if (this.#awaiting >= AWAITING_MAX) return Effect.fail(new MailboxFull())
      return Effect.callback<void, Closed>((settle) => {
        this.#awaiting++
        const waiters = this.#answerWaiters.get(key) ?? new Set()
        this.#answerWaiters.set(key, waiters.add(settle))
        return Effect.sync(() => {
          if (waiters.delete(settle)) this.#awaiting--
          if (waiters.size === 0 && this.#answerWaiters.get(key) === waiters) this.#answerWaiters.delete(key)
        })
      })
    })
  }

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

  /**
   * Removes documents and keys from memory whose texts the storage has replaced. Entries that the views do
   * not have yet stay: their records are newer. Returns the newest version.
   */
  dropReplaced(documents: Iterable<string>, keys: Iterable<string>): number {
    for (const id of documents) {
      if ((this.documents.get(id)?.version ?? 0) <= this.projected) this.documents.drop(id)
    }
    for (const key of keys) if ((this.keys.get(key)?.version ?? 0) <= this.projected) this.keys.drop(key)
    return this.version
  }

  /** Applies records that another process wrote and that the views include. Only for a replica. */
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

  /** Closes the actor, and fails every waiting caller with the reason. */
  close(reason: ClosedReason): void {
    if (this.closed !== null) return
    const failure = Exit.fail((this.closed = new Closed(reason)))
    this.usedKeys.release()
    for (const waiter of [...this.#durableWaiters.splice(0), ...this.#projectedWaiters.splice(0)]) {
      waiter.settle(failure)
    }
    for (const waiters of this.#answerWaiters.values()) for (const settle of waiters) settle(failure)
    for (const mail of this.#mailbox.splice(0)) this.#answer(mail, failure)
  }

  #takeAnswerWaiters(key: string): ReadonlyArray<Settle> {
    const waiters = this.#answerWaiters.get(key)
    if (waiters === undefined) return NOTHING
    this.#answerWaiters.delete(key)
    const taken = [...waiters]
    this.#awaiting -= taken.length
    waiters.clear()
    return taken
  }

  #when(version: number, reached: () => number, waiters: Array<Waiter>): Effect.Effect<void, Closed> {
    return Effect.callback<void, Closed>((resume) => {
      if (version <= reached()) return resume(durableNow)
      if (this.closed !== null) return resume(Exit.fail(this.closed))
      waiters.push({ version, settle: resume })
    })
  }

  /** Runs an internal program in the mailbox's order. */
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
    // While more than `FIRING_MAX` timers are due, time stands still at the next timer: no command runs after a timer
    // that should have fired before it.
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

  /** Fires due timers in due order, each as a record of its own at its own time. */
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

  /** Retries timers that could not fire. A timer that the storage fails again is retried later. */
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
        // A postponed timer is no error.
        if (!Cause.hasDies(sealed.cause)) return
        after = log.error(`Timer ${timer.id} of account ${this.account} could not fire`, sealed.cause, {
          cause: "timer"
        })
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

  /** Makes a record the newest: in memory immediately, in the log with the next flush. */
  #append(sealed: Sealed, kept: boolean, settle: (durable: Exit.Exit<void, Closed>) => void): void {
    this.#hash = sealed.hash
    this.version = sealed.record.version
    this.#now = sealed.record.now
    if (kept) this.#install(sealed.record)
    this.#rememberResponse(sealed.record)
    this.#services.append(this, sealed, this.#awaiting === 0 ? settle : this.#settlingAnswers(sealed.record, settle))
  }

  /** Returns a function that settles a record's command, and the requests that wait for the record's answer. */
  #settlingAnswers({ request, response, wiped }: JournalRecord, settle: Settle): Settle {
    const keys = wiped ? [...this.#answerWaiters.keys()] : []
    if (response !== null && !isAwaiting(response) && request?.idempotencyKey != null) keys.push(request.idempotencyKey)
    if (keys.length === 0) return settle
    const waiters = keys.flatMap((key) => this.#takeAnswerWaiters(key))
    return (durable) => {
      settle(durable)
      for (const waiter of waiters) waiter(durable)
    }
  }

  /** Seals a command's record. A record that cannot be encoded is a defect of its command alone. */
  #seal(
    request: RequestIdentity | null,
    transaction: ActiveTransaction,
    kept: boolean,
    response: Response | null
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
    response: Response | null
  ): JournalRecord {
    if (kept && transaction.answered !== null) ({ request, response } = transaction.answered)
    if (kept) transaction.requireConsistent()
    // Deliveries take ids, so they are made before the id counter is read.
    const deliveries = kept ? transaction.deliveries() : NOTHING
    return {
      account: this.account,
      version: this.version + 1,
      at: transaction.startedAt,
      ...(request !== null && request.idempotencyKey !== null && { ran: this.#services.runningTime.now() }),
      // Timers that become due because the clock advances fire after this record, each at its own time.
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
      ...(kept && transaction.erased !== undefined && { erased: transaction.erased }),
      response
    }
  }

  /** Applies a record to the state in memory. A document stays as text, and is parsed on its next use. */
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

  #forget(version: number): void {
    this.#forgottenAt = this.#knownSince = version
    this.#changedAt.clear()
    this.clockOffset = 0
    // No id is left that new ids have to follow, and the clock was reset.
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

/** Returns true if a command ended because the storage failed. */
export const storageFailed = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isDieReason(reason) && reason.defect instanceof StorageFailure)
