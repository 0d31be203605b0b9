/**
 * Faulty webhook endpoints beside a correct one: they hang, answer a byte at a time, answer without HTTP, redirect,
 * refuse, or close the connection. All deliveries must reach the correct one, and requests must stay as fast.
 */
import type { Server, Socket } from "node:net"
import { type AddressInfo, createServer } from "node:net"
import type { HttpExchange } from "../../support/HttpExchange.ts"
import { type Context, type Row, scene } from "../Scene.ts"

const ROUNDS = 3
const DRIP_MILLIS = 300
const GARBAGE = "X".repeat(200_000)

/** An endpoint's behaviour towards a connection whose first bytes have arrived. */
const BEHAVIOURS: Readonly<Record<string, (socket: Socket) => void>> = {
  hangs: () => {},
  drips: (socket) => {
    const timer = setInterval(() => socket.writable && socket.write("H"), DRIP_MILLIS)
    socket.once("close", () => clearInterval(timer))
  },
  "sends garbage": (socket) => void socket.end(GARBAGE),
  "has endless headers": (socket) => void socket.write(`HTTP/1.1 200 OK\r\nX-Long: ${GARBAGE}`),
  "has an endless body": (socket) => {
    socket.write("HTTP/1.1 500 No\r\nContent-Type: text/plain\r\n\r\n")
    const more = () => {
      while (socket.writable && socket.write(GARBAGE)) if (socket.writableLength > GARBAGE.length) break
    }
    socket.on("drain", more)
    more()
  },
  redirects: (socket) =>
    void socket.end("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
  refuses: (socket) => void socket.end("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
  "hangs up": (socket) => void socket.resetAndDestroy()
}

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => {
  const endpoints = await Promise.all(Object.entries(BEHAVIOURS).map(([name, how]) => Misbehaving.start(name, how)))
  const remark = `beside the one that behaves: ${endpoints.map(({ name }) => name).join(", ")}.`
  try {
    const row = await scene(context, { fault: "webhook endpoints that misbehave", remark }, async (scene) => {
      for (let round = 0; round < ROUNDS * context.times; round++) {
        await scene.round(async (began) => {
          began()
          // All endpoints are subscribed from the first round on.
          for (const endpoint of endpoints) await endpoint.subscribe(scene.service.http)
        })
      }
      for (const { attempts, name } of endpoints) {
        if (attempts === 0) scene.judge.findings.add("lost", name, `the endpoint that ${name} was never tried`)
      }
    })
    return [row]
  } finally {
    for (const endpoint of endpoints) endpoint.close()
  }
}

class Misbehaving {
  readonly name: string
  attempts = 0
  #isSubscribed = false
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(name: string, how: (socket: Socket) => void) {
    this.name = name
    this.#server = createServer((socket) => {
      this.#sockets.add(socket)
      socket.on("error", () => {})
      socket.once("close", () => this.#sockets.delete(socket))
      socket.once("data", () => {
        this.attempts++
        how(socket)
      })
      socket.resume()
    })
  }

  static start(name: string, how: (socket: Socket) => void): Promise<Misbehaving> {
    const endpoint = new Misbehaving(name, how)
    return new Promise((resolve) => endpoint.#server.listen(0, "127.0.0.1", () => resolve(endpoint)))
  }

  async subscribe(exchange: HttpExchange): Promise<void> {
    if (this.#isSubscribed) return
    this.#isSubscribed = true
    const body = { url: `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`, enabled_events: ["*"] }
    const answer = await exchange.request("POST", "/v1/webhook_endpoints", { body })
    if (answer.status !== 200) throw new Error(`No endpoint could be made: ${answer.status} ${answer.text}`)
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}
