/**
 * Takes a server's connections before Node does, and reads plain requests on them without Node's parser. A client
 * cannot detect which of the two parsers has read a request: limits and answers are the same.
 *
 * One periodic sweep enforces the time limits of all connections, so a request needs no timer of its own.
 */
import type { Server } from "node:http"
import type { Socket } from "node:net"
import { Server as TlsServer } from "node:tls"
import type { AtTurnsEnd } from "./WriteBatch.ts"
import type { Incoming } from "./Incoming.ts"
import { type Limits, PlainConnection, type Surroundings } from "./PlainConnection.ts"
import { ReadTurns } from "./ReadTurns.ts"

/** Sweeps per shortest limit: a connection may exceed its limit by a tenth. */
const SWEEPS = 10

export interface PlainConnections {
  /** True for a connection of this module with a request that is not answered in full. */
  readonly isBusy: (socket: Socket) => boolean
  /** Makes every answer from now on end its connection. */
  readonly close: () => void
}

/** Returns the event by which a server announces a connection; over TLS, after the handshake. */
export const connectionEventOf = (server: Server): "connection" | "secureConnection" =>
  server instanceof TlsServer ? "secureConnection" : "connection"

/** Passes plain requests on the server's new connections to `onRequest`. */
export const takeConnections = (
  server: Server,
  limits: Limits,
  atTurnsEnd: AtTurnsEnd,
  onRequest: (incoming: Incoming) => void
): PlainConnections => {
  const connections = new Map<Socket, PlainConnection>()
  let isClosed = false

  const event = connectionEventOf(server)
  // Node's own listener is the first, because the server's constructor has added it.
  const [listener] = server.listeners(event)
  const handOver = (socket: Socket): void => Reflect.apply(listener!, server, [socket])

  const refuseLate = (socket: Socket): void => {
    const error = Object.assign(new Error("Request timeout"), { code: "ERR_HTTP_REQUEST_TIMEOUT" })
    if (!server.emit("clientError", error, socket)) socket.destroy()
  }

  const sweepMillis = Math.min(limits.idleMillis, limits.arrivalMillis, limits.stillMillis) / SWEEPS
  let timer: NodeJS.Timeout | undefined
  const sweep = () => {
    const now = performance.now()
    for (const connection of connections.values()) connection.sweep(now)
    if (connections.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
  }

  const surroundings: Surroundings = {
    limits,
    turns: new ReadTurns(),
    atTurnsEnd,
    onRequest,
    handOver,
    refuseLate,
    forget: (socket) => connections.delete(socket),
    get isClosed() {
      return isClosed
    }
  }

  server.off(event, listener as () => void)
  server.on(event, (socket: Socket) => {
    connections.set(socket, new PlainConnection(surroundings, socket))
    timer ??= setInterval(sweep, sweepMillis).unref()
  })
  return {
    isBusy: (socket) => connections.get(socket)?.isBusy === true,
    close: () => {
      isClosed = true
    }
  }
}
