/**
 * Node's HTTP server gets ten habits of its own.
 *
 * - It writes its answers in bursts: those that get ready within a turn of the event loop go out at the turn's end, one
 *   right after the other. A write is mostly the price of waking up whoever reads, and one that comes while they are
 *   still awake costs little.
 * - It can be closed while clients keep their connections busy: once it is closed, every answer ends its connection.
 *   Node's own would take request after request on connections that were open before, and so never come to its end.
 * - It resets nobody by closing. A connection without a request stays open for a moment, because a request may be on
 *   its way, and is ended then; one that has ended is read until the client ends it as well. Node's own would destroy
 *   it at once, and with it what the client has sent meanwhile.
 * - It tells browsers with every answer not to guess at its type, so that nothing here can be taken for a page or a
 *   script.
 * - It takes up one request of a connection at a time. Node's own would take up all that a client sends ahead, and keep
 *   the answers until they are read: from a few thousand bytes, more of them than there is memory.
 * - It ignores an `Expect` that it does not know. Node's own answers that with a 417, which nobody else gets to see.
 * - It reads plain requests under /v1 by itself (`plain/`), once it knows who answers them.
 * - It reads a target that names the server as if it named the path alone (`RequestTarget.ts`).
 * - It answers a client that has ended its side of the connection, and ends the connection then. Node's own takes that
 *   for the end of the connection, though the client may wait for its answer, as `nc -N` does.
 * - It ends connections on which nothing moves, such as those of clients that do not read their answers. Node's own
 *   would keep the answers for as long as the client likes.
 */
import * as http from "node:http"
import * as https from "node:https"
import type { Socket } from "node:net"
import type { TlsOptions } from "node:tls"
import { makeWriteBatch } from "./WriteBatch.ts"
import { closeGracefully } from "./CloseGracefully.ts"
import type { Incoming } from "./Incoming.ts"
import { connectionEventOf, takeConnections } from "./PlainConnections.ts"
import type { PlainConnections } from "./PlainConnections.ts"
import { originFormOf } from "./RequestTarget.ts"

/** A client may send so many requests ahead of an answer. With one more, its connection ends. */
const PIPELINED_MAX = 256

/** A connection stays open for so long without a request. Proxies keep theirs for 60 s, and have to close first. */
const KEEP_ALIVE_MILLIS = 65_000
/** A request, with its body, may take so long to arrive. */
const ARRIVAL_MILLIS_MAX = 60_000
/** Nothing may move for so long on a connection with a request. No answer takes as long. */
const STILL_MILLIS_MAX = 120_000
/** A closed server leaves a connection open for so long on which nothing moves. A busy client has sent by then. */
const QUIET_MILLIS = 500

/** Node keeps the response that is under way on a connection there (`lib/_http_server.js`). */
interface Connection extends Socket {
  readonly _httpMessage?: http.ServerResponse | null
}

/**
 * Ends the connections of a server that is closed: those with a request after its answer, the others once they are
 * quiet.
 */
const hangUpAll = (
  server: http.Server,
  connections: ReadonlySet<Connection>,
  isBusy: (connection: Connection) => boolean
): void => {
  const bytesRead = new Map<Connection, number>()
  const endQuiet = () => {
    for (const connection of connections) {
      const isQuiet = !isBusy(connection) && bytesRead.get(connection) === connection.bytesRead
      if (isQuiet) closeGracefully(connection)
      bytesRead.set(connection, connection.bytesRead)
    }
  }
  // Node calls it after the last answer.
  for (const connection of connections) connection.destroySoon = () => closeGracefully(connection)
  endQuiet()
  const timer = setInterval(endQuiet, QUIET_MILLIS)
  server.once("close", () => clearInterval(timer))
}

/** Answers requests under /v1. */
export interface TakeApi {
  /** What node's parser has read. */
  readonly request: (request: http.IncomingMessage, response: http.ServerResponse) => void
  /** What is plain. */
  readonly plain: (incoming: Incoming) => void
}

const takers = new WeakMap<http.Server, TakeApi>()

/** What makes a server of this module end a connection with each answer. */
const connectionEnders = new WeakMap<http.Server, () => void>()

/**
 * Makes every answer from now on end its connection, so that whoever kept it goes elsewhere. The server goes on to
 * listen, and to take requests on the connections that it has and on new ones.
 */
export const endConnections = (server: http.Server): void => connectionEnders.get(server)?.()

/** What makes a server of this module take plain requests by itself. */
const plainTakers = new WeakMap<http.Server, (answer: (incoming: Incoming) => void) => void>()

/**
 * Gives the server what answers requests under /v1 in the place of its listeners. Plain ones on new connections go
 * there without node's parser, unless the server was made without that. To be called once.
 */
export const setApi = (server: http.Server, take: TakeApi): void => {
  takers.set(server, take)
  plainTakers.get(server)?.(take.plain)
}

const isApi = (url: string): boolean => /^\/v1(?:[/?]|$)/.test(url)

