/**
 * Decides when the work on a request begins, and refuses what has waited for too long (semantics 9.37, 9.38). Where
 * there is room, work begins at once. Where there is none:
 *
 * - Accounts take turns, so whoever sends a flood waits behind itself, and its neighbours do not.
 * - Work has so many milliseconds per turn of the event loop, and refusals a part of that. So flushes and answers,
 *   which are turns of the same loop, never wait for a flood to be over.
 * - A request that has waited for too long is refused, and only before anything was done for it.
 * - No more commands are under way at a time than the storage takes without making them wait: where that takes too
 *   long, fewer begin. A few of each account always may.
 *
 * While there is work to do, only some are refused in each turn, and the others later; behind a slow storage as well.
 * A client that does not mind `Retry-After` asks again at once, and this is what bounds how often.
 */
import { Context } from "effect"
import { addressGroup } from "../domain/Networks.ts"
import { ConcurrencyLimit } from "./ConcurrencyLimit.ts"

/** In each turn work may begin for so long as requests come in, and for as long again of what waits. */
const TURN_MILLIS = 2
/** Requests that are refused in a turn for each that was begun. */
const REFUSALS_PART = 1 / 4
/** While nothing can begin, so many are refused per millisecond: who asks again at once must not take all the time. */
const REFUSALS_PER_MILLI = 4
/** What waits is looked at this often while nothing can begin. */
const SWEEP_MILLIS = 10
/** An account that had something waiting all the time for so long has more than a burst, which ends by itself. */
const STANDING_MILLIS = 500
/** Of such an account no more may wait than began in so much time, or so many. */
const DELAY_MILLIS = 500
const WAITING_MIN = 64
/** How much that is is measured anew this often. */
const MEASURE_MILLIS = 100
/** Whoever has waited for longer has given up, or is about to. */
const AGE_MILLIS_MAX = 1000
/** Commands of an account that may be under way, however many others are. */
const OWN_PLACES = 8

/** A request that wants to begin. One of the functions is called once, unless its client has gone away. */
export interface Entry {
  /** By `performance.now()`: when it had arrived. */
  readonly since: number
  /** True once nobody is there any more who could read an answer. */
  readonly isGone: boolean
  /** Gives a command its place among those under way, which it has to give back. */
  readonly start: (place: Place | undefined) => void
  readonly refuse: () => void
}

/** The place of a command that is under way. */
export interface Place {
  readonly lane: Lane
  readonly startedAt: number
}

/** What waits in order. */
class Line {
  #entries: Array<Entry> = []
  #first = 0

  get size(): number {
    return this.#entries.length - this.#first
  }

  get first(): Entry | undefined {
    return this.#entries[this.#first]
  }

  push(entry: Entry): void {
    this.#entries.push(entry)
  }

  /** Gives the first one, which there must be. An array's own `shift` moves all others where they are thousands. */
  shift(): Entry {
    const entry = this.#entries[this.#first++]!
    if (this.#first * 2 >= this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first)
      this.#first = 0
    }
    return entry
  }
}

/** What waits of one account: its commands, or all else. */
class Lane extends Line {
  readonly name: string
  readonly isOfCommands: boolean
  underWay = 0
  /** So many have begun since then. */
  #begun = 0
  #begunSince = 0
  /** Per millisecond; undefined before something has waited for long enough. */
  #rate: number | undefined

  constructor(name: string, isOfCommands: boolean) {
    super()
    this.name = name
    this.isOfCommands = isOfCommands
  }

  /** From now on something waits. */
  stand(since: number): void {
    this.#begun = 0
    this.#begunSince = since
    this.#rate = undefined
  }

  begins(): void {
    this.#begun++
  }

  /** Says how many may wait. */
  capacity(now: number): number {
    const millis = now - this.#begunSince
    if (millis >= (this.#rate === undefined ? STANDING_MILLIS : MEASURE_MILLIS)) {
      const rate = this.#begun / millis
      this.#rate = this.#rate === undefined ? rate : (this.#rate + rate) / 2
      this.#begun = 0
      this.#begunSince = now
    }
    return this.#rate === undefined ? Infinity : Math.max(WAITING_MIN, this.#rate * DELAY_MILLIS)
  }
}

/** How time passes. */
export interface Surroundings {
  readonly now: () => number
  /** Calls a function at the end of the turn of the event loop, when what has come in was read. */
  readonly atTurnsEnd: (step: () => void) => void
  readonly after: (millis: number, step: () => void) => void
}

const eventLoop: Surroundings = {
  now: () => performance.now(),
  atTurnsEnd: setImmediate,
  after: (millis, step) => void setTimeout(step, millis).unref()
}

/** The event loop's, unless a test has a time of its own. */
export const AdmissionTime: Context.Reference<Surroundings> = Context.Reference("till/http/AdmissionTime", {
  defaultValue: () => eventLoop
})

/**
 * Names the lane of senders that are not known yet, by their address: an IPv6 host can choose among 2^64 of them, which
 * share one lane.
 */
export const laneAt = (address: string): string => `at ${addressGroup(address)}`

export class Admission {
  readonly #surroundings: Surroundings
  readonly #limit = new ConcurrencyLimit()
  /** Those that have something waiting or under way. */
  readonly #lanes = new Map<string, Lane>()
  /** Those that have something waiting, each once, the next one first. */
  #turns: Array<Lane> = []
  /** What has waited for too long. */
  readonly #late = new Line()
  #waiting = 0
  #underWay = 0
  /** In this turn, work begins until then as requests come in; Infinity before the first. */
  #inputEnds = Infinity
  #refusedAt = -Infinity
  #isScheduled = false
  #isSweeping = false

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings
  }

