/**
 * A correct webhook receiver: it accepts every delivery, checks its signature, and keeps the first one of each event.
 */
import { createHmac } from "node:crypto"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import type { Destination } from "./Traffic.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- whatever was delivered
type Event = any

export class Receiver {
  readonly deliveries = new Map<string, Event>()
  readonly problems: Array<string> = []
  /** Events of repeated deliveries, one entry for each. */
  readonly repeated: Array<string> = []
  #secret: string | undefined
  readonly #server: http.Server

  private constructor() {
    this.#server = http.createServer((request, response) => {
      this.#take(request).then(
        () => response.writeHead(200).end(),
        () => request.socket.destroy()
      )
    })
  }

  static start(): Promise<Receiver> {
    const receiver = new Receiver()
    return new Promise((resolve) => receiver.#server.listen(0, "127.0.0.1", () => resolve(receiver)))
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`
  }

  /** Subscribes this receiver to all events. */
  async subscribe(exchange: Destination): Promise<void> {
    const body = { url: this.url, enabled_events: ["*"] }
    const answer = await exchange.request("POST", "/v1/webhook_endpoints", { body })
    if (answer.status !== 200) throw new Error(`No endpoint could be made: ${answer.status} ${answer.text}`)
    this.#secret = answer.body.secret
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #take(request: http.IncomingMessage): Promise<void> {
    const body = await text(request)
    const event = JSON.parse(body)
    const header = String(request.headers["x-signature"])
    const [, seconds, signature] = /^t=(\d+),v1=([0-9a-f]+)$/.exec(header) ?? []
    const wanted = createHmac("sha256", this.#secret ?? "")
      .update(`v1=${seconds}.`)
      .update(body)
      .digest("hex")
    if (signature !== wanted) this.problems.push(`the delivery of ${event.id} is signed ${header}`)
    const known = this.deliveries.get(event.id)
    if (known === undefined) return void this.deliveries.set(event.id, event)
    this.repeated.push(event.id)
    if (JSON.stringify(known) !== JSON.stringify(event)) this.problems.push(`${event.id} was delivered in two versions`)
  }
}
