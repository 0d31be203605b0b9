/**
 * A Node HTTP server that can be closed while clients keep their connections busy.
 *
 * Once it is closed, every answer ends its connection. Node's own server would take request after request on connections
 * that were open before, and so never come to its end.
 */
import * as http from "node:http"

export const create = (options: http.ServerOptions): http.Server => {
  let closed = false

  class DrainingResponse extends http.ServerResponse {
    // oxlint-disable-next-line typescript/no-explicit-any -- Node's own overloads, passed through
    override writeHead(...args: any): this {
      if (closed) this.shouldKeepAlive = false
      return super.writeHead(...(args as Parameters<http.ServerResponse["writeHead"]>))
    }
  }

  const server = http.createServer({ ...options, ServerResponse: DrainingResponse })
  const close = server.close.bind(server)
  server.close = (callback) => {
    closed = true
    return close(callback)
  }
  return server
}
