/**
 * Decides which delivery is attempted next. Every endpoint has a lane of its own, first in first out; lanes take turns.
 *
 * - An attempt needs a slot, and gives it back when it ends or has stalled, that is, taken longer than a second. So
 *   endpoints that hang hold no slots, and cannot delay endpoints that answer. The number of stalled attempts has its
 *   own bound.
 * - A lane starts narrow, widens with every success and narrows with every stall. So an endpoint that hangs soon uses
 *   four connections, and a fast one as many as it can use. While too many attempts are stalled, lanes whose last
 *   attempts stalled wait, and finally all lanes of the account that stalls most. No account waits because of another's
 *   stalls.
 * - A delivery is held at most once, from `add` until `release`: while it waits, is attempted, and is reported.
 * - A delivery without room is not taken in. It stays in the table and is taken from there when its lease has ended.
 */
import type { DueDelivery } from "../engine/Deliveries.ts"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import type { StoredEvent } from "../engine/log/Events.ts"
import { type Partition, partitionOf } from "../engine/process/Placement.ts"

/** Running attempts that have not stalled, at most. */
const SLOTS = 512
/** Stalled attempts, at most. */
const STALLED_MAX = 2048
/** Number of stalled attempts from which lanes whose last attempt stalled begin none. */
const STALLED_ENOUGH = 1024
/** Stalled attempts that an account may have in any case. */
const STALLED_SHARE = 64
/** Stalled attempts of an account from which none of its lanes begins another: others still have slots. */
const STALLED_BY_ONE_MAX = STALLED_MAX - SLOTS
/** Duration after which an attempt counts as stalled, in milliseconds. */
export const STALLED_MILLIS = 1000

/** Attempts of one lane at a time: after stalls, at the start, and at most. */
const WIDTH_MIN = 4
const WIDTH_START = 8
const WIDTH_MAX = 64

/** Deliveries that wait in memory, at most. */
const WAITING_MAX = 100_000
/** Waiting deliveries whose event is kept in memory; for the others it is read again. */
const CONTENTS_MAX = 10_000
/** Waiting deliveries from which a lane takes none from the table. */
const LANE_FULL = 32

export interface Attempt {
  readonly delivery: DueDelivery
  readonly content: StoredEvent | null
  readonly lane: Lane
  readonly startedAt: Millis
  stalled: boolean
  /** The attempt waits for the engine, which does not count as a stall of the endpoint. */
  paused: boolean
}

interface Waiting {
  readonly delivery: DueDelivery
  readonly content: StoredEvent | null
}

interface Lane {
  readonly account: AccountId
  readonly destination: string
  waiting: Array<Waiting>
  /** Index of the first delivery in `waiting`. */
  first: number
  running: number
  width: number
  /** True from a stall until the next success that did not stall. */
  suspect: boolean
  /** True if the lane was left out when deliveries were last taken from the table. */
  full: boolean
  /** True while the lane is in line for a turn. */
  queued: boolean
}

/** A held delivery: from `add` until the table has the outcome of its attempt. */
interface Held {
  readonly attempt: number
  /** The next attempt's delivery, if it was already taken from the table: no other process gets it during its lease. */
  again: DueDelivery | null
}

const keyOf = ({ account, id }: DueDelivery): string => `${account}/${id}`

