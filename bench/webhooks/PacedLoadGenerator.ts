/**
 * The paced load generator: a process of its own that sends POSTs at a given rate, or as fast as its connections allow,
 * and notes when each was sent and when its answer was complete. Any answer but a 200 and any lost connection ends the
 * load with a failure.
 */
import type { Socket } from "node:net"
import { connect } from "node:net"
import { ResponseReader } from "../load/ResponseReader.ts"
import { keyOf } from "./Delivery.ts"
import { nowMicros } from "./MonotonicClock.ts"
import type { PacedLoadPlan, PacedLoadRecord } from "./PacedLoadPlan.ts"
import { serve } from "../Worker.ts"

/** An answer may take this long after the last request was sent. */
const GRACE_MILLIS = 15_000

type Send = (request: number) => void

class PacedLoad {
  readonly #plan: PacedLoadPlan
  readonly #wanted: Array<number> = []
  readonly #sent: Array<number> = []
  readonly #answered: Array<number> = []
  readonly #sockets: Array<Socket> = []
  readonly #free: Array<Send> = []
  readonly #waiting: Array<number> = []
  readonly #settled = Promise.withResolvers<void>()
  readonly #head: string
  readonly #requestsMax: number
  #underWay = 0
  #startedMicros = 0
  #over = false
  #pace: NodeJS.Timeout | undefined

  constructor(plan: PacedLoadPlan) {
    this.#plan = plan
    const offered = plan.ratePerSecond === null ? Infinity : Math.ceil(plan.ratePerSecond * plan.seconds)
    this.#requestsMax = Math.min(offered, plan.requestsMax ?? Infinity)
    this.#head =
      `POST ${plan.path} HTTP/1.1\r\nHost: 127.0.0.1:${plan.port}\r\n` +
      `Authorization: Basic ${Buffer.from(`${plan.apiKey}:`).toString("base64")}\r\nX-API-Version: 2026-03-09\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(plan.body)}\r\nIdempotency-Key: `
    // A failure while connections are being opened is reported by `#open`.
    this.#settled.promise.catch(() => {})
  }

  async run(): Promise<PacedLoadRecord> {
    const { connections, ratePerSecond, seconds } = this.#plan
    const timeout = setTimeout(() => this.#fail("A request was not answered."), seconds * 1000 + GRACE_MILLIS)
    try {
      this.#free.push(...(await Promise.all(Array.from({ length: connections }, () => this.#open()))))
      this.#startedMicros = nowMicros()
      if (ratePerSecond === null) for (const send of this.#free.splice(0)) this.#next(send)
      else this.#tick(ratePerSecond)
      await this.#settled.promise
    } finally {
      clearTimeout(timeout)
      clearTimeout(this.#pace)
      this.#over = true
      for (const socket of this.#sockets) socket.destroy()
    }
    return {
      wantedMicros: Float64Array.from(this.#wanted),
      sentMicros: Float64Array.from(this.#sent),
      answeredMicros: Float64Array.from(this.#answered)
    }
  }

  /** Open loop: asks for all requests that are due by now, and comes again for the next. */
  #tick(ratePerSecond: number): void {
    const microsPerRequest = 1_000_000 / ratePerSecond
    const now = nowMicros()
    while (this.#wanted.length < this.#requestsMax) {
      const dueMicros = this.#startedMicros + this.#wanted.length * microsPerRequest
      if (dueMicros > now) {
        this.#pace = setTimeout(() => this.#tick(ratePerSecond), (dueMicros - now) / 1000)
        return
      }
      const send = this.#free.pop()
      const request = this.#want(dueMicros)
      if (send === undefined) this.#waiting.push(request)
      else send(request)
    }
    this.#wantedAll()
  }

  #want(atMicros: number): number {
    this.#underWay++
    return this.#wanted.push(atMicros) - 1
  }

  /** Decides what a connection without a request does next. */
  #next(send: Send): void {
    const request = this.#waiting.shift()
    if (request !== undefined) return send(request)
    if (this.#plan.ratePerSecond !== null) return void this.#free.push(send)
    const now = nowMicros()
    const deadlineMicros = this.#startedMicros + this.#plan.seconds * 1_000_000
    if (this.#wanted.length < this.#requestsMax && now < deadlineMicros) send(this.#want(now))
    else this.#wantedAll()
  }

  #wantedAll(): void {
    this.#over = true
    if (this.#underWay === 0) this.#settled.resolve()
  }

  #answer(request: number, status: number, text: string): void {
    if (status !== 200) return this.#fail(`Expected a 200, got:\n${text}`)
    this.#answered[request] = nowMicros()
    this.#underWay--
    if (this.#over && this.#underWay === 0) this.#settled.resolve()
  }

  #fail(problem: string): void {
    this.#settled.reject(new Error(problem))
  }

  /** Opens a connection; the result sends a request over it. */
  #open(): Promise<Send> {
    const reader = new ResponseReader()
    const tail = `\r\n\r\n${this.#plan.body}`
    let underWay = -1
    const socket = connect({ host: "127.0.0.1", port: this.#plan.port, noDelay: true })
    const send = (request: number) => {
      underWay = request
      this.#sent[request] = nowMicros()
      socket.write(`${this.#head}${keyOf(this.#plan.run, request)}${tail}`, "latin1")
    }
    socket.on("data", (bytes: Buffer) => {
      try {
        if (!reader.push(bytes, bytes.length)) return
      } catch (error) {
        return this.#fail(String(error))
      }
      this.#answer(underWay, reader.status, reader.text)
      reader.reset()
      this.#next(send)
    })
    this.#sockets.push(socket)
    socket.on("close", () => this.#fail("The server closed a connection."))
    return new Promise((resolve, reject) => {
      socket.on("error", (error) => {
        reject(error)
        this.#fail(`A connection failed: ${error.message}`)
      })
      socket.on("connect", () => resolve(send))
    })
  }
}

serve((plan: PacedLoadPlan) => new PacedLoad(plan).run())
