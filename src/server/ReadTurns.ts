/**
 * Bounds the requests that a turn of the event loop takes from connections of one account (semantics limits.turns). The
 * rest of a burst waits with its bytes unparsed, in turns among accounts, so other accounts' requests are taken as they
 * arrive.
 *
 * A connection counts for the account of its last request, or for the address of a client that is not authenticated;
 * connections without a request share one holder.
 */
import { Fifo } from "../engine/process/Fifo.ts"

/** Requests of one holder that a turn of the event loop takes as they arrive. */
const TAKEN_MAX = 64
/** The time budget per turn for connections that wait, in milliseconds. */
const TURN_MILLIS = 1

/** A connection with the bytes of a request. */
export interface Connection {
  /** Handles the request. Called once, also if the connection has closed. */
  readonly take: () => void
}

/** The holder of connections: an account or an address. */
class Holder extends Fifo<Connection> {
  readonly name: string
  connections = 0
  /** Requests taken in the turn of this number. */
  taken = 0
  turn = 0

  constructor(name: string) {
    super()
    this.name = name
  }
}
export type { Holder }

/** The time, and the turns of the event loop. */
export interface Surroundings {
  readonly now: () => number
  /** Calls a function at the end of the event loop's turn. */
  readonly atTurnsEnd: (step: () => void) => void
}

const eventLoop: Surroundings = { now: () => performance.now(), atTurnsEnd: setImmediate }

/** The holder of connections without a request. */
const UNKNOWN = ""

export class ReadTurns {
  readonly #surroundings: Surroundings
  readonly #holders = new Map<string, Holder>()
  /** Holders with waiting connections, in the order of their turns. */
  readonly #waiting = new Fifo<Holder>()
  #turn = 1
  #isTurning = false
  #isScheduled = false

  constructor(surroundings: Surroundings = eventLoop) {
    this.#surroundings = surroundings
  }

  /** Holders with connections. */
  get size(): number {
    return this.#holders.size
  }

  /** Counts a connection for a holder, and returns the holder. */
  hold(name: string = UNKNOWN): Holder {
    let holder = this.#holders.get(name)
    if (holder === undefined) {
      holder = new Holder(name)
      this.#holders.set(name, holder)
    }
    holder.connections++
    return holder
  }

  /** Stops counting a connection for its holder. A waiting connection keeps its turn. */
  release(holder: Holder): void {
    if (--holder.connections === 0) this.#holders.delete(holder.name)
  }

  /** Lets a connection take its request, now or in its turn. */
  enter(holder: Holder, connection: Connection): void {
    if (holder.size === 0) {
      if (this.#hasRoom(holder)) return connection.take()
      this.#waiting.push(holder)
    }
    holder.push(connection)
    this.#schedule()
  }

  #hasRoom(holder: Holder): boolean {
    if (!this.#isTurning) {
      this.#isTurning = true
      this.#surroundings.atTurnsEnd(this.#endTurn)
    }
    if (holder.turn !== this.#turn) {
      holder.turn = this.#turn
      holder.taken = 0
    }
    return holder.taken++ < TAKEN_MAX
  }

  readonly #endTurn = (): void => {
    this.#isTurning = false
    this.#turn++
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#surroundings.atTurnsEnd(this.#work)
  }

  readonly #work = (): void => {
    this.#isScheduled = false
    const { now } = this.#surroundings
    const ends = now() + TURN_MILLIS
    while (this.#waiting.size > 0) {
      if (now() >= ends) return this.#schedule()
      const holder = this.#waiting.shift()
      const connection = holder.shift()
      if (holder.size > 0) this.#waiting.push(holder)
      connection.take()
    }
  }
}
