/**
 * The two queues of records for the journal (semantics limits.turns). Each lane has one flush at a time, beside that of
 * the other lane.
 *
 * An account with many queued records moves to the bulk lane: its flushes take long, and other accounts' records do not
 * wait for them. All its queued records move together, and only between two flushes of the lane that it leaves, so its
 * records are in one lane at any time and reach the journal in their order.
 */
import { type Exit, Latch } from "effect"
import type { Actor, Closed } from "./Actor.ts"
import type { AccountId } from "../log/Document.ts"
import type { Sealed } from "../log/Record.ts"

/** Queued records, or their bytes, beyond which an account moves to the bulk lane. */
const ORDINARY_RECORDS_MAX = 64
const ORDINARY_BYTES_MAX = 1_048_576
/** How long an account stays in the bulk lane after its last large flush, in milliseconds. */
const BULK_MILLIS = 100
/** Limits of one flush, in records and bytes. A single larger record is flushed alone. */
const FLUSH_MAX = 512
const FLUSH_BYTES_MAX = 16 * 1_048_576
/** Share of the records appended by the last flush, or queued during it, with which the next one starts at once. */
const ENOUGH_PART = 2 / 3
/** Number of records with which a flush of the bulk lane starts at once. */
const ENOUGH_IN_BULK = 128
/** Longest wait of a flush for a busy event loop, in milliseconds. In the bulk lane, answers bring records slowly. */
const GATHER_MILLIS_MAX = 5
const GATHER_MILLIS_IN_BULK = 20

/** A record, and the function that ends the wait of its command. */
export interface Entry {
  readonly actor: Actor
  readonly sealed: Sealed
  /**
   * Null once the command's wait has ended. An entry stays in its lane until the next flush; the result of its command,
   * which may be a secret that is shown once, must not.
   */
  settle: ((exit: Exit.Exit<void, Closed>) => void) | null
}

const accountOf = ({ actor }: Entry): AccountId => actor.account

const bytesOf = (entries: ReadonlyArray<Entry>): number =>
  entries.reduce((bytes, { sealed }) => bytes + sealed.bytes.length, 0)

const isLarge = (entries: ReadonlyArray<Entry>): boolean =>
  entries.length > ORDINARY_RECORDS_MAX || bytesOf(entries) > ORDINARY_BYTES_MAX

/** The queue of a sequence of flushes. */
export class Lane {
  /** Open while records are queued. */
  readonly work = Latch.makeUnsafe(false)
  #queue: Array<Entry> = []
  /** Records taken for flushes; each flush stays until all its records are decided. */
  #taken: Array<ReadonlyArray<Entry>> = []
  readonly gatherMillisMax: number
  readonly #enoughMax: number
  #enough = 1

  constructor(enoughMax: number, gatherMillisMax: number) {
    this.#enoughMax = enoughMax
    this.gatherMillisMax = gatherMillisMax
  }

  get queue(): ReadonlyArray<Entry> {
    return this.#queue
  }

  /** Number of queued records with which the next flush starts at once. */
  get enough(): number {
    return this.#enough
  }

  /** Records taken for a flush whose commands still wait. */
  get underWay(): ReadonlyArray<Entry> {
    return this.#taken.flat().filter(({ settle }) => settle !== null)
  }

  push(entry: Entry): void {
    this.#queue.push(entry)
    this.work.openUnsafe()
  }

  /** Moves the records of some accounts to another lane. */
  move(accounts: { readonly has: (account: AccountId) => boolean }, to: Lane): void {
    const queue = this.#queue.splice(0)
    for (const entry of queue) (accounts.has(accountOf(entry)) ? to : this).push(entry)
  }

