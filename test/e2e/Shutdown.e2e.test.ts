/**
 * The real service stops under load. A client that keeps its connections and honours `Connection: close` loses nothing.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as http from "node:http"
import { connect } from "node:net"
import { basic } from "../support/HttpExchange.ts"
import { runs } from "../support/Runs.ts"
import { isStarved } from "../support/Starvation.ts"
import { KEYS, pause, startTill, type TillProcess, until } from "../support/TillProcess.ts"

const STOPS = runs(Number(process.env["TILL_RESTARTS"] ?? 6), 1)
const CLIENTS = 32
const IDLE_CLIENTS = 8
const REFUSED_PAUSE_MILLIS = 50
/**
 * The process may take ten minutes to end, and each of its waits for a connection that does not end grows with that.
 * A stop that waits for none of them ends long before the bound, also on a busy machine.
 */
const DRAIN_SECONDS = 600
const STOP_MILLIS_MAX = 120_000

const HEADERS = { authorization: basic(KEYS.secretTest), "content-type": "application/json" }
const BODY = JSON.stringify({ amount: 2000, currency: "usd" })

interface Tally {
  isStopping: boolean
  answered: number
  /** Answers with `Connection: close`. */
  closing: number
  /** Error codes of lost answers, and statuses of wrong ones. */
  readonly lost: Array<string>
}

interface Sent {
  readonly connection?: string
  readonly status?: number
  readonly lost?: string
}

/** Sends one request; returns the answer's status and `Connection` header, or the error that lost the answer. */
const send = (till: TillProcess, agent: http.Agent, idempotencyKey: string) =>
  new Promise<Sent>((resolve) => {
    const lost = (error: NodeJS.ErrnoException) => resolve({ lost: error.code ?? error.message })
    const headers = { ...HEADERS, "idempotency-key": idempotencyKey, "content-length": BODY.length }
    const address = { host: "127.0.0.1", port: till.port, path: "/v1/payment_intents", method: "POST", headers, agent }
    const request = http.request(address, (response) => {
      const { connection = "" } = response.headers
      response.on("error", lost).on("end", () => resolve({ connection, status: response.statusCode! }))
      response.resume()
    })
    request.on("error", lost).end(BODY)
  })

/**
 * Sends one request after the other, with a pause between them, until an answer closes the connection or the connection
 * is lost.
 */
const client = async (till: TillProcess, name: string, pauseMillis: number, tally: Tally) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  for (let i = 0; ;) {
    const { connection, lost, status } = await send(till, agent, `${name}-${i}`)
    const isRefused = status === 503 && (!tally.isStopping || isStarved())
    if (lost !== undefined || (status !== 200 && !isRefused)) {
      tally.lost.push(lost ?? String(status))
      break
    }
    if (!isRefused) {
      i++
      tally.answered++
    }
    if (connection === "close") {
      tally.closing++
      break
    }
    if (isRefused || pauseMillis > 0) await pause(Math.max(pauseMillis, isRefused ? REFUSED_PAUSE_MILLIS : 0))
  }
  agent.destroy()
}

/** Sends one request and keeps the idle connection. */
const idleClient = (till: TillProcess) => {
  const answered = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<string>()
  const socket = connect(till.port, "127.0.0.1", () => socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
  socket.once("data", () => answered.resolve())
  socket.on("error", (error: NodeJS.ErrnoException) => ended.resolve(error.code ?? error.message))
  socket.on("end", () => ended.resolve("end"))
  return { answered: answered.promise, ended: ended.promise }
}

/** Stops the service while all clients send. */
const stop = async (till: TillProcess, round: number) => {
  const tally: Tally = { isStopping: false, answered: 0, closing: 0, lost: [] }
  const clients = Array.from({ length: CLIENTS }, (_, i) =>
    // Half of the clients always wait for an answer; the others may be about to send.
    client(till, `stop-${round}-${i}`, i % 2 === 0 ? 0 : i, tally)
  )
  const idle = Array.from({ length: IDLE_CLIENTS }, () => idleClient(till))
  await Promise.all(idle.map(({ answered }) => answered))
  await until("each client has its first answer", () => tally.answered > CLIENTS)
  await pause(200 + 37 * round)
  tally.isStopping = true
  const begun = performance.now()
  const { code } = await till.kill("SIGTERM")
  const millis = performance.now() - begun
  await Promise.all(clients)
  return { code, millis, tally, ends: await Promise.all(idle.map(({ ended }) => ended)) }
}

describe("a service that is stopped under load", () => {
  it.live(
    "resets no connection, and ends in time",
    () =>
      Effect.flatMap(startTill({ variables: { TILL_DRAIN_SECONDS: String(DRAIN_SECONDS) } }), (till) =>
        Effect.promise(async () => {
          for (let round = 0; round < STOPS; round++) {
            if (round > 0) await till.start()
            const { code, ends, millis, tally } = await stop(till, round)
            assert.strictEqual(code, 0, till.stderr)
            assert.isAbove(tally.answered, CLIENTS)
            assert.deepStrictEqual(tally.lost, [])
            assert.strictEqual(tally.closing, CLIENTS)
            assert.deepStrictEqual(ends, Array<string>(IDLE_CLIENTS).fill("end"))
            assert.isBelow(millis, STOP_MILLIS_MAX)
          }
        })
      ),
    600_000 + STOPS * 40_000
  )
})