  /** Has an account's request begin, now or later, or refused later. */
  enter(account: string, isCommand: boolean, entry: Entry): void {
    const now = this.#surroundings.now()
    const lane = this.#laneOf(isCommand ? `commands ${account}` : account, isCommand)
    const hasRoom = this.#hasRoom(lane)
    if (this.#waiting === 0 && hasRoom && this.#hasTime(now)) return entry.start(this.#begin(lane, now))
    if (!hasRoom) this.#limit.reached()
    if (lane.size === 0) {
      this.#turns.push(lane)
      lane.stand(entry.since)
    }
    lane.push(entry)
    this.#waiting++
    // Without room, it is the next place that is given back which has something begin.
    if (hasRoom) this.#schedule()
    else this.#sweep()
  }

  /** Takes a place back. `waitedForStorage` tells whether its command did. */
  leave({ lane, startedAt }: Place, waitedForStorage: boolean): void {
    const now = this.#surroundings.now()
    lane.underWay--
    this.#underWay--
    if (waitedForStorage) this.#limit.observe(now - startedAt, now)
    if (this.#waiting > 0) this.#schedule()
    this.#forgetIfIdle(lane)
  }

  /** Refuses all that waits. */
  close(): void {
    for (const lane of this.#turns.splice(0)) while (lane.size > 0) lane.shift().refuse()
    while (this.#late.size > 0) this.#late.shift().refuse()
    this.#waiting = 0
  }

  #laneOf(name: string, isOfCommands: boolean): Lane {
    let lane = this.#lanes.get(name)
    if (lane === undefined) {
      lane = new Lane(name, isOfCommands)
      this.#lanes.set(name, lane)
    }
    return lane
  }

  #forgetIfIdle(lane: Lane): void {
    if (lane.size === 0 && lane.underWay === 0) this.#lanes.delete(lane.name)
  }

  /** Tells whether work may still begin while requests come in. */
  #hasTime(now: number): boolean {
    if (this.#inputEnds === Infinity) {
      this.#inputEnds = now + TURN_MILLIS
      this.#surroundings.atTurnsEnd(() => {
        this.#inputEnds = Infinity
      })
    }
    return now < this.#inputEnds
  }

  #hasRoom({ isOfCommands, underWay }: Lane): boolean {
    return !isOfCommands || underWay < OWN_PLACES || this.#underWay < this.#limit.value
  }

  #begin(lane: Lane, now: number): Place | undefined {
    if (!lane.isOfCommands) {
      this.#forgetIfIdle(lane)
      return undefined
    }
    lane.underWay++
    this.#underWay++
    return { lane, startedAt: now }
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#surroundings.atTurnsEnd(this.#work)
  }

  /** Begins what there is time and room for, and refuses some of what is to be. */
  readonly #work = (): void => {
    this.#isScheduled = false
    const { now } = this.#surroundings
    const ends = now() + TURN_MILLIS
    const isOver = () => now() >= ends
    let begun = 0
    while (!isOver() && this.#beginNext(now())) begun++
    const hasMore = isOver()
    if (hasMore) this.#refuseLate(Math.max(1, Math.floor(begun * REFUSALS_PART)))
    else if (this.#waiting > 0) this.#refuseLate(this.#refusalsByNow(now()))
    else while (this.#late.size > 0 && !isOver()) this.#refuseLate(1)
    if (hasMore || (this.#waiting === 0 && this.#late.size > 0)) this.#schedule()
    else if (this.#waiting > 0) this.#sweep()
  }

  /** Says how many may be refused although nothing can begin, since this was asked the last time. */
  #refusalsByNow(now: number): number {
    const count = Math.floor(Math.min(now - this.#refusedAt, SWEEP_MILLIS) * REFUSALS_PER_MILLI)
    if (count > 0) this.#refusedAt = now
    return count
  }

  #refuseLate(count: number): void {
    for (let refused = 0; refused < count && this.#late.size > 0;) {
      const entry = this.#late.shift()
      if (entry.isGone) continue
      entry.refuse()
      refused++
    }
  }

  /** Begins one request of the account whose turn it is; false if there is none that may begin. */
  #beginNext(now: number): boolean {
    for (let looked = this.#turns.length; looked > 0; looked--) {
      const lane = this.#turns.shift()!
      this.#dropLate(lane, now)
      if (lane.size === 0) {
        this.#forgetIfIdle(lane)
        continue
      }
      if (!this.#hasRoom(lane)) {
        this.#limit.reached()
        this.#turns.push(lane)
        continue
      }
      const entry = lane.shift()
      lane.begins()
      this.#waiting--
      if (lane.size > 0) this.#turns.push(lane)
      entry.start(this.#begin(lane, now))
      return true
    }
    return false
  }

  /** Takes out of a lane what nobody waits for, and what has waited for too long. */
  #dropLate(lane: Lane, now: number): void {
    const capacity = lane.capacity(now)
    for (let entry = lane.first; entry !== undefined; entry = lane.first) {
      const isLate = lane.size > capacity || now - entry.since > AGE_MILLIS_MAX
      if (!isLate && !entry.isGone) return
      if (!entry.isGone) this.#late.push(entry)
      lane.shift()
      this.#waiting--
    }
  }

  /** Nothing begins until something comes in or a place is given back; meanwhile what waits grows old. */
  #sweep(): void {
    if (this.#isSweeping) return
    this.#isSweeping = true
    this.#surroundings.after(SWEEP_MILLIS, () => {
      this.#isSweeping = false
      this.#schedule()
    })
  }
}
