/** A load far beyond Till's capacity from other connections, during which no acknowledged write may be lost. */
import * as http from "node:http"
import { KEYS, pause } from "../../support/TillProcess.ts"
import { basic } from "../../support/HttpExchange.ts"
import { type Context, type Row, scene } from "../Scene.ts"

const ROUNDS = 3
const CONNECTIONS = 1500
const FLOOD_MILLIS = 5000
const FAULT = `overload, ${CONNECTIONS} connections`

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => {
  let [accepted, refused] = [0, 0]
  const options = {
    fault: FAULT,
    remark: "a flood of reads and of writes that are not valid, in the account of the clients."
  }
  const row = await scene(context, options, async (scene) => {
    for (let round = 0; round < ROUNDS * context.times; round++) {
      await scene.round(async (began) => {
        const flood = new Flood(scene.service.port)
        flood.start()
        await pause(FLOOD_MILLIS)
        await flood.stop()
        began()
        accepted += flood.answered
        refused += flood.refused
      })
    }
  })
  return [{ ...row, remark: `${row.remark} ${accepted} of them were answered, ${refused} refused with 429 or 503.` }]
}

/** Connections that send without a pause and leave nothing behind: their writes are refused for the body. */
class Flood {
  answered = 0
  refused = 0
  #isOver = false
  #working: Promise<unknown> | undefined
  readonly #port: number
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS })

  constructor(port: number) {
    this.#port = port
  }

  start(): void {
    this.#working = Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => this.#ask(i)))
  }

  /** Ends requests under way, too. */
  async stop(): Promise<void> {
    this.#isOver = true
    this.#agent.destroy()
    await this.#working
  }

  async #ask(index: number): Promise<void> {
    while (!this.#isOver) {
      const status = await this.#once(index % 2 === 0)
      if (status === 429 || status === 503) this.refused++
      else if (status !== undefined) this.answered++
      else await pause(50)
    }
  }

  /** Returns undefined without an answer. */
  #once(writes: boolean): Promise<number | undefined> {
    const body = JSON.stringify({ amount: -1, currency: "eur" })
    const headers = {
      authorization: basic(KEYS.secretTest),
      ...(writes && { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
    }
    const address = { host: "127.0.0.1", port: this.#port, agent: this.#agent, headers }
    return new Promise((resolve) => {
      const ask = writes
        ? { ...address, method: "POST", path: "/v1/payment_intents" }
        : { ...address, method: "GET", path: "/v1/payment_intents?limit=10" }
      const request = http.request(ask, (response) => {
        response.resume()
        response.once("close", () => resolve(response.statusCode))
      })
      request.once("error", () => resolve(undefined))
      request.end(writes ? body : undefined)
    })
  }
}
