/** How the server ends a connection, whoever has read its requests. */
import type { Socket } from "node:net"

/** The client has so long to end the connection as well. */
const LINGER_MILLIS_MAX = 1000

/**
 * Ends a connection, and reads on until the client ends it, too. With something left to read, closing it would reset
 * it, and the client would lose the answer that it has not read yet.
 */
export const closeGracefully = (connection: Socket): void => {
  if (connection.writableEnded) return
  connection.end()
  const timer = setTimeout(() => connection.destroy(), LINGER_MILLIS_MAX)
  connection.once("close", () => clearTimeout(timer))
}
