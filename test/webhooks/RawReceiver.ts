/**
 * A receiver of webhooks that may break every rule of HTTP: a test reads the bytes of each request and decides the
 * bytes of the answer. It listens on a free port of this machine, and is closed with the scope.
 */
import { Effect, type Scope } from "effect"
import * as net from "node:net"
import * as tls from "node:tls"

export interface Request {
  readonly socket: net.Socket
  /** Number of the request's connection, from 0. */
  readonly connection: number
  /** Number of the request at this receiver, from 0. */
  readonly index: number
  readonly requestLine: string
  /** Headers by names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

/** A receiver's reaction to a whole request. */
export type Behaviour = (request: Request) => void

/** An answer that leaves the connection open for the next request. */
export const answerOf = (status: number, body = ""): string =>
  `HTTP/1.1 ${status} Whatever\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/** Answers each request with the next status; the last status repeats. */
export const answersWith =
  (...statuses: ReadonlyArray<number>): Behaviour =>
  ({ index, socket }) =>
    socket.write(answerOf(statuses[Math.min(index, statuses.length - 1)]!))

/** Repeats the same bytes until the socket closes, at intervals or as fast as the other side reads. */
export const writeForever = (socket: net.Socket, chunk: string | Buffer, pauseMillis?: number): void => {
  if (pauseMillis !== undefined) {
    const timer = setInterval(() => socket.write(chunk), pauseMillis)
    socket.once("close", () => clearInterval(timer))
    return
  }
  const writeSome = () => {
    while (!socket.destroyed && socket.write(chunk)) continue
  }
  socket.on("drain", writeSome)
  writeSome()
}

const parse = (bytes: Buffer) => {
  const end = bytes.indexOf("\r\n\r\n")
  if (end < 0) return undefined
  const [requestLine = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n")
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":")
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    })
  )
  const length = end + 4 + Number(headers.get("content-length") ?? 0)
  if (bytes.length < length) return undefined
  return { length, requestLine, headers, body: bytes.subarray(end + 4, length) }
}

export class RawReceiver {
  readonly requests: Array<Request> = []
  /** All connections that were ever opened to the receiver. */
  readonly sockets: Array<net.Socket> = []
  behaviour: Behaviour
  readonly server: net.Server
  readonly #isSecure: boolean
  readonly #closed: Array<Promise<void>> = []
  #onRequest: () => void = () => {}

  constructor(behaviour: Behaviour, options?: tls.TlsOptions) {
    this.behaviour = behaviour
    this.#isSecure = options !== undefined
    const accept = (socket: net.Socket) => this.#accept(socket)
    this.server = options === undefined ? net.createServer(accept) : tls.createServer(options, accept)
    // A client that does not trust the certificate hangs up during the handshake.
    this.server.on("tlsClientError", () => {})
  }

  get port(): number {
    return (this.server.address() as net.AddressInfo).port
  }

  get url(): string {
    return this.#isSecure ? `https://localhost:${this.port}/hooks` : `http://127.0.0.1:${this.port}/hooks`
  }

  /** Resolves when a connection is closed on both sides. */
  closed(connection: number): Promise<void> {
    return this.#closed[connection]!
  }

  /** Resolves when `count` requests have arrived. */
  async received(count: number): Promise<void> {
    while (this.requests.length < count) await new Promise<void>((resolve) => (this.#onRequest = resolve))
  }

  #accept(socket: net.Socket): void {
    const connection = this.sockets.push(socket) - 1
    this.#closed.push(new Promise((resolve) => socket.once("close", () => resolve())))
    socket.on("error", () => {})
    let bytes = Buffer.alloc(0)
    socket.on("data", (chunk) => {
      bytes = Buffer.concat([bytes, chunk])
      for (let parsed = parse(bytes); parsed !== undefined; parsed = parse(bytes)) {
        bytes = bytes.subarray(parsed.length)
        const request = { ...parsed, socket, connection, index: this.requests.length }
        this.requests.push(request)
        this.#onRequest()
        this.behaviour(request)
      }
    })
  }
}

/** Starts a receiver, with TLS if there is a certificate. */
export const receiver = (
  behaviour: Behaviour,
  options?: tls.TlsOptions
): Effect.Effect<RawReceiver, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const made = new RawReceiver(behaviour, options)
      await new Promise<void>((resolve) => made.server.listen(0, "127.0.0.1", resolve))
      return made
    }),
    ({ server, sockets }) =>
      Effect.promise(async () => {
        for (const socket of sockets) socket.destroy()
        await new Promise((resolve) => server.close(resolve))
      })
  )
