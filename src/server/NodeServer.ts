/**
 * Node's HTTP server with ten differences.
 *
 * - It writes answers in batches: those that are ready within a turn of the event loop are written at the turn's end.
 *   Most of a write's cost is waking the reader, and a write that follows while the reader is awake costs little.
 * - It can be closed while clients keep their connections busy: once it is closed, every answer ends its connection.
 *   Node's own would accept request after request on open connections, and so never close.
 * - It resets no connection by closing. A connection without a request stays open for a moment, because a request may
 *   be on its way, and is ended then; an ended connection is read until the client ends it as well. Node's own would
 *   destroy it immediately, and with it bytes that the client has just sent.
 * - Every answer forbids browsers to guess its type, so that no answer is taken for a page or a script.
 * - It handles one request of a connection at a time. Node's own would handle all requests that a client sends ahead,
 *   and keep the answers until they are read: a few thousand bytes of requests could fill the memory with answers.
 * - It ignores an `Expect` that it does not support. Node's own answers with a 417 that no handler sees.
 * - It parses plain requests under /v1 itself (`PlainRequest.ts`), once the API has set its handlers.
 * - It treats a target that contains the server's name like the path alone (`RequestTarget.ts`).
 * - It answers a client that has ended its side of the connection, and ends the connection then. Node's own treats that
 *   as the end of the connection, though the client may wait for its answer, as `nc -N` does.
 * - It ends stalled connections, such as those of clients that do not read their answers. Node's own would keep the
 *   answers for as long as the client likes.
 */
import * as http from "node:http"
import * as https from "node:https"
import type { Socket } from "node:net"
import type { TlsOptions } from "node:tls"
import { makeWriteBatch } from "./WriteBatch.ts"
import { closeGracefully } from "./CloseGracefully.ts"
import type { Incoming } from "./Incoming.ts"
import { connectionEventOf, type PlainConnections, takeConnections } from "./PlainConnections.ts"
import { originFormOf } from "./RequestTarget.ts"

/** The most requests that a client may send ahead of an answer. One more ends its connection. */
const PIPELINED_MAX = 256

/** How long a connection stays open without a request. Proxies keep theirs for 60 s, and must close first. */
const KEEP_ALIVE_MILLIS = 65_000
/** The longest time for a request to arrive with its body. */
const ARRIVAL_MILLIS_MAX = 60_000
/** The longest stall of a connection with a request. No answer takes as long. */
const STILL_MILLIS_MAX = 120_000
/** How long a closed server leaves a silent connection open. A busy client sends within that time. */
const QUIET_MILLIS = 500

/** Node's field for a connection's current response (`lib/_http_server.js`). */
interface Connection extends Socket {
  readonly _httpMessage?: http.ServerResponse | null
}

/** Ends the connections of a closed server: busy ones after their answer, the others once they are silent. */
const endAll = (
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
  // Node calls `destroySoon` after the last answer.
  for (const connection of connections) connection.destroySoon = () => closeGracefully(connection)
  endQuiet()
  const timer = setInterval(endQuiet, QUIET_MILLIS)
  server.once("close", () => clearInterval(timer))
}

/** Handlers of requests under /v1. */
export interface TakeApi {
  /** Handles a request that Node's parser has read. */
  readonly request: (request: http.IncomingMessage, response: http.ServerResponse) => void
  /** Handles a plain request. */
  readonly plain: (incoming: Incoming) => void
}

const takers = new WeakMap<http.Server, TakeApi>()

/** Functions that make a server end a connection with each answer. */
const connectionEnders = new WeakMap<http.Server, () => void>()

/**
 * Makes every answer from now on end its connection, so that clients reconnect, to another process if there is a load
 * balancer. The server continues to listen, and to accept requests on existing connections and on new ones.
 */
export const endConnections = (server: http.Server): void => connectionEnders.get(server)?.()

/** Functions that make a server parse plain requests itself. */
const plainTakers = new WeakMap<http.Server, (answer: (incoming: Incoming) => void) => void>()

/**
 * Sets the handlers of requests under /v1, in place of the server's listeners. Plain ones on new connections bypass
 * Node's parser, unless the server was made without that. To be called once.
 */
export const setApi = (server: http.Server, take: TakeApi): void => {
  takers.set(server, take)
  plainTakers.get(server)?.(take.plain)
}

const isApi = (url: string): boolean => /^\/v1(?:[/?]|$)/.test(url)

/** Makes the server handle one request of a connection at a time. */
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
    // An ended connection can carry no answer.
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

/** Makes the server close as the module's comment describes. Calls `onClose` before any connection is ended. */
const closeGently = (server: http.Server, onClose: () => void, isBusy: (connection: Connection) => boolean): void => {
  const connections = new Set<Socket>()
  server.on(connectionEventOf(server), (connection: Socket) => {
    connections.add(connection)
    connection.once("close", () => connections.delete(connection))
  })
  const close = server.close.bind(server)
  // Replaced, because Node's own `close` begins with it.
  server.closeIdleConnections = () => {}
  server.close = (callback) => {
    onClose()
    if (server.listening) endAll(server, connections, isBusy)
    return close(callback)
  }
}

const isHeaders = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export interface Options {
  /** The longest stall of a connection with a request, in milliseconds. */
  readonly stillMillisMax?: number
  /** The longest time for a request to arrive with its body. */
  readonly arrivalMillisMax?: number
  /** How long a connection stays open without a request, in milliseconds. */
  readonly keepAliveMillis?: number
  /** False if Node's parser should read all requests. */
  readonly plain?: boolean
  /** False if a client that has ended its side is gone: processes of an installation end both sides together. */
  readonly allowHalfOpen?: boolean
  /** The longest header section of a request, in bytes; Node's default if omitted. */
  readonly headBytesMax?: number
  /** TLS options of all connections; without them, connections are plain TCP. */
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
        // An event stream has no end that a client could wait for: it ends when its client ends its side.
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
    // No other protocol is supported, and requests for an upgrade would bypass all differences above.
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