/** Makes the server take up one request of a connection at a time. */
const takeTurns = (server: http.Server): void => {
  const emitAny = server.emit.bind(server) as (event: string, ...args: ReadonlyArray<unknown>) => boolean
  const emit = (event: string, request: http.IncomingMessage, response: http.ServerResponse): boolean => {
    const take = isApi(request.url!) ? takers.get(server) : undefined
    if (take === undefined) return emitAny(event, request, response)
    take.request(request, response)
    return true
  }
  const pipelined = new WeakMap<Socket, number>()
  const inTurn = (event: string, request: http.IncomingMessage, response: http.ServerResponse) => {
    request.url = originFormOf(request.url!)
    const { socket } = request
    // Nobody could be answered any more.
    if (socket.writableEnded) {
      request.resume()
      return true
    }
    // Only the first response of a connection has its socket.
    if (response.socket !== null) return emit(event, request, response)
    const waiting = (pipelined.get(socket) ?? 0) + 1
    if (waiting > PIPELINED_MAX) socket.destroy()
    pipelined.set(socket, waiting)
    response.once("socket", () => {
      pipelined.set(socket, pipelined.get(socket)! - 1)
      emit(event, request, response)
    })
    return true
  }
  // oxlint-disable-next-line typescript/no-explicit-any -- Node's own overloads, passed through
  server.emit = (event: string, ...args: any) =>
    event === "request" || event === "checkContinue" ? inTurn(event, args[0], args[1]) : emitAny(event, ...args)
}

/** Makes the server close as the module's comment says. `onClose` is called before anything is ended. */
const closeGently = (server: http.Server, onClose: () => void, isBusy: (connection: Connection) => boolean): void => {
  const connections = new Set<Socket>()
  server.on(connectionEventOf(server), (connection: Socket) => {
    connections.add(connection)
    connection.once("close", () => connections.delete(connection))
  })
  const close = server.close.bind(server)
  // Node's own closing calls it first of all.
  server.closeIdleConnections = () => {}
  server.close = (callback) => {
    onClose()
    if (server.listening) hangUpAll(server, connections, isBusy)
    return close(callback)
  }
}

const isHeaders = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export interface Options {
  /** Nothing may move for so long on a connection with a request. */
  readonly stillMillisMax?: number
  /** A request, with its body, may take so long to arrive. */
  readonly arrivalMillisMax?: number
  /** A connection stays open for so long without a request. */
  readonly keepAliveMillis?: number
  /** False if node's parser is to read all requests. */
  readonly plain?: boolean
  /** False if a client that has ended its side is gone: processes of an installation end both sides at once. */
  readonly allowHalfOpen?: boolean
  /** A request's header lines may be so long; as long as node says if left out. */
  readonly headBytesMax?: number
  /** Every connection is TLS by these terms; none is if left out. */
  readonly tls?: TlsOptions
}

export const create = (options: Options = {}): http.Server => {
  const { allowHalfOpen = true, arrivalMillisMax = ARRIVAL_MILLIS_MAX, keepAliveMillis = KEEP_ALIVE_MILLIS } = options
  const stillMillisMax = options.stillMillisMax ?? STILL_MILLIS_MAX
  const atTurnsEnd = makeWriteBatch()
  let endsEach = false
  let plain: PlainConnections | undefined

  class Response extends http.ServerResponse {
    // oxlint-disable-next-line typescript/no-explicit-any -- Node's own overloads, passed through
    override writeHead(...args: any): this {
      if (endsEach) this.shouldKeepAlive = false
      const headers: unknown = args.at(-1)
      // Headers that are set one by one make Node copy all the others first.
      if (isHeaders(headers)) {
        headers["x-content-type-options"] = "nosniff"
        // Such an answer has no end that a client could wait for: it ends with its client.
        if (headers["content-type"] === "text/event-stream") this.socket?.once("end", () => this.destroy())
      } else this.setHeader("x-content-type-options", "nosniff")
      return super.writeHead(...(args as Parameters<http.ServerResponse["writeHead"]>))
    }

    // oxlint-disable-next-line typescript/no-explicit-any -- as above
    override end(...args: any): this {
      atTurnsEnd(() => {
        try {
          super.end(...(args as []))
        } catch (error) {
          this.destroy(error as Error)
        }
      })
      return this
    }
  }

  const settings = {
    keepAliveTimeout: keepAliveMillis,
    requestTimeout: arrivalMillisMax,
    requireHostHeader: false,
    ...(options.headBytesMax !== undefined && { maxHeaderSize: options.headBytesMax }),
    ServerResponse: Response,
    // Nothing here speaks another protocol, and what Node hands over for one is answered without any of these habits.
    shouldUpgradeCallback: () => false
  }
  const { tls } = options
  const server = tls === undefined ? http.createServer(settings) : https.createServer({ ...tls, ...settings })
  server.timeout = stillMillisMax
  // Node's own setting, without a name in its types.
  Object.assign(server, { httpAllowHalfOpen: allowHalfOpen })
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  takeTurns(server)
  const endEach = () => {
    endsEach = true
    plain?.close()
  }
  connectionEnders.set(server, endEach)
  closeGently(server, endEach, (connection) => connection._httpMessage != null || plain?.isBusy(connection) === true)
  plainTakers.set(server, (answer) => {
    if (options.plain === false) return
    const limits = { idleMillis: keepAliveMillis, arrivalMillis: arrivalMillisMax, stillMillis: stillMillisMax }
    plain = takeConnections(server, { ...limits, allowHalfOpen }, atTurnsEnd, answer)
  })
  return server
}
