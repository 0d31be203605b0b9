/**
 * Answers requests that Node's HTTP parser refuses, which no other part of the service sees: bytes that are not HTTP,
 * headers that are too large, requests that do not arrive completely. Node's own answers have no body; these have the
 * envelope of every error (semantics errors.envelope) and its headers (semantics responses.headers), and end the
 * connection as Node's do. Complete requests before it on the same connection are answered first.
 *
 * `CONNECT` is refused here as well: it requests a tunnel, and the service is no proxy (semantics requests.target).
 */
import { type Server, type ServerResponse, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import { API_VERSION_NEWEST } from "../domain/ApiVersion.ts"
import { envelope, wireErrorOf } from "./ErrorTable.ts"
import { makeRequestIds } from "./RequestContext.ts"
import { InvalidHttp, RequestHeadersTooLarge, RequestTimeout, RequestTooLarge } from "../server/HttpErrors.ts"

/** Failures by the code of the parser's or the server's error. All other codes mean that the bytes are not HTTP. */
const FAILURES: Readonly<Record<string, RequestHeadersTooLarge | RequestTimeout | RequestTooLarge>> = {
  HPE_HEADER_OVERFLOW: new RequestHeadersTooLarge(),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: new RequestTooLarge(),
  ERR_HTTP_REQUEST_TIMEOUT: new RequestTimeout()
}
const invalidHttp = new InvalidHttp()

/** Node's field for a connection's current response (`lib/_http_server.js`). */
interface Connection extends Socket {
  readonly _httpMessage?: ServerResponse | null
}

/**
 * Makes the server answer unreadable requests. Returns the same server. `docsUrl` is the base of links to error
 * documentation.
 */
export const answerUnreadable = (server: Server, docsUrl: string): Server => {
  // The server exists before the service, so these requests have their own sequence of ids. Ids never repeat, because
  // most of an id is random.
  const requestIds = makeRequestIds()
  const refused = new WeakSet<Connection>()
  const refuse = (error: NodeJS.ErrnoException, socket: Connection) => {
    const response = socket._httpMessage
    if (response?.req.complete === true) return void response.once("close", () => refuse(error, socket))
    // No answer is possible in the middle of another one, or to a client that has left.
    if (!socket.writable || response?.headersSent === true) return socket.destroy()
    const { status, ...failure } = wireErrorOf(FAILURES[error.code ?? ""] ?? invalidHttp)
    const body = envelope({ status, ...failure }, docsUrl)
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      "Content-Type: application/json",
      `Content-Length: ${Buffer.byteLength(body)}`,
      "Cache-Control: no-store",
      "X-Content-Type-Options: nosniff",
      `X-API-Version: ${API_VERSION_NEWEST}`,
      `X-Request-Id: ${requestIds.next()}`,
      "Connection: close"
    ]
    socket.write(`${head.join("\r\n")}\r\n\r\n${body}`)
    socket.destroySoon()
  }
  const refuseOnce = (error: NodeJS.ErrnoException, socket: Connection) => {
    // Further errors of a connection get no answer.
    if (refused.has(socket)) return
    refused.add(socket)
    refuse(error, socket)
  }
  server.on("clientError", refuseOnce)
  return server.on("connect", (_, socket: Connection) => refuseOnce(new Error("No tunnels here."), socket))
}
