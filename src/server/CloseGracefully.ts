/** The end of a connection, for both parsers. */
import type { Socket } from "node:net"

/** Time for the client to end its side, in milliseconds. */
const LINGER_MILLIS_MAX = 1000

/**
 * Ends a connection and reads on until the client ends its side. Closing a connection with unread bytes would reset it,
 * and the client would lose an answer that it has not read yet.
 */
export const closeGracefully = (connection: Socket): void => {
  if (connection.writableEnded) return
  connection.end()
  const timer = setTimeout(() => connection.destroy(), LINGER_MILLIS_MAX)
  connection.once("close", () => clearTimeout(timer))
}
