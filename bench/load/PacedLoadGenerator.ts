/**
 * The paced load generator: a process of its own that sends POSTs at a given rate, or as fast as its connections allow,
 * and notes when each was sent and when its answer was complete. Any answer but a 200 and any lost connection ends the
 * load with a failure, unless the plan is a flood.
 */
import { connect, type Socket } from "node:net"
import { setTimeout as pause } from "node:timers/promises"
import { ResponseReader } from "./ResponseReader.ts"
import { nowMicros } from "./MonotonicClock.ts"
import { keyOf, LOST, type PacedLoadPlan, type PacedLoadRecord } from "./PacedLoadPlan.ts"
import { serve } from "../Worker.ts"

/** An answer may take this long after the last request was sent. */
const GRACE_MILLIS = 15_000
/** Connections that open at once: a server accepts them from a queue of limited length. */
const OPENING_MAX = 200
const OPEN_MILLIS_MAX = 30_000
const REOPEN_PAUSE_MILLIS = 100
const NONE = -1

/** All connections read into this buffer: each chunk is handled before the next read. */
const received = Buffer.allocUnsafe(65_536)

class PacedLoad {
  readonly plan: PacedLoadPlan
  readonly #wanted: Array<number> = []
  readonly #sent: Array<number> = []
  readonly #answered: Array<number> = []
  readonly #statuses: Array<number> = []
  readonly #connections: Array<Connection> = []
  readonly #free: Array<Connection> = []
  readonly #waiting: Array<number> = []
  readonly #settled = Promise.withResolvers<void>()
  /** Heads of the requests, by API key. */
  readonly #heads: ReadonlyArray<string>
  readonly #tail: string
  readonly #requestsMax: number
  reopened = 0
  #leftOut = 0
  #underWay = 0
  #startedMicros = 0
  #over = false
  #pace: NodeJS.Timeout | undefined

  constructor(plan: PacedLoadPlan) {
    this.plan = plan
    const offered = plan.ratePerSecond === null ? Infinity : Math.ceil(plan.ratePerSecond * plan.seconds)
    this.#requestsMax = Math.min(offered, plan.requestsMax ?? Infinity)
    this.#heads = [plan.apiKey]
      .flat()
      .map(
        (apiKey) =>
          `POST ${plan.path} HTTP/1.1\r\nHost: 127.0.0.1:${plan.port}\r\n` +
          `Authorization: Basic ${Buffer.from(`${apiKey}:`).toString("base64")}\r\nX-API-Version: 2026-03-09\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(plan.body)}\r\nIdempotency-Key: `
      )
    this.#tail = `\r\n\r\n${plan.body}`
    // The opening of connections throws such a failure.
    this.#settled.promise.catch(() => {})
  }

  get over(): boolean {
    return this.#over
  }