  /**
   * Takes the records of one flush out of the queue. If not all fit, accounts take turns (the first record of each,
   * then the second of each), so that no account waits for another one's flood.
   */
  take(): ReadonlyArray<Entry> {
    const portion = this.#fitsAll() ? this.#queue.splice(0) : this.#takeInTurns()
    if (this.#queue.length === 0) this.work.closeUnsafe()
    this.#taken = this.#taken.filter((entries) => entries.some(({ settle }) => settle !== null))
    this.#taken.push(portion)
    return portion
  }

  /** Notes the end of a flush. The queue shows how many records arrive during one. */
  noteFlushed(count: number): void {
    this.#enough = Math.min(Math.ceil((count + this.#queue.length) * ENOUGH_PART), this.#enoughMax)
  }

  #fitsAll(): boolean {
    return this.#queue.length <= FLUSH_MAX && bytesOf(this.#queue) <= FLUSH_BYTES_MAX
  }

  #takeInTurns(): ReadonlyArray<Entry> {
    const portion = new Set<Entry>()
    let bytes = 0
    for (const entry of inTurns(this.#queue)) {
      bytes += entry.sealed.bytes.length
      if (portion.size >= FLUSH_MAX || (bytes > FLUSH_BYTES_MAX && portion.size > 0)) break
      portion.add(entry)
    }
    this.#queue = this.#queue.filter((entry) => !portion.has(entry))
    return [...portion]
  }
}

/** Yields the first record of each account, then the second of each, and so on. */
function* inTurns(entries: ReadonlyArray<Entry>): Generator<Entry> {
  const accounts = [...Map.groupBy(entries, accountOf).values()]
  const most = accounts.reduce((most, { length }) => Math.max(most, length), 0)
  for (let i = 0; i < most; i++) for (const own of accounts) if (i < own.length) yield own[i]!
}

export class FlushLanes {
  readonly ordinary = new Lane(FLUSH_MAX, GATHER_MILLIS_MAX)
  readonly bulk = new Lane(ENOUGH_IN_BULK, GATHER_MILLIS_IN_BULK)
  /** Accounts of the bulk lane, with the times of their last large flushes. */
  readonly #largeAt = new Map<AccountId, number>()

  /** Records whose commands wait. */
  get undecided(): ReadonlyArray<Entry> {
    return [this.ordinary, this.bulk].flatMap(({ queue, underWay }) => [...underWay, ...queue])
  }

  /**
   * True if a lane has enough records to start the next flush at once. Beside a flood, the event loop is busy without
   * records of the ordinary lane.
   */
  hasEnough(lane: Lane): boolean {
    const isBesideFlood = lane === this.ordinary && this.#largeAt.size > 0
    return lane.queue.length >= (isBesideFlood ? 1 : lane.enough)
  }

  push(entry: Entry): void {
    const isBulk = this.#largeAt.size > 0 && this.#largeAt.has(accountOf(entry))
    ;(isBulk ? this.bulk : this.ordinary).push(entry)
  }

  /** Moves accounts to the lane of their size. To be called between two flushes of the lane. */
  sort(lane: Lane, now: number): void {
    if (isLarge(lane.queue)) {
      const large = new Set<AccountId>()
      for (const [account, queued] of Map.groupBy(lane.queue, accountOf)) if (isLarge(queued)) large.add(account)
      for (const account of large) this.#largeAt.set(account, now)
      if (lane === this.ordinary && large.size > 0) lane.move(large, this.bulk)
    }
    if (this.#largeAt.size > 0) this.#release(now)
  }

  /** Returns accounts to the ordinary lane. Their records in the bulk lane that are taken must be answered before. */
  #release(now: number): void {
    const small = new Set<AccountId>()
    for (const [account, largeAt] of this.#largeAt) if (now - largeAt > BULK_MILLIS) small.add(account)
    if (small.size === 0) return
    for (const entry of this.bulk.underWay) small.delete(accountOf(entry))
    for (const [account, queued] of Map.groupBy(this.bulk.queue, accountOf)) if (isLarge(queued)) small.delete(account)
    for (const account of small) this.#largeAt.delete(account)
    this.bulk.move(small, this.ordinary)
  }
}
