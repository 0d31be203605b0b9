/**
 * Starts requests when there is room, and refuses those that have waited too long (semantics limits.queue,
 * limits.refusals). With room, a request starts immediately. Without:
 *
 * - Accounts take turns, so a flood of one account delays that account's own requests and no others.
 * - Each turn of the event loop has a time budget for starting requests, and a part of that for refusals. So flushes
 *   and answers, which share the event loop, never wait for a flood to end.
 * - A request that has waited too long is refused, and only before anything was done for it.
 * - The number of concurrent commands is limited to what the storage takes without queueing: if commands become slow,
 *   fewer may start. Each account may always have a few.
 *
 * While there is work to do, only some late requests are refused in each turn, and the others later; also behind a slow
 * storage. This bounds the rate of clients that ignore `Retry-After` and repeat immediately.
 */
import { Context, Effect, FiberHandle, type Scope } from "effect"
import { addressGroup } from "../domain/Networks.ts"
import { Fifo } from "../engine/process/Fifo.ts"
import * as Metrics from "../engine/process/Metrics.ts"
import { ConcurrencyLimit } from "./ConcurrencyLimit.ts"

/** The time budget per turn for starting requests that arrive, and again for starting waiting ones, in milliseconds. */
const TURN_MILLIS = 2
/** The same while several accounts send requests. Shorter turns cost throughput. */
const TURN_MILLIS_SHARED = 0.5
/** How long requests of another account count, in milliseconds. */
const SHARED_MILLIS = 1000
/** Refusals in a turn per started request. */
const REFUSALS_PART = 1 / 4
/**
 * Refusals per millisecond while nothing can start, so that clients that repeat immediately do not take all the time.
 */
const REFUSALS_PER_MILLI = 4
/** The interval of checks of waiting requests while nothing can start, in milliseconds. */
const SWEEP_MILLIS = 10
/** An account with waiting requests for this long has more than a burst, which would end by itself, in milliseconds. */
const STANDING_MILLIS = 500
/** Such an account may have as many waiting requests as it started within this time, or `WAITING_MIN`. */
const DELAY_MILLIS = 800
const WAITING_MIN = 64
/** The interval at which an account's rate is measured, in milliseconds. */
const MEASURE_MILLIS = 100
/** The longest wait, in milliseconds. Clients give up about then. */
const AGE_MILLIS_MAX = 1000
/** Concurrent commands that an account may always have. */
const OWN_PLACES = 8

const REFUSED = {
  name: "till_admission_refused_total",
  description: "Requests that were refused because they had waited too long for their start."
}
const WAITING = { name: "till_admission_waiting", description: "Requests that wait for their start." }
const RUNNING = { name: "till_admission_running_commands", description: "Commands of requests that run." }
const LIMIT = {
  name: "till_admission_commands_limit",
  description: "Commands that may run at the same time; it follows the latency of the journal."
}

/** A request that waits for its start. One of the two functions is called once, unless its client has left. */
export interface Entry {
  /** When the request arrived, by `performance.now()`. */
  readonly since: number
  /** True once the client can no longer read an answer. */
  readonly isGone: boolean
  /** Starts the request. A command receives a place, which it has to give back with `leave`. */
  readonly start: (place: Place | undefined) => void
  readonly refuse: () => void
}

/** The place of a running command. */
export interface Place {
  readonly lane: Lane
  readonly startedAt: number
}

/** The waiting requests of one account: its commands, or all others. */
class Lane extends Fifo<Entry> {
  readonly name: string
  readonly isOfCommands: boolean
  running = 0
  /** Requests started since `#begunSince`. */
  #begun = 0
  #begunSince = 0
  /** Started requests per millisecond; undefined until requests have waited for `STANDING_MILLIS`. */
  #rate: number | undefined

  constructor(name: string, isOfCommands: boolean) {
    super()
    this.name = name
    this.isOfCommands = isOfCommands
  }

  /** Called when the lane's first request begins to wait. */
  beginWaiting(since: number): void {
    this.#begun = 0
    this.#begunSince = since
    this.#rate = undefined
  }

  countStart(): void {
    this.#begun++
  }

  /** Returns how many requests may wait. */
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

/** The time that work takes, and the turns of the event loop. */
export interface Surroundings {
  readonly now: () => number
  /** Calls a function at the end of the event loop's turn, after the arrived input was read. */
  readonly atTurnsEnd: (step: () => void) => void
}

const eventLoop: Surroundings = { now: () => performance.now(), atTurnsEnd: setImmediate }

/** The event loop's time; tests provide their own. */
export const AdmissionTime: Context.Reference<Surroundings> = Context.Reference("till/http/AdmissionTime", {
  defaultValue: () => eventLoop
})

/**
 * Returns the name of the lane of unauthenticated senders, by address: an IPv6 host can choose among 2^64 addresses,
 * which share one lane.
 */
export const laneAt = (address: string): string => `at ${addressGroup(address)}`

export class Admission {
  readonly #surroundings: Surroundings
  readonly #limit = new ConcurrencyLimit()
  /** Lanes with waiting or running requests. */
  readonly #lanes = new Map<string, Lane>()
  /** Lanes with waiting requests, in the order of their turns. */
  #turns: Array<Lane> = []
  /** Requests that have waited too long. */
  readonly #late = new Fifo<Entry>()
  #waiting = 0
  #running = 0
  /** The account of the last request, and the time of the last one of another account. */
  #account = ""
  #sharedAt = -Infinity
  /** End of this turn's budget for arriving requests; Infinity before the first one. */
  #inputEnds = Infinity
  #refusedAt = -Infinity
  #refused = 0
  #isScheduled = false
  readonly #fork: (step: Effect.Effect<void>) => void