  async run(): Promise<PacedLoadRecord> {
    const { flood, ratePerSecond, seconds, startAtMicros = 0 } = this.plan
    let timeout: NodeJS.Timeout | undefined
    try {
      await this.#openAll()
      await pause(Math.max(0, startAtMicros - nowMicros()) / 1000)
      const graceMillis = flood === undefined ? GRACE_MILLIS : flood.drainSeconds * 1000
      timeout = setTimeout(() => this.#giveUp(), seconds * 1000 + graceMillis)
      this.#startedMicros = nowMicros()
      if (ratePerSecond === null) this.#beginAll()
      else this.#tick(ratePerSecond)
      await this.#settled.promise
    } finally {
      clearTimeout(timeout)
      clearTimeout(this.#pace)
      this.#over = true
      for (const connection of this.#connections) connection.end()
    }
    return {
      wantedMicros: Float64Array.from(this.#wanted),
      sentMicros: Float64Array.from(this.#sent),
      answeredMicros: Float64Array.from(this.#answered),
      statuses: Uint16Array.from(this.#statuses),
      leftOut: this.#leftOut,
      reopened: this.reopened
    }
  }

  async #openAll(): Promise<void> {
    const { connections } = this.plan
    const late = () => this.fail(`${connections} connections cannot be opened in time.`)
    const timeout = setTimeout(late, OPEN_MILLIS_MAX)
    while (this.#connections.length < connections) {
      const wave = Array.from(
        { length: Math.min(OPENING_MAX, connections - this.#connections.length) },
        () => new Connection(this)
      )
      this.#connections.push(...wave)
      await Promise.race([Promise.all(wave.map(({ opened }) => opened)), this.#settled.promise])
    }
    clearTimeout(timeout)
  }

  #beginAll(): void {
    const connections = Array.from({ length: this.#free.length }, () => this.#takeFree())
    for (const connection of connections) if (connection !== undefined) this.next(connection)
  }

  /** Open loop: sends all requests that are due and schedules the next tick. */
  #tick(ratePerSecond: number): void {
    const microsPerRequest = 1_000_000 / ratePerSecond
    const now = nowMicros()
    for (let due = this.#wanted.length + this.#leftOut; due < this.#requestsMax; due++) {
      const dueMicros = this.#startedMicros + due * microsPerRequest
      if (dueMicros > now) {
        this.#pace = setTimeout(() => this.#tick(ratePerSecond), (dueMicros - now) / 1000)
        return
      }
      const connection = this.#takeFree()
      if (connection !== undefined) connection.send(this.#want(dueMicros))
      else if (this.plan.flood === undefined) this.#waiting.push(this.#want(dueMicros))
      else this.#leftOut++
    }
    this.#wantedAll()
  }

  #takeFree(): Connection | undefined {
    for (let connection = this.#free.pop(); connection !== undefined; connection = this.#free.pop()) {
      connection.isFree = false
      if (connection.isOpen) return connection
    }
    return undefined
  }

  #setFree(connection: Connection): void {
    // A free connection may have been lost.
    if (connection.isFree) return
    connection.isFree = true
    this.#free.push(connection)
  }

  #want(atMicros: number): number {
    this.#underWay++
    this.#statuses.push(LOST)
    return this.#wanted.push(atMicros) - 1
  }

  /** Chooses the next step of a connection without a request. */
  next(connection: Connection): void {
    const request = this.#waiting.shift()
    if (request !== undefined) return connection.send(request)
    if (this.#startedMicros === 0 || this.plan.ratePerSecond !== null) return this.#setFree(connection)
    const now = nowMicros()
    const deadlineMicros = this.#startedMicros + this.plan.seconds * 1_000_000
    if (this.#wanted.length < this.#requestsMax && now < deadlineMicros) connection.send(this.#want(now))
    else this.#wantedAll()
  }

  #wantedAll(): void {
    this.#over = true
    if (this.#underWay === 0) this.#settled.resolve()
  }

  textOf(request: number): string {
    this.#sent[request] = nowMicros()
    return `${this.#heads[request % this.#heads.length]}${keyOf(this.plan.run, request)}${this.#tail}`
  }

  answer(request: number, status: number, text: string): void {
    if (status !== 200 && this.plan.flood?.refusals.includes(status) !== true) {
      return this.fail(`Expected a 200, got:\n${text}`)
    }
    this.#settle(request, status)
  }

  lose(request: number): void {
    if (request !== NONE) this.#settle(request, LOST)
  }

  #settle(request: number, status: number): void {
    this.#answered[request] = nowMicros()
    this.#statuses[request] = status
    this.#underWay--
    if (this.#over && this.#underWay === 0) this.#settled.resolve()
  }

  #giveUp(): void {
    if (this.plan.flood === undefined) return this.fail("A request was not answered.")
    this.#over = true
    for (const connection of this.#connections) connection.end()
  }

  fail(problem: string): void {
    this.#settled.reject(new Error(problem))
  }
}

/** A connection, which reopens in a flood after a loss. */
class Connection {
  /** Resolves at the first opening. */
  readonly opened: Promise<void>
  readonly #load: PacedLoad
  readonly #open = Promise.withResolvers<void>()
  /** True while the connection is on the list of free ones. */
  isFree = false
  isOpen = false
  #reader = new ResponseReader()
  #socket: Socket
  #request = NONE

  constructor(load: PacedLoad) {
    this.#load = load
    this.opened = this.#open.promise
    this.#socket = this.#connect()
  }

  send(request: number): void {
    this.#request = request
    this.#socket.write(this.#load.textOf(request), "latin1")
  }

  /** Gives up the request under way. */
  end(): void {
    this.#socket.destroy()
    this.#lose()
  }

  #connect(): Socket {
    const onread = { buffer: received, callback: (length: number) => this.#receive(length) }
    const socket = connect({ host: "127.0.0.1", port: this.#load.plan.port, noDelay: true, onread })
    let problem = "The server closed a connection."
    socket.on("error", (error) => (problem = `A connection failed: ${error.message}`))
    socket.on("close", () => this.#closed(problem))
    socket.on("connect", () => {
      this.isOpen = true
      this.#open.resolve()
      this.#load.next(this)
    })
    return socket
  }

  #receive(length: number): boolean {
    try {
      if (!this.#reader.push(received, length)) return true
    } catch (error) {
      this.#load.fail(String(error))
      return true
    }
    const request = this.#request
    this.#request = NONE
    if (request === NONE) {
      this.#load.fail(`An answer to nothing:\n${this.#reader.text}`)
      return true
    }
    this.#load.answer(request, this.#reader.status, this.#reader.text)
    this.#reader.reset()
    this.#load.next(this)
    return true
  }

  #closed(problem: string): void {
    this.isOpen = false
    if (this.#load.over && this.#request === NONE) return
    if (this.#load.plan.flood === undefined) return this.#load.fail(problem)
    this.#lose()
    this.#load.reopened++
    this.#reader = new ResponseReader()
    setTimeout(() => {
      if (!this.#load.over) this.#socket = this.#connect()
    }, REOPEN_PAUSE_MILLIS)
  }

  #lose(): void {
    const request = this.#request
    this.#request = NONE
    this.#load.lose(request)
  }
}

serve((plan: PacedLoadPlan) => new PacedLoad(plan).run())
