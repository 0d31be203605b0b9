/**
 * Decides which delivery is attempted next. Every endpoint has a lane of its own, first in first out; lanes take turns.
 *
 * - An attempt needs a slot, and gives it back when it ends or has taken longer than a second, whichever is first. So
 *   endpoints that hang hold no slots, and cannot keep those that answer waiting; how many attempts may be stalled is
 *   bounded by itself.
 * - A lane starts narrow, widens with every delivery and narrows with every stall, so an endpoint that hangs soon costs
 *   four connections, and a fast one gets as many as it can use. While too much is stalled, lanes that have stalled
 *   last wait, and in the end all lanes of the account that has stalled most of it; nobody waits for what others stall.
 * - A delivery is here at most once, from `add` until `release`: while it waits, is attempted, and is reported.
 * - What there is no room for is not taken in. It is still in the table, and comes from there when its lease is over.
 */
import type { DueDelivery } from "../engine/Deliveries.ts"
import type { AccountId, Millis } from "../engine/log/Document.ts"
import type { StoredEvent } from "../engine/log/Events.ts"
import type { Partition } from "../engine/process/Placement.ts"
import { partitionOf } from "../engine/process/Placement.ts"

/** Attempts that have taken less than a second, at most. */
const SLOTS = 512
/** Attempts that have taken longer, at most. */
const STALLED_MAX = 2048
/** With as many stalled, no lane starts that has stalled last. */
const STALLED_ENOUGH = 1024
/** An account may have so many stalled in any case. */
const STALLED_SHARE = 64
/**
 * With as many stalled, none of an account's lanes starts: if all under way stall as well, the others still have slots.
 */
const STALLED_BY_ONE_MAX = STALLED_MAX - SLOTS
export const STALLED_MILLIS = 1000

const WIDTH_MIN = 4
const WIDTH_START = 8
const WIDTH_MAX = 64

/** Deliveries that wait in memory, at most. */
const WAITING_MAX = 100_000
/** Those of them that have their event with them; the others read it again. */
const CONTENTS_MAX = 10_000
/** A lane with as many waiting takes none from the table. */
const LANE_FULL = 32

export interface Attempt {
  readonly delivery: DueDelivery
  readonly content: StoredEvent | null
  readonly lane: Lane
  readonly startedAt: Millis
  stalled: boolean
  /** Waits because of the engine, which is not the endpoint's fault. */
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
  /** Index of the first in `waiting`. */
  first: number
  running: number
  width: number
  suspect: boolean
  /** True if the table was last asked for others only. */
  full: boolean
  /** True while the lane is in line for a turn. */
  queued: boolean
}

/** A delivery that is here, from when it is taken in until what came of its attempt shows in the table. */
interface Held {
  readonly attempt: number
  /** It is due again already, and was taken from the table: nobody else gets it before its lease is over. */
  again: DueDelivery | null
}

const keyOf = ({ account, id }: DueDelivery): string => `${account}/${id}`

export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  readonly #held = new Map<string, Held>()
  /** Attempts under way, in the order of their starts. */
  readonly #running = new Set<Attempt>()
  #turns: Array<Lane> = []
  /** Lanes that wait for something stalled to end. */
  #parked: Array<Lane> = []
  #waiting = 0
  #contents = 0
  #stalled = 0
  readonly #stalledOf = new Map<AccountId, number>()

  /**
   * Takes a delivery in; false if it is here already, or there is no room. Its next attempt waits for this one's end.
   */
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

  /** The next attempt to start, if one may start now. */
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

  /** Takes back the slots of attempts that have taken long. */
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

  /**
   * An attempt is over; its delivery stays here until it is released. Answers whether the table may have more for its
   * lane.
   */
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

  /** An attempt that could not even begin waits again, before all others of its lane. Answers as `end` does. */
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

  /** The delivery is not ours any more, or is due again. */
  release(delivery: DueDelivery): void {
    const key = keyOf(delivery)
    const again = this.#held.get(key)?.again
    this.#held.delete(key)
    if (again != null) this.add(again, null)
  }

  /** Drops what waits for a destination, or for all of an account. What is under way goes on, in vain. */
  cancel(account: AccountId, destination: string | null): void {
    this.#drop((other) => other.account === account && (destination === null || other.destination === destination))
  }

  /** Drops what waits for accounts of a partition, which others carry from now on. */
  drop(partition: Partition): void {
    this.#drop(({ account }) => partitionOf(account) === partition)
  }

  /** Destinations with enough waiting here. */
  get full(): ReadonlyArray<string> {
    const full = [...this.#lanes.values()].filter((lane) => lane.waiting.length - lane.first >= LANE_FULL)
    for (const lane of full) lane.full = true
    return full.map(({ destination }) => destination)
  }

  /** True if something waits that has just happened. What comes from the table is late in any case. */
  get hasNew(): boolean {
    return this.#contents > 0
  }

  get room(): number {
    return WAITING_MAX - this.#waiting
  }

  /** Attempts under way. */
  get running(): number {
    return this.#running.size
  }

  #countStalled({ account }: Lane, change: 1 | -1): void {
    this.#stalled += change
    const count = (this.#stalledOf.get(account) ?? 0) + change
    if (count === 0) this.#stalledOf.delete(account)
    else this.#stalledOf.set(account, count)
  }

  /** True if the lane has its part in too much being stalled. */
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

  #drop(isMeant: (one: Pick<DueDelivery, "account" | "destination">) => boolean): void {
    for (const held of this.#held.values()) if (held.again !== null && isMeant(held.again)) held.again = null
    for (const lane of this.#lanes.values()) if (isMeant(lane)) this.#empty(lane)
  }

  #empty(lane: Lane): void {
    while (lane.first < lane.waiting.length) this.release(this.#shift(lane).delivery)
    // Its stalled attempts say nothing about the deliveries that come after its end.
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
    // An item that was taken out must not stay in memory because of its place.
    if (lane.first === lane.waiting.length || (lane.first > 64 && lane.first * 2 > lane.waiting.length)) {
      lane.waiting = lane.waiting.slice(lane.first)
      lane.first = 0
    }
    return waiting
  }

  /** A lane that has nothing to do need not be remembered; one that has stalled is, until it delivers. */
  #forget(lane: Lane): void {
    if (lane.running > 0 || lane.first < lane.waiting.length || lane.suspect) return
    this.#lanes.delete(`${lane.account}/${lane.destination}`)
  }
}