  private constructor(surroundings: Surroundings, fork: (step: Effect.Effect<void>) => void) {
    this.#surroundings = surroundings
    this.#fork = fork
  }

  /** Makes an admission whose sweeps end with the scope. */
  static readonly make: Effect.Effect<Admission, never, Scope.Scope> = Effect.gen(function* () {
    const run = yield* FiberHandle.makeRuntime<never>()
    const admission = new Admission(yield* AdmissionTime, (step) => void run(step, { onlyIfMissing: true }))
    yield* Metrics.observeCounter(REFUSED, () => admission.#refused)
    yield* Metrics.observeGauge(WAITING, () => admission.#waiting)
    yield* Metrics.observeGauge(RUNNING, () => admission.#running)
    yield* Metrics.observeGauge(LIMIT, () => admission.#limit.value)
    return admission
  })

  /** Starts an account's request, now or later, or refuses it later. */
  enter(account: string, isCommand: boolean, entry: Entry): void {
    const now = this.#surroundings.now()
    if (account !== this.#account) {
      this.#account = account
      this.#sharedAt = now
    }
    const lane = this.#laneOf(isCommand ? `commands ${account}` : account, isCommand)
    const hasRoom = this.#hasRoom(lane)
    if (lane.size === 0 && hasRoom && this.#hasTime(now)) return entry.start(this.#begin(lane, now))
    if (!hasRoom) this.#limit.reached()
    if (lane.size === 0) {
      this.#turns.push(lane)
      lane.beginWaiting(entry.since)
    }
    lane.push(entry)
    this.#waiting++
    // Without room, the next place that is given back starts a request.
    if (hasRoom) this.#schedule()
    else this.#sweep()
  }

  /** Takes a place back. `waitedForStorage` is true if its command waited for the storage. */
  leave({ lane, startedAt }: Place, waitedForStorage: boolean): void {
    const now = this.#surroundings.now()
    lane.running--
    this.#running--
    if (waitedForStorage) this.#limit.observe(now - startedAt, now)
    if (this.#waiting > 0) this.#schedule()
    this.#forgetIfIdle(lane)
  }

  /** Refuses all waiting requests. */
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
    if (lane.size === 0 && lane.running === 0) this.#lanes.delete(lane.name)
  }

  /** True while the budget for arriving requests lasts. */
  #hasTime(now: number): boolean {
    if (this.#inputEnds === Infinity) {
      this.#inputEnds = now + this.#turnMillis(now)
      this.#surroundings.atTurnsEnd(() => {
        this.#inputEnds = Infinity
      })
    }
    return now < this.#inputEnds
  }

  #turnMillis(now: number): number {
    return now - this.#sharedAt < SHARED_MILLIS ? TURN_MILLIS_SHARED : TURN_MILLIS
  }

  #hasRoom({ isOfCommands, running }: Lane): boolean {
    return !isOfCommands || running < OWN_PLACES || this.#running < this.#limit.value
  }

  #begin(lane: Lane, now: number): Place | undefined {
    if (!lane.isOfCommands) {
      this.#forgetIfIdle(lane)
      return undefined
    }
    lane.running++
    this.#running++
    return { lane, startedAt: now }
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#surroundings.atTurnsEnd(this.#work)
  }

  /** Starts the requests for which there is time and room, and refuses some of the late ones. */
  readonly #work = (): void => {
    this.#isScheduled = false
    const { now } = this.#surroundings
    const started = now()
    const ends = started + this.#turnMillis(started)
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

  /** Returns how many requests may be refused since the last call, while nothing can start. */
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
      this.#refused++
      refused++
    }
  }

  /** Starts one request of the next account; false if none may start. */
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
      lane.countStart()
      this.#waiting--
      if (lane.size > 0) this.#turns.push(lane)
      entry.start(this.#begin(lane, now))
      return true
    }
    return false
  }

  /** Removes the requests whose clients have left, and those that have waited too long. */
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

  /**
   * Schedules another round for the requests that wait, which become too old even if none arrives and no place is given
   * back.
   */
  #sweep(): void {
    this.#fork(Effect.delay(this.#scheduled, SWEEP_MILLIS))
  }

  readonly #scheduled = Effect.sync(() => this.#schedule())
}