export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  readonly #held = new Map<string, Held>()
  /** Running attempts, oldest first. */
  readonly #running = new Set<Attempt>()
  #turns: Array<Lane> = []
  /** Lanes that wait until a stalled attempt ends. */
  #parked: Array<Lane> = []
  #waiting = 0
  #contents = 0
  #stalled = 0
  readonly #stalledOf = new Map<AccountId, number>()

  /** Takes a delivery in; false if it is already held or there is no room. Its next attempt waits for its release. */
  add(delivery: DueDelivery, content: StoredEvent | null): boolean {
    const key = keyOf(delivery)
    const held = this.#held.get(key)
    if (held !== undefined && delivery.attempt > held.attempt) held.again = delivery
    if (held !== undefined || this.#waiting >= WAITING_MAX) return false
    this.#held.set(key, { attempt: delivery.attempt, again: null })
    const lane = this.#laneOf(delivery)
    const kept = this.#contents < CONTENTS_MAX ? content : null
    if (kept !== null) this.#contents++
    lane.waiting.push({ delivery, content: kept })
    this.#waiting++
    this.#enqueue(lane)
    return true
  }

  /** Starts and returns the next attempt, if one may start now. */
  next(now: Millis): Attempt | undefined {
    if (this.#running.size - this.#stalled >= SLOTS) return undefined
    for (let lane = this.#turns.shift(); lane !== undefined; lane = this.#turns.shift()) {
      lane.queued = false
      if (this.#stalled >= STALLED_ENOUGH && this.#isCause(lane)) {
        this.#parked.push(lane)
        lane.queued = true
        continue
      }
      if (lane.running >= lane.width || lane.first === lane.waiting.length) continue
      const { content, delivery } = this.#shift(lane)
      const attempt: Attempt = { delivery, content, lane, startedAt: now, stalled: false, paused: false }
      lane.running++
      this.#running.add(attempt)
      this.#enqueue(lane)
      return attempt
    }
    return undefined
  }

  /** Marks running attempts that take too long as stalled, and takes their slots. */
  stall(now: Millis): void {
    for (const attempt of this.#running) {
      if (attempt.startedAt > now - STALLED_MILLIS || this.#stalled >= STALLED_MAX) return
      if (attempt.stalled || attempt.paused) continue
      attempt.stalled = true
      this.#countStalled(attempt.lane, 1)
      attempt.lane.suspect = true
      attempt.lane.width = Math.max(attempt.lane.width >> 1, WIDTH_MIN)
    }
  }

  /** Ends an attempt; its delivery is held until `release`. Returns whether the table may have more for its lane. */
  end(attempt: Attempt, delivered: boolean): boolean {
    const { lane } = attempt
    if (!this.#running.delete(attempt)) return false
    if (attempt.stalled) {
      this.#countStalled(lane, -1)
      for (const parked of this.#parked.splice(0)) this.#turns.push(parked)
    }
    lane.running--
    if (delivered) {
      lane.suspect &&= attempt.stalled
      lane.width = Math.min(lane.width * 2, WIDTH_MAX)
    }
    this.#enqueue(lane)
    this.#forget(lane)
    if (!lane.full || lane.waiting.length - lane.first >= LANE_FULL) return false
    lane.full = false
    return true
  }

  /** Puts an attempt that could not begin back to the front of its lane. Returns the same as `end`. */
  putBack(attempt: Attempt): boolean {
    const { content, delivery, lane } = attempt
    if (this.#held.has(keyOf(delivery))) {
      lane.waiting = [{ delivery, content }, ...lane.waiting.slice(lane.first)]
      lane.first = 0
      this.#waiting++
      if (content !== null) this.#contents++
    }
    return this.end(attempt, false)
  }

  /** Ends the hold of a delivery, and adds its next attempt if that is already due. */
  release(delivery: DueDelivery): void {
    const key = keyOf(delivery)
    const again = this.#held.get(key)?.again
    this.#held.delete(key)
    if (again != null) this.add(again, null)
  }

  /** Drops waiting deliveries to a destination, or of a whole account. Running attempts continue without effect. */
  cancel(account: AccountId, destination: string | null): void {
    this.#drop((other) => other.account === account && (destination === null || other.destination === destination))
  }

  /** Drops waiting deliveries of a partition that another process will own. */
  drop(partition: Partition): void {
    this.#drop(({ account }) => partitionOf(account) === partition)
  }

  /** Destinations that need no deliveries from the table. */
  get full(): ReadonlyArray<string> {
    const full = [...this.#lanes.values()].filter((lane) => lane.waiting.length - lane.first >= LANE_FULL)
    for (const lane of full) lane.full = true
    return full.map(({ destination }) => destination)
  }

  /** True if a delivery of a new event waits. Deliveries from the table are late in any case. */
  get hasNew(): boolean {
    return this.#contents > 0
  }

  get room(): number {
    return WAITING_MAX - this.#waiting
  }

  get waiting(): number {
    return this.#waiting
  }

  get running(): number {
    return this.#running.size
  }

  #countStalled({ account }: Lane, change: 1 | -1): void {
    this.#stalled += change
    const count = (this.#stalledOf.get(account) ?? 0) + change
    if (count === 0) this.#stalledOf.delete(account)
    else this.#stalledOf.set(account, count)
  }

  /** True if the lane is among the causes of too many stalls. */
  #isCause({ account, suspect }: Lane): boolean {
    const count = this.#stalledOf.get(account) ?? 0
    return count >= STALLED_BY_ONE_MAX || (suspect && count >= STALLED_SHARE)
  }

  #laneOf({ account, destination }: DueDelivery): Lane {
    const key = `${account}/${destination}`
    const known = this.#lanes.get(key)
    if (known !== undefined) return known
    const state = { waiting: [], first: 0, running: 0, width: WIDTH_START, suspect: false, full: false, queued: false }
    const lane: Lane = { account, destination, ...state }
    this.#lanes.set(key, lane)
    return lane
  }

  #drop(isChosen: (one: Pick<DueDelivery, "account" | "destination">) => boolean): void {
    for (const held of this.#held.values()) if (held.again !== null && isChosen(held.again)) held.again = null
    for (const lane of this.#lanes.values()) if (isChosen(lane)) this.#empty(lane)
  }

  #empty(lane: Lane): void {
    while (lane.first < lane.waiting.length) this.release(this.#shift(lane).delivery)
    // Stalls from before the cancellation do not count against later deliveries.
    lane.suspect = false
    this.#forget(lane)
  }

  #enqueue(lane: Lane): void {
    if (lane.queued || lane.running >= lane.width || lane.first === lane.waiting.length) return
    lane.queued = true
    this.#turns.push(lane)
  }

  #shift(lane: Lane): Waiting {
    const waiting = lane.waiting[lane.first++]!
    this.#waiting--
    if (waiting.content !== null) this.#contents--
    // Frees the memory of items that were taken out.
    if (lane.first === lane.waiting.length || (lane.first > 64 && lane.first * 2 > lane.waiting.length)) {
      lane.waiting = lane.waiting.slice(lane.first)
      lane.first = 0
    }
    return waiting
  }

  /** Removes a lane without work. A lane that has stalled is kept until it succeeds. */
  #forget(lane: Lane): void {
    if (lane.running > 0 || lane.first < lane.waiting.length || lane.suspect) return
    this.#lanes.delete(`${lane.account}/${lane.destination}`)
  }
}
