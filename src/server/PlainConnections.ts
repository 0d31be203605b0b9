/**
 * Takes a server's connections before node does, so that plain requests on them are read without node's parser. Nobody
 * can tell from outside which of the two has read a request: the limits are the same, and so are the answers.
 *
 * One sweep looks after all connections, so a request pays for no timer.
 */
import type { Server } from "node:http"
import type { Socket } from "node:net"
import { Server as TlsServer } from "node:tls"
import type { AtTurnsEnd } from "./WriteBatch.ts"
import type { Incoming } from "./Incoming.ts"
import type { Limits, Surroundings } from "./PlainConnection.ts"
import { PlainConnection } from "./PlainConnection.ts"

/** Sweeps per shortest limit: a connection waits for up to a tenth of it more. */
const SWEEPS = 10

export interface PlainConnections {
  /** Tells whether a connection is one of these, with a request that is not answered in full. */
  readonly isBusy: (socket: Socket) => boolean
  /** Makes every answer from now on end its connection. */
  readonly close: () => void
}

/** The event with which a server takes up a connection; over TLS, that is after its handshake. */
export const connectionEventOf = (server: Server): "connection" | "secureConnection" =>
  server instanceof TlsServer ? "secureConnection" : "connection"

/** Makes plain requests of the server's connections from now on go to `onRequest`. */
export const takeConnections = (
  server: Server,
  limits: Limits,
  atTurnsEnd: AtTurnsEnd,
  onRequest: (incoming: Incoming) => void
): PlainConnections => {
  const connections = new Map<Socket, PlainConnection>()
  let isClosed = false

  const event = connectionEventOf(server)
  // Node's listener is the first, for its server has added it.
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
