/**
 * Node's HTTP server, with five habits of its own.
 *
 * - It writes its answers in bursts: those that get ready within a turn of the event loop go out at the turn's end, one
 *   right after the other. A write is mostly the price of waking up whoever reads, and one that comes while they are
 *   still awake costs little.
 * - It can be closed while clients keep their connections busy: once it is closed, every answer ends its connection.
 *   Node's own would take request after request on connections that were open before, and so never come to its end.
 * - It takes up one request of a connection at a time. Node's own would take up all that a client sends ahead, and keep the
 *   answers until they are read: from a few thousand bytes, more of them than there is memory.
 * - It ignores an `Expect` that it does not know. Node's own answers that with a 417, which nobody else gets to see.
 * - It ends connections on which nothing moves, such as those of clients that do not read their answers. Node's own
 *   would keep the answers for as long as the client likes.
 */
import * as http from "node:http"
import type { Socket } from "node:net"

/** Requests that a client may send ahead of an answer; one more, and its connection ends. */
const PIPELINED_MAX = 256

/** How long a connection stays open without a request. Proxies keep theirs for 60 s, and have to be the first to close. */
const KEEP_ALIVE_MILLIS = 65_000
/** How long a request may take to arrive, with its body. */
const ARRIVAL_MILLIS_MAX = 60_000
/** How long nothing may move on a connection with a request; longer than any answer takes. */
const STILL_MILLIS_MAX = 120_000

export const create = (stillMillisMax: number = STILL_MILLIS_MAX): http.Server => {
  let closed = false
  let ready: Array<() => void> = []

  const burst = () => {
    const ends = ready
    ready = []
    for (const end of ends) end()
  }

  class Response extends http.ServerResponse {
    // oxlint-disable-next-line typescript/no-explicit-any -- Node's own overloads, passed through
    override writeHead(...args: any): this {
      if (closed) this.shouldKeepAlive = false
      return super.writeHead(...(args as Parameters<http.ServerResponse["writeHead"]>))
    }

    // oxlint-disable-next-line typescript/no-explicit-any -- as above
    override end(...args: any): this {
      const end = () => {
        try {
          super.end(...(args as []))
        } catch (error) {
          this.destroy(error as Error)
        }
      }
      if (ready.push(end) === 1) setImmediate(burst)
      return this
    }
  }

  const server = http.createServer({
    keepAliveTimeout: KEEP_ALIVE_MILLIS,
    requestTimeout: ARRIVAL_MILLIS_MAX,
    requireHostHeader: false,
    ServerResponse: Response
  })
  server.timeout = stillMillisMax
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  const emit = server.emit.bind(server) as (event: string, ...args: ReadonlyArray<unknown>) => boolean
  const pipelined = new WeakMap<Socket, number>()
  const inTurn = (event: string, request: http.IncomingMessage, response: http.ServerResponse) => {
    // Only the first response of a connection has its socket.
    if (response.socket !== null) return emit(event, request, response)
    const { socket } = request
    const waiting = (pipelined.get(socket) ?? 0) + 1
    if (waiting > PIPELINED_MAX) socket.destroy()
    pipelined.set(socket, waiting)
    response.once("socket", () => {
      pipelined.set(socket, pipelined.get(socket)! - 1)
      emit(event, request, response)
    })
    return true
  }
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  server.emit = (event: string, ...args: any) =>
    event === "request" || event === "checkContinue" ? inTurn(event, args[0], args[1]) : emit(event, ...args)
  const close = server.close.bind(server)
  server.close = (callback) => {
    closed = true
    return close(callback)
  }
  return server
}
