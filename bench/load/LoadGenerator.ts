/**
 * The load generator: a process of its own, so that it shares no event loop and no garbage collector with a server.
 *
 * Closed loop: every connection sends its next request when the last one is answered. After the deadline, or when there
 * are no requests left, it waits for what is under way, so that every request counts exactly once. The latency of every
 * request is recorded. Any status other than 200, any wrong answer and any lost connection ends the load with a
 * failure.
 */
import { randomUUID } from "node:crypto"
import { connect, type Socket } from "node:net"
import type { LoadPlan, LoadResult, Requests } from "./LoadPlan.ts"
import { Samples } from "./Percentiles.ts"
import { ResponseReader } from "./ResponseReader.ts"
import { serve } from "../Worker.ts"

/** An answer may take this long after the deadline. */
const GRACE_MILLIS = 15_000
const RECEIVE_BUFFER_BYTES = 65_536

/** Yields the texts of the requests, then null; every POST has a new Idempotency-Key. */
const requestTexts = (port: number, { apiKeys, body, method, paths, pathsOnce }: Requests): (() => string | null) => {
  const run = randomUUID()
  const heads = Array.from({ length: lowestCommonMultiple(paths.length, apiKeys.length) }, (_, i) => {
    const credential = Buffer.from(`${apiKeys[i % apiKeys.length]}:`).toString("base64")
    return (
      `${method} ${paths[i % paths.length]} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n` +
      `Authorization: Basic ${credential}\r\nX-API-Version: 2026-03-09\r\n`
    )
  })
  const rest = body === null ? "" : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
  const countMax = pathsOnce === true ? paths.length : Infinity
  let count = 0
  return () => {
    if (count === countMax) return null
    const number = count++
    const head = heads[number % heads.length]!
    return body === null ? `${head}\r\n` : `${head}${rest}Idempotency-Key: bench-${run}-${number}\r\n\r\n${body}`
  }
}

const lowestCommonMultiple = (a: number, b: number): number => {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))
  return (a * b) / divisor(a, b)
}

/** One load, from opening its connections to the last answer. */
class Load {
  readonly plan: LoadPlan
  readonly nextText: () => string | null
  readonly latencies = new Samples()
  readonly sockets: Array<Socket> = []
  /** Time after which no request is sent. */
  deadline = Infinity
  open = 0
  readonly #settled = Promise.withResolvers<void>()

  constructor(plan: LoadPlan) {
    this.plan = plan
    this.nextText = requestTexts(plan.port, plan.requests)
    // `openConnection` reports a failure while connections open.
    this.#settled.promise.catch(() => {})
  }

  async run(): Promise<LoadResult> {
    const loadMillis = this.plan.seconds * 1000
    const timeout = setTimeout(() => this.fail("A request was not answered."), loadMillis + GRACE_MILLIS)
    try {
      const { connections, otherPorts = [], port } = this.plan
      const ports = [port, ...otherPorts]
      const opened = Array.from({ length: connections }, (_, i) => openConnection(this, ports[i % ports.length]!))
      const starts = await Promise.all(opened)
      const cpu = process.cpuUsage()
      const started = performance.now()
      this.deadline = started + loadMillis
      this.open = starts.length
      for (const start of starts) start()
      await this.#settled.promise
      return this.#result(performance.now() - started, process.cpuUsage(cpu))
    } finally {
      clearTimeout(timeout)
      for (const socket of this.sockets) socket.destroy()
    }
  }

  connectionDone(): void {
    this.open--
    if (this.open === 0) this.#settled.resolve()
  }

  fail(problem: string): void {
    this.deadline = 0
    this.#settled.reject(new Error(problem))
  }

  #result(elapsedMillis: number, cpu: NodeJS.CpuUsage): LoadResult {
    const ascending = this.latencies.ascending()
    return {
      acknowledged: ascending.length,
      elapsedMillis,
      requestsPerSecond: (ascending.length / elapsedMillis) * 1000,
      latencies: ascending,
      generatorMicros: (cpu.user + cpu.system) / ascending.length
    }
  }
}

/** Opens a connection; the returned function starts its requests. */
const openConnection = (load: Load, port: number): Promise<() => void> => {
  const reader = new ResponseReader()
  let sentAt = 0
  let done = false

  const send = () => {
    const text = performance.now() < load.deadline ? load.nextText() : null
    if (text === null) {
      done = true
      return load.connectionDone()
    }
    sentAt = performance.now()
    socket.write(text, "latin1")
  }

  const receive = (length: number, bytes: Uint8Array): boolean => {
    try {
      if (!reader.push(bytes as Buffer, length)) return true
    } catch (error) {
      load.fail(String(error))
      return true
    }
    load.latencies.add(performance.now() - sentAt)
    if (reader.status !== 200 || !reader.text.includes(load.plan.expect)) {
      load.fail(`Expected a 200 with ${load.plan.expect}, got:\n${reader.text}`)
      return true
    }
    reader.reset()
    send()
    return true
  }

  const socket = connect({
    host: "127.0.0.1",
    port,
    noDelay: true,
    // One buffer per connection for as long as it lives, instead of a new one per chunk.
    onread: { buffer: Buffer.allocUnsafe(RECEIVE_BUFFER_BYTES), callback: receive }
  })
  load.sockets.push(socket)
  socket.on("close", () => {
    if (!done) load.fail("The server closed a connection.")
  })
  return new Promise((resolve, reject) => {
    socket.on("error", (error) => {
      reject(error)
      load.fail(`A connection failed: ${error.message}`)
    })
    socket.on("connect", () => resolve(send))
  })
}

serve((plan: LoadPlan) => new Load(plan).run())
