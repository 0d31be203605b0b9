/**
 * A flood of POSTs from a process of its own: `node FloodProcess.ts '{"port":…}'` with a `FloodPlan`; prints a
 * `FloodReport`.
 *
 * Without a rate the loop is closed: every connection sends its next request after each answer, refusals included. With
 * a rate, each request is sent when it is due, over a free connection, and is left out if none is free. Any answer is
 * allowed; a request without an answer, such as on a connection that ends, counts as lost.
 */
import { randomUUID } from "node:crypto"
import { connect, type Socket } from "node:net"
import { ResponseReader } from "../../bench/load/ResponseReader.ts"

export interface FloodPlan {
  readonly port: number
  readonly apiKey: string
  readonly connections: number
  readonly seconds: number
  /** Requests per second; without it, as many as the connections allow. */
  readonly ratePerSecond?: number
  readonly path: string
  readonly body: object
  /** True if the report lists the ids of the created objects. */
  readonly ids?: boolean
}

export interface FloodReport {
  /** Number of answers by status. */
  readonly statuses: Readonly<Record<number, number>>
  readonly lost: number
  /** Answers with 200, and all others: milliseconds from the sending, and answers per second. */
  readonly accepted: Timings
  readonly refused: Timings
  /** 503s without `Retry-After`, or without the body of an error. */
  readonly malformed: ReadonlyArray<string>
  readonly ids: ReadonlyArray<string>
}

export interface Timings {
  readonly p50: number
  readonly p99: number
  readonly max: number
  readonly perSecond: ReadonlyArray<number>
}

/** Time for the last answers. */
const GRACE_MILLIS = 20_000
const MALFORMED_MAX = 10

class Timing {
  readonly #millis: Array<number> = []
  readonly #perSecond: Array<number> = []

  add(millis: number, second: number): void {
    this.#millis.push(millis)
    while (this.#perSecond.length <= second) this.#perSecond.push(0)
    this.#perSecond[second]!++
  }

  report(): Timings {
    const ascending = Float64Array.from(this.#millis).toSorted()
    const at = (part: number) => ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * part))] ?? 0
    return { p50: at(0.5), p99: at(0.99), max: at(1), perSecond: this.#perSecond }
  }
}

class Flood {
  readonly #plan: FloodPlan
  readonly #head: string
  readonly #tail: string
  readonly #accepted = new Timing()
  readonly #refused = new Timing()
  readonly #statuses: Record<number, number> = {}
  readonly #malformed: Array<string> = []
  readonly #ids: Array<string> = []
  readonly #idle: Array<() => void> = []
  readonly #sockets: Array<Socket> = []
  readonly #run = randomUUID()
  #startedAt = 0
  #sent = 0
  #underWay = 0
  #lost = 0

  constructor(plan: FloodPlan) {
    this.#plan = plan
    const body = JSON.stringify(plan.body)
    this.#head =
      `POST ${plan.path} HTTP/1.1\r\nHost: 127.0.0.1:${plan.port}\r\n` +
      `Authorization: Basic ${Buffer.from(`${plan.apiKey}:`).toString("base64")}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nIdempotency-Key: `
    this.#tail = `\r\n\r\n${body}`
  }

  async run(): Promise<FloodReport> {
    const { connections, ratePerSecond, seconds } = this.#plan
    // Few at a time, so that the queue of connections to accept does not overflow.
    for (let opened = 0; opened < connections; opened += 100) {
      const count = Math.min(100, connections - opened)
      this.#idle.push(...(await Promise.all(Array.from({ length: count }, () => this.#open()))))
    }
    this.#startedAt = performance.now()
    const deadline = this.#startedAt + seconds * 1000
    if (ratePerSecond === undefined) for (const send of this.#idle.splice(0)) send()
    for (let due = 0; performance.now() < deadline;) {
      await new Promise((resolve) => setTimeout(resolve, 1))
      if (ratePerSecond === undefined) continue
      due = ((performance.now() - this.#startedAt) / 1000) * ratePerSecond
      while (this.#sent < due && this.#idle.length > 0) this.#idle.shift()!()
    }
    for (const graceEnd = deadline + GRACE_MILLIS; this.#underWay > 0 && performance.now() < graceEnd;) {
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    for (const socket of this.#sockets) socket.destroy()
    return {
      statuses: this.#statuses,
      lost: this.#lost + this.#underWay,
      accepted: this.#accepted.report(),
      refused: this.#refused.report(),
      malformed: this.#malformed,
      ids: this.#ids
    }
  }

  #count(status: number, text: string, millis: number): void {
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1
    const second = Math.floor((performance.now() - this.#startedAt) / 1000)
    if (status === 200) {
      this.#accepted.add(millis, second)
      if (this.#plan.ids === true) this.#ids.push(/"id":"([^"]+)"/.exec(text)![1]!)
      return
    }
    this.#refused.add(millis, second)
    const isWhole = /\r\nretry-after: \d+\r\n/i.test(text) && text.includes('"code":"service_unavailable"')
    if (!isWhole && this.#malformed.length < MALFORMED_MAX) this.#malformed.push(text)
  }

  /** Opens a connection; the returned function sends its next request. */
  #open(): Promise<() => void> {
    const reader = new ResponseReader()
    const socket = connect({ host: "127.0.0.1", port: this.#plan.port, noDelay: true })
    let sentAt: number | undefined
    const send = () => {
      sentAt = performance.now()
      this.#underWay++
      socket.write(`${this.#head}${this.#run}-${this.#sent++}${this.#tail}`, "latin1")
    }
    const next = () => {
      const { ratePerSecond, seconds } = this.#plan
      if (ratePerSecond !== undefined) this.#idle.push(send)
      else if (performance.now() < this.#startedAt + seconds * 1000) send()
    }
    socket.on("data", (bytes: Buffer) => {
      if (!reader.push(bytes, bytes.length)) return
      this.#count(reader.status, reader.text, performance.now() - sentAt!)
      reader.reset()
      this.#underWay--
      sentAt = undefined
      next()
    })
    socket.on("close", () => {
      if (sentAt === undefined) return
      this.#lost++
      this.#underWay--
    })
    this.#sockets.push(socket)
    return new Promise((resolve) => {
      // A connection that fails counts as lost and sends nothing.
      socket.on("error", () => resolve(() => {}))
      socket.on("connect", () => resolve(send))
    })
  }
}

if (process.argv[1] === import.meta.filename) {
  const report = await new Flood(JSON.parse(process.argv[2]!) as FloodPlan).run()
  process.stdout.write(JSON.stringify(report), () => process.exit())
}
