/**
 * A network between Till and a gateway that loses, delays, doubles and forges answers. No forgery has the gateway's
 * signature for its own request, so none may count.
 */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"
import type { Random } from "../support/SeededRandom.ts"
import { pause } from "../support/TillProcess.ts"

interface Message {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: Buffer
}

/** Kept signed answers, which are sent again in place of others. */
const KEPT_MAX = 50
interface Delays {
  /** The longest delay of a request or an answer, in milliseconds. */
  readonly lateMillisMax: number
  readonly tooLateMillis: number
}
/** "Too late" is longer than Till's client waits. */
const DELAYS: Delays = { lateMillisMax: 6000, tooLateMillis: 24_000 }

/** The treatment of one request, by the chance of each in percent; the rest passes. */
const TREATMENTS = {
  "request lost": 5,
  "answer lost": 12,
  "answer late": 6,
  "answer too late": 0.5,
  "request late": 4,
  "request twice": 4,
  "answer of another request": 4,
  "unsigned approval": 3,
  "unsigned denial": 3,
  "error page of a proxy": 3,
  "answer cut off": 3
} as const
type Treatment = keyof typeof TREATMENTS

export class GatewayProxy {
  /** Requests pass unchanged unless true. */
  isFaulty = false
  readonly counts = new Map<Treatment, number>()
  readonly #server: http.Server
  readonly #port: number
  readonly #random: Random
  readonly #delays: Delays
  readonly #kept: Array<Message> = []

  private constructor(port: number, random: Random, delays: Delays) {
    this.#port = port
    this.#random = random
    this.#delays = delays
    this.#server = http.createServer((request, response) => {
      this.#pass(request, response).catch(() => response.destroy())
    })
  }

  static start(port: number, random: Random, delays: Delays = DELAYS): Promise<GatewayProxy> {
    const proxy = new GatewayProxy(port, random, delays)
    return new Promise((resolve) => proxy.#server.listen(0, "127.0.0.1", () => resolve(proxy)))
  }

  get url(): string {
    return `http://localhost:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #pass(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const sent = { status: 0, headers: request.headers, body: await buffer(request) }
    const treatment = this.isFaulty ? this.#choose() : undefined
    if (treatment === undefined) return answer(response, await this.#ask(sent))
    this.counts.set(treatment, (this.counts.get(treatment) ?? 0) + 1)
    return this.#treat(treatment, sent, response)
  }

  #late(): number {
    return this.#random.integer(1, this.#delays.lateMillisMax)
  }

  #choose(): Treatment | undefined {
    let left = this.#random.next() * 100
    for (const [name, chance] of Object.entries(TREATMENTS)) {
      left -= chance
      if (left < 0) return name as Treatment
    }
    return undefined
  }

  async #treat(treatment: Treatment, sent: Message, response: http.ServerResponse): Promise<void> {
    switch (treatment) {
      case "request lost":
        return void response.destroy()
      case "answer lost":
        await this.#ask(sent)
        return void response.destroy()
      case "answer late":
      case "answer too late": {
        const asked = await this.#ask(sent)
        await pause(treatment === "answer late" ? this.#late() : this.#delays.tooLateMillis)
        return answer(response, asked)
      }
      case "request late":
        // Till has given the request up, and may have repeated it or fenced it off.
        response.destroy()
        await pause(this.#late())
        return void (await this.#ask(sent))
      case "request twice":
        return answer(response, (await Promise.all([this.#ask(sent), this.#ask(sent)]))[0])
      case "answer of another request": {
        const asked = await this.#ask(sent)
        return answer(response, this.#kept.length < 2 ? asked : this.#random.pick(this.#kept.slice(0, -1)))
      }
      case "answer cut off": {
        const { body, headers, status } = await this.#ask(sent)
        response.writeHead(status, { ...headers, "content-length": body.length })
        response.write(body.subarray(0, body.length / 2))
        return void setTimeout(() => response.destroy(), 20)
      }
      default:
        return answer(response, forged(treatment, sent))
    }
  }

  async #ask({ body, headers: all }: Message): Promise<Message> {
    const { connection: _, ...headers } = all
    const asked = await new Promise<Message>((resolve, reject) => {
      const address = { host: "127.0.0.1", port: this.#port, method: "POST", path: "/", headers, agent: false }
      const request = http.request(address, (response) => {
        const whole = ({ headers, statusCode = 0 }: http.IncomingMessage) => {
          const { connection: _, "keep-alive": __, "transfer-encoding": ___, ...kept } = headers
          return buffer(response).then((body) => resolve({ status: statusCode, headers: kept, body }), reject)
        }
        void whole(response)
      })
      request.once("error", reject)
      request.end(body)
    })
    this.#kept.push(asked)
    if (this.#kept.length > KEPT_MAX) this.#kept.shift()
    return asked
  }
}

/** An answer that the gateway has not given. */
const forged = (treatment: Treatment, { body, headers }: Message): Message => {
  const { id: asked, operation } = JSON.parse(body.toString())
  const { amount, currency, id = asked, payment } = operation ?? {}
  const text = (status: number, value: object): Message => ({
    status,
    headers: { "content-type": "application/json", "webhook-id": headers["webhook-id"] },
    body: Buffer.from(JSON.stringify(value))
  })
  switch (treatment) {
    case "unsigned approval":
      return text(200, { id, status: "approved", payment, reference: "forged", amount, currency })
    case "unsigned denial":
      return text(200, { id, status: "not_executed" })
    default:
      return { status: 502, headers: { "content-type": "text/html" }, body: Buffer.from("<h1>502 Bad Gateway</h1>") }
  }
}

const answer = (response: http.ServerResponse, { body, headers, status }: Message): void => {
  const given = Object.entries(headers).filter(([, value]) => value !== undefined)
  response.writeHead(status, { ...Object.fromEntries(given), "content-length": body.length }).end(body)
}
