/** A program that has taken the port of a dead runner: it records what it receives and forges answers. */
import { createServer, type Server, type Socket } from "node:net"
import { pause } from "../support/TillProcess.ts"
import { isClientHelloAlone } from "../support/TlsRecords.ts"

/** The port is free after the runner's process has ended. */
const FREE_MILLIS_MAX = 5000
const AGAIN_MILLIS = 5

/** A forged answer in the form of a forwarding runner's. */
const BODY = '{"id":"forged"}'
const FORGED = [
  "HTTP/1.1 200 OK",
  "till-answer: carried",
  "content-type: application/json",
  `content-length: ${BODY.length}`,
  "",
  BODY
].join("\r\n")

export class Stranger {
  /** Bytes received by connection. */
  readonly #heard = new Map<Socket, Array<Buffer>>()
  readonly #server: Server
  readonly #met = Promise.withResolvers<void>()

  private constructor() {
    this.#server = createServer((socket) => {
      const heard: Array<Buffer> = []
      this.#heard.set(socket, heard)
      socket.on("error", () => {})
      socket.on("data", (bytes) => {
        heard.push(bytes)
        this.#met.resolve()
        socket.write(FORGED)
      })
    })
  }

  /** Listens on the port as soon as it is free. */
  static async listen(port: number): Promise<Stranger> {
    const end = performance.now() + FREE_MILLIS_MAX
    for (;;) {
      const stranger = new Stranger()
      try {
        await stranger.#listen(port)
        return stranger
      } catch (error) {
        if (performance.now() > end) throw error
        await pause(AGAIN_MILLIS)
      }
    }
  }

  #listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject).listen(port, "127.0.0.1", resolve)
    })
  }

  get #messages(): ReadonlyArray<Buffer> {
    return [...this.#heard.values()].map((pieces) => Buffer.concat(pieces)).filter(({ length }) => length > 0)
  }

  /** Resolves when bytes have arrived. */
  get met(): Promise<void> {
    return this.#met.promise
  }

  /** Number of connections with bytes. */
  get connections(): number {
    return this.#messages.length
  }

  /** Bytes that are not the beginning of a handshake, by connection. */
  get learned(): ReadonlyArray<string> {
    return this.#messages.filter((bytes) => !isClientHelloAlone(bytes)).map((bytes) => bytes.toString("latin1"))
  }

  close(): Promise<void> {
    for (const socket of this.#heard.keys()) socket.destroy()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}
