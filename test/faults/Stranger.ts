/** A program that has got the port of a runner that is gone: keeps what it receives, and forges an answer to it. */
import type { Server, Socket } from "node:net"
import { createServer } from "node:net"
import { pause } from "../support/TillProcess.ts"
import { isClientHelloAlone } from "../support/TlsRecords.ts"

/** The port becomes free when its process has ended. */
const FREE_MILLIS_MAX = 5000
const AGAIN_MILLIS = 5

/** As the runner that has the account would answer another one. */
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
  /** What came over each connection. */
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

  /** Takes the port as soon as it is free. */
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

  /** Ends when something has come. */
  get met(): Promise<void> {
    return this.#met.promise
  }

  /** Those over which something came. */
  get connections(): number {
    return this.#messages.length
  }

  /** What came that is not the beginning of a handshake, connection by connection. */
  get learned(): ReadonlyArray<string> {
    return this.#messages.filter((bytes) => !isClientHelloAlone(bytes)).map((bytes) => bytes.toString("latin1"))
  }

  close(): Promise<void> {
    for (const socket of this.#heard.keys()) socket.destroy()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}
