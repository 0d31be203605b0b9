/**
 * Answers what Node's HTTP parser refuses, which nothing else of the service gets to see: bytes that are not HTTP,
 * headers that are too large, requests that do not come to their end. Node's own answers have no body; these have the
 * envelope of every error (semantics §3) and its headers (T19), and end the connection as Node's do. Requests that came
 * whole before it on the same connection are answered first.
 *
 * `CONNECT` is refused here as well: it asks for a tunnel, and the service is no proxy (semantics T26).
 */
import type { Server, ServerResponse } from "node:http"
import { STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import { API_VERSION_NEWEST } from "../domain/ApiVersion.ts"
import { envelope, wireErrorOf } from "./ErrorTable.ts"
import { makeRequestIds } from "./RequestContext.ts"
import { InvalidHttp, RequestHeadersTooLarge, RequestTimeout, RequestTooLarge } from "../server/HttpErrors.ts"

/** By the code of the parser's or the server's error. Anything else is not HTTP. */
const FAILURES: Readonly<Record<string, RequestHeadersTooLarge | RequestTimeout | RequestTooLarge>> = {
  HPE_HEADER_OVERFLOW: new RequestHeadersTooLarge(),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: new RequestTooLarge(),
  ERR_HTTP_REQUEST_TIMEOUT: new RequestTimeout()
}
const invalidHttp = new InvalidHttp()

/** Node keeps the response that is under way on a connection there, and asks the same of it (`lib/_http_server.js`). */
interface Connection extends Socket {
  readonly _httpMessage?: ServerResponse | null
}

/** Makes the server answer; gives the same server. `docsUrl` is where links to error documentation lead. */
export const answerUnreadable = (server: Server, docsUrl: string): Server => {
  // The server is there before the service, so these requests have a sequence of ids of their own. No id is ever given
  // twice: most of it is random.
  const requestIds = makeRequestIds()
  const refused = new WeakSet<Connection>()
  const refuse = (error: NodeJS.ErrnoException, socket: Connection) => {
    const response = socket._httpMessage
    if (response?.req.complete === true) return void response.once("close", () => refuse(error, socket))
    // In the middle of its own answer, or to a client that is gone, there is nothing to say.
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
    // More of the same is one error.
    if (refused.has(socket)) return
    refused.add(socket)
    refuse(error, socket)
  }
  server.on("clientError", refuseOnce)
  return server.on("connect", (_, socket: Connection) => refuseOnce(new Error("No tunnels here."), socket))
}
